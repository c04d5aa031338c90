"""Formats that need a plug-in: named where it is missing, read and written where it is there."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from radialbeams import images
from radialbeams.batch import walk
from radialbeams.canonicalizer import canonicalize
from radialbeams.cli import main
from radialbeams.demo import PICTURES
from radialbeams.images import ImageError, plugins

HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
JXL = b"\xff\x0a" + bytes(20)


@pytest.mark.parametrize(("start", "words"), [(HEIC, "HEIC or HEIF"), (JXL, "JPEG XL")])
def test_a_missing_plugin_is_named(
    monkeypatch: pytest.MonkeyPatch, start: bytes, words: str
) -> None:
    monkeypatch.setattr(plugins, "is_installed", lambda name: False)
    with pytest.raises(ImageError, match=rf"It is {words}, .*pip install .*\[heif\]"):
        images.read(start + bytes(99))


def test_files_in_a_folder_that_need_a_plugin_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(plugins, "is_installed", lambda name: False)
    monkeypatch.setattr(walk, "_with_plugins", set)
    (tmp_path / "a.heic").write_bytes(HEIC)
    main(["angle", str(tmp_path), "--json"])
    err = capsys.readouterr().err
    assert (
        "1 .heic" in err
        and 'to read .heic files: pip install -c constraints.txt -e ".[heif]"' in err
    )


def test_avif_needs_no_plugin() -> None:
    assert plugins.format_of(b"\0\0\0\x1cftypavif") is None
    assert plugins.format_of(b"\xff\xd8\xff\xe0") is None


@pytest.mark.parametrize("name", ["HEIF", "JXL"])
def test_with_its_plugin_a_picture_is_read_and_written(name: str) -> None:
    if find_spec(plugins.PLUGINS[name][1]) is None:
        pytest.skip(f"{plugins.PLUGINS[name][1]} is not installed")
    plugins.load(name)
    with Image.open(PICTURES / "astronaut.webp") as picture:
        sideways = picture.convert("RGB").transpose(Image.Transpose.ROTATE_90)
    stream = io.BytesIO()
    sideways.save(stream, name)
    result = canonicalize(stream.getvalue())
    assert result.applied_degrees == 90
    turned = images.read(result.image)
    assert (turned.format, turned.image.size) == (name, sideways.size[::-1])
