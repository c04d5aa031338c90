"""Formats that Pillow reads with plug-ins of others: HEIC and HEIF, JPEG XL.

They are loaded when such a file is met, so that nobody else waits for them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from radialbeams.images.picture import ImageError

EXTRA = "pip install 'radialbeams[heif]'"
# By Pillow's name of the format: what people call it, the package, and the endings of its files.
PLUGINS = {
    "HEIF": ("HEIC or HEIF", "pillow_heif", (".heic", ".heif", ".hif")),
    "JXL": ("JPEG XL", "pillow_jxl", (".jxl",)),
}
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_JXL_STARTS = (b"\xff\x0a", b"\0\0\0\x0cJXL ")


def format_of(start: bytes) -> str | None:
    """The format that needs a plug-in, by the first bytes of a file."""
    if start[4:8] == b"ftyp" and start[8:12] in _HEIF_BRANDS:
        return "HEIF"
    return "JXL" if start.startswith(_JXL_STARTS) else None


def load(name: str) -> None:
    """Teaches Pillow the format, or says what to install."""
    words, package, _ = PLUGINS[name]
    if not is_installed(name):
        raise ImageError(
            f"It is {words}, which needs a plug-in. Install it with {EXTRA}, or convert the file "
            "to JPEG or PNG."
        )
    module = import_module(package)
    if name == "HEIF":
        module.register_heif_opener()


@cache
def is_installed(name: str) -> bool:
    return find_spec(PLUGINS[name][1]) is not None


def suffixes() -> set[str]:
    """Endings of the formats whose plug-ins are installed."""
    return {s for name, (*_, endings) in PLUGINS.items() if is_installed(name) for s in endings}


def missing_suffixes() -> set[str]:
    return {s for *_, endings in PLUGINS.values() for s in endings} - suffixes()
