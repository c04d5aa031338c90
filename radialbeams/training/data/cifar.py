"""Reads the Python batches of CIFAR-10 without unpickling: no object is built, nothing is called.

A pickle is a program, and rebuilding a numpy array from crafted bytes can crash the process. The
official files use two dozen opcodes to describe one dictionary. Those are interpreted here on plain
data; the array is one byte string, and any other opcode is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW = 3 * 32 * 32  # bytes of one image: its red, green and blue planes
ARRAY = ("numpy.core.multiarray _reconstruct", "numpy ndarray", (0,), "b")
DTYPE = ("numpy dtype", "u1", 0, 1)
DTYPE_STATE = (3, "|", None, None, None, -1, -1, 0)
NAMES = (ARRAY[0], ARRAY[1], DTYPE[0])
MOST = 1_000_000  # opcodes; the official files have about 30,000


class NotABatch(ValueError):
    """The bytes are not a batch in the format of the official files."""


@dataclass
class _Called:
    """A call that is recorded but not made: function name, arguments, and the state set on it."""

    call: tuple[Any, ...]
    state: Any = None


@dataclass
class _Machine:
    """The stack machine of a pickle; a mark starts a new stack, as in Python's unpickler."""

    stack: list[Any] = field(default_factory=list)
    marks: list[list[Any]] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self, kind: type = object) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise NotABatch("its instructions do not fit together")
        return self.stack.pop()

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        if not self.marks:
            raise NotABatch("its instructions do not fit together")
        values, self.stack = self.stack, self.marks.pop()
        return values

    def put(self, index: int) -> None:
        value = self.pop()
        self.memo[index] = value
        self.push(value)

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise NotABatch("its instructions do not fit together")
        self.push(self.memo[index])

    def name(self, name: str) -> None:
        if name not in NAMES:
            raise NotABatch(f"it refers to {'.'.join(name.split())[:80]}")
        self.push(name)

    def group(self, count: int) -> None:
        self.push(tuple(reversed([self.pop() for _ in range(count)])))

    def call(self) -> None:
        arguments = self.pop(tuple)
        self.push(_Called((self.pop(str), *arguments)))

    def build(self) -> None:
        state, called = self.pop(tuple), self.pop(_Called)
        called.state = state
        self.push(called)

    def append(self, values: list[Any]) -> None:
        target = self.pop(list)
        target += values
        self.push(target)

    def set_items(self, values: list[Any]) -> None:
        target = self.pop(dict)
        for key, value in zip(values[::2], values[1::2], strict=False):
            if not isinstance(key, str):
                raise NotABatch("a key is not a string")
            target[key] = value
        self.push(target)


INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, argument: None,
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING"), _Machine.push
    ),
    "NONE": lambda machine, argument: machine.push(None),
    "NEWTRUE": lambda machine, argument: machine.push(True),
    "NEWFALSE": lambda machine, argument: machine.push(False),
    "EMPTY_DICT": lambda machine, argument: machine.push({}),
    "EMPTY_LIST": lambda machine, argument: machine.push([]),
    "MARK": lambda machine, argument: machine.mark(),
    "TUPLE": lambda machine, argument: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, argument: machine.group(1),
    "TUPLE2": lambda machine, argument: machine.group(2),
    "TUPLE3": lambda machine, argument: machine.group(3),
    "APPEND": lambda machine, argument: machine.append([machine.pop()]),
    "APPENDS": lambda machine, argument: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, argument: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, argument: machine.set_items(machine.since_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    "GLOBAL": _Machine.name,
    "REDUCE": lambda machine, argument: machine.call(),
    "BUILD": lambda machine, argument: machine.build(),
}


def read_batch(data: bytes) -> tuple[NDArray[np.uint8], list[int]]:
    """(N, 3072) bytes and N labels. Raises NotABatch for anything else."""
    batch = _interpret(data)
    if not isinstance(batch, dict):
        raise NotABatch("it does not contain a dictionary")
    labels = batch.get("labels")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise NotABatch("its labels are not a list of numbers")
    return _pixels(batch.get("data"), len(labels)), labels


def _interpret(data: bytes) -> Any:
    machine = _Machine()
    try:
        for instruction, argument, _ in islice(pickletools.genops(data), MOST):
            if instruction.name == "STOP":
                return machine.pop()
            if instruction.name not in INSTRUCTIONS:
                raise NotABatch(f"the official files do not contain {instruction.name}")
            INSTRUCTIONS[instruction.name](machine, argument)
    except NotABatch:
        raise
    except ValueError as error:  # from pickletools: an unknown or truncated opcode
        raise NotABatch("it is damaged or truncated") from error
    raise NotABatch("it has too many instructions")


def _pixels(array: Any, rows: int) -> NDArray[np.uint8]:
    """The rows of an array as the official files describe it: contiguous bytes, row by row."""
    if not isinstance(array, _Called) or array.call != ARRAY or not isinstance(array.state, tuple):
        raise NotABatch("its data is not an array")
    version, shape, dtype, by_columns, content = (*array.state, *[None] * 5)[:5]
    if not isinstance(dtype, _Called) or (dtype.call, dtype.state) != (DTYPE, DTYPE_STATE):
        raise NotABatch("its array is not of single bytes (uint8)")
    if (version, shape, by_columns) != (1, (rows, ROW), False) or len(array.state) != 5:
        raise NotABatch(f"its array is not {rows} rows of {ROW} bytes")
    if not isinstance(content, str) or len(content) != rows * ROW:
        raise NotABatch(f"its array does not hold {rows} × {ROW} bytes")
    # pickletools decodes byte strings as latin-1, one character per byte.
    return np.frombuffer(content.encode("latin-1"), np.uint8).reshape(rows, ROW)
