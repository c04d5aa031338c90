"""CIFAR-10's python batches: the official form is read, and nothing else gets near numpy."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radialbeams.training.data import cifar
from radialbeams.training.data.cifar import INSTRUCTIONS, NotABatch, read_batch
from tests.training.data.test_sets import noise, python2_pickle

# An array of one record whose only field is an object: its eight bytes are taken for an address.
ADDRESS = b"\x41" * 8
HOSTILE = (
    b"\x80\x02}(U\x04dataNU\x06labels"
    b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    b"(K\x01K\x01\x85cnumpy\ndtype\nU\x02V8K\x00K\x01\x87R(K\x03U\x01|NU\x01a\x85}U\x01a"
    b"cnumpy\ndtype\nU\x01OK\x00K\x01\x87RK\x00\x86sK\x08K\x01K\x00tb\x89U\x08" + ADDRESS + b"tbu."
)
READ = """
import sys
from pathlib import Path
from radialbeams.training.data import load
try:
    load("cifar10", root=Path(sys.argv[1]))
except ValueError as error:
    print(error)
"""


def test_a_record_of_objects_does_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "data_batch_1").write_bytes(HOSTILE)
    command = [sys.executable, "-c", READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Expected a batch of CIFAR-10; got data_batch_1, refused: " in done.stdout


def test_the_official_form_is_read() -> None:
    pixels, labels = noise(3, 3072), [7, 0, 9]
    found, found_labels = read_batch(python2_pickle(pixels, labels))
    assert found.dtype == np.uint8 and found.flags.c_contiguous
    assert np.array_equal(found, pixels)
    assert found_labels == labels


def test_a_batch_with_memo_and_file_names_is_read() -> None:
    """Python 2 numbers every value, and the official batches name each image's file."""
    whole = python2_pickle(noise(2, 3072), [1, 2])
    names = b"U\x09filenamesq\x01](U\x05a.pngq\x02h\x02eu."
    assert whole.endswith(b"u.")
    assert read_batch(whole[:-2] + names)[1] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"U\x02u1", b"U\x02i1", r"not of single bytes \(uint8\)"),
        (b"U\x02u1", b"U\x01O", r"not of single bytes \(uint8\)"),
        (b"U\x01|NNN", b"U\x01|N}N", r"not of single bytes \(uint8\)"),
        (b"M\x02\x00M\x00\x0c\x86", b"M\x03\x00M\x00\x0c\x86", "not 2 rows of 3072 bytes"),
        (b"M\x02\x00M\x00\x0c\x86", b"M\x02\x00M\x01\x0c\x86", "not 2 rows of 3072 bytes"),
        (b"\x89T", b"\x88T", "not 2 rows of 3072 bytes"),
        (b"K\x01K\x02e", b"K\x01U\x01ae", "labels are not a list of numbers"),
        (b"K\x01K\x02e", b"K\x01\x88e", "labels are not a list of numbers"),
        (b"K\x00\x85U\x01b", b"K\x09\x85U\x01b", "its data is not an array"),
        (b"cnumpy\nndarray", b"cnumpy\nmatrix", r"refers to numpy\.matrix"),
        (b"\x80\x02}", b"\x80\x02(d", "the official files do not contain DICT"),
        (b"\x80\x02}", b"\x80\x02", "instructions do not fit together"),
    ],
)
def test_a_batch_that_departs_from_the_official_form_is_refused(
    old: bytes, new: bytes, why: str
) -> None:
    whole = python2_pickle(np.zeros((2, 3072), np.uint8), [1, 2])  # noise may hold any two bytes
    assert whole.count(old) == 1
    with pytest.raises(NotABatch, match=why):
        read_batch(whole.replace(old, new))


def test_an_array_of_other_than_its_size_is_refused() -> None:
    whole = python2_pickle(noise(2, 3072), [1, 2])
    start = whole.index(b"T" + struct.pack("<I", 2 * 3072))
    with pytest.raises(NotABatch, match="does not hold 2 × 3072 bytes"):
        read_batch(whole[:start] + b"U\x03abctbu.")


def test_pickles_of_python_3_are_refused() -> None:
    content = pickle.dumps({"data": noise(1, 3072), "labels": [1]})
    with pytest.raises(NotABatch, match="the official files do not contain FRAME"):
        read_batch(content)


def test_endless_instructions_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "MOST", 1000)
    with pytest.raises(NotABatch, match="too many instructions"):
        read_batch(b"\x80\x02" + b"(" * 1001)


def check(data: bytes) -> None:
    """A batch, or NotABatch with a short reason."""
    try:
        pixels, labels = read_batch(data)
    except NotABatch as error:
        assert 0 < len(str(error)) < 120
        return
    assert pixels.dtype == np.uint8
    assert pixels.shape == (len(labels), 3072)


WHOLE = python2_pickle(noise(1, 3072), [3])
HEAD = WHOLE.index(b"T\x00\x0c\x00\x00")  # the pixels behind it are inert


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_batches_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, HEAD + 5) | st.integers(-3, -1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.just(len(content)) | st.integers(0, len(content)))
    check(bytes(content[:cut]))


CODES = [
    code.encode("latin-1") for code in "}](e)tR\x85\x86\x87bsuaN\x88\x89.0129dlopiQSIVX\x93\x94"
]
TOKENS = [
    *CODES,
    *(b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"cnumpy.core.multiarray\n_reconstruct\n"),
    *(b"cos\nsystem\n", b"U\x04data", b"U\x06labels", b"U\x02u1", b"K\x00", b"K\x01", b"M\x00\x0c"),
    *(b"q\x01", b"h\x01", b"r\xff\xff\xff\x7f", b"j\xff\xff\xff\x7f", b"T\xff\xff\xff\x7f"),
    *(b"\x8a\x01\x05", b"\x8b\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 8, b"\x95" + b"\xff" * 8),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TOKENS) | st.binary(max_size=3), max_size=40))
def test_any_instructions_are_read_or_refused(tokens: list[bytes]) -> None:
    check(b"\x80\x02" + b"".join(tokens) + b".")


def test_no_instruction_calls_or_imports() -> None:
    assert not INSTRUCTIONS.keys() & {"STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1"}
