"""The weights of a network from its ONNX file, without onnx's own package.

An ONNX file is a message of Protocol Buffers, in which every field has a number. This reader
follows a model's graph and its initializers, and reads the shape, type, name and bytes of each.
It skips everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

GRAPH, INITIALIZER = 7, 5  # of a model; of a graph
DIMS, TYPE, NAME, RAW = 1, 2, 8, 9  # of an initializer
TYPES = {1: "<f4", 10: "<f2"}  # ONNX types: floats of 32 and 16 bits
HALF = ".half"  # ends the names of tensors that are stored in 16 bits

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how a field is stored


def read_weights(path: Path) -> dict[str, Tensor]:
    """Every floating-point initializer by its name, as float32.

    Raises ValueError if the file is not an ONNX file or is truncated.
    """
    tensors: dict[str, Tensor] = {}
    for number, graph in _fields(memoryview(path.read_bytes())):
        if number == GRAPH and isinstance(graph, memoryview):
            for field, value in _fields(graph):
                if field == INITIALIZER and isinstance(value, memoryview):
                    tensors |= _tensor(value)
    return tensors


def _tensor(message: memoryview) -> dict[str, Tensor]:
    shape: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for number, value in _fields(message):
        if number == DIMS:
            shape += [value] if isinstance(value, int) else _varints(value)
        elif number == TYPE and isinstance(value, int):
            kind = value
        elif number == NAME and isinstance(value, memoryview):
            name = str(value, "utf-8").removesuffix(HALF)
        elif number == RAW and isinstance(value, memoryview):
            raw = value
    if kind not in TYPES:
        return {}
    stored = np.frombuffer(bytes(raw), TYPES[kind])
    if math.prod(shape) != len(stored):
        raise ValueError(f"the size of its tensor {name!r} does not match its shape")
    values = stored.reshape(shape).astype(np.float32)
    return {name: torch.from_numpy(values)}


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number of each field and its value: a whole number, or a part of the message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, stored = key >> 3, key & 7
        if stored == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if stored == BYTES:
            length, at = _varint(message, at)
        elif stored in (FIXED64, FIXED32):
            length = 8 if stored == FIXED64 else 4
        else:
            raise ValueError("it is not an ONNX file")
        if at + length > len(message):
            raise ValueError("it is truncated")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, lowest first, and the offset of the next field."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            raise ValueError("it is truncated")
        byte = message[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise ValueError("it is not an ONNX file")


def _varints(message: memoryview) -> list[int]:
    numbers, at = [], 0
    while at < len(message):
        value, at = _varint(message, at)
        numbers.append(value)
    return numbers
