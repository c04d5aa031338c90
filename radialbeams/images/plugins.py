"""Formats that Pillow reads with third-party plug-ins: HEIC and HEIF, JPEG XL.

A plug-in is loaded when the first such file is read, so that other users do not wait for it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from radialbeams.extras import install_command
from radialbeams.images.picture import ImageError

EXTRA = install_command("heif")
# For Pillow's name of each format: its usual name, the package, and the file extensions.
PLUGINS = {
    "HEIF": ("HEIC or HEIF", "pillow_heif", (".heic", ".heif", ".hif")),
    "JXL": ("JPEG XL", "pillow_jxl", (".jxl",)),
}
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_JXL_STARTS = (b"\xff\x0a", b"\0\0\0\x0cJXL ")


def format_of(start: bytes) -> str | None:
    """The format, by the first bytes of a file, if it needs a plug-in; else None."""
    if start[4:8] == b"ftyp" and start[8:12] in _HEIF_BRANDS:
        return "HEIF"
    return "JXL" if start.startswith(_JXL_STARTS) else None


def load(name: str) -> None:
    """Registers the plug-in with Pillow; raises ImageError if it is not installed."""
    words, package, _ = PLUGINS[name]
    if not is_installed(name):
        raise ImageError(
            f"It is {words}, which needs a plug-in. Install it in your clone with {EXTRA}, or "
            "convert the file to JPEG or PNG.",
            for_clients=f"It is {words}, which this service cannot read. Convert it to JPEG or "
            "PNG first.",
        )
    module = import_module(package)
    if name == "HEIF":
        module.register_heif_opener()


@cache
def is_installed(name: str) -> bool:
    return find_spec(PLUGINS[name][1]) is not None


def suffixes() -> set[str]:
    """File extensions of the formats whose plug-ins are installed."""
    return {s for name, (*_, endings) in PLUGINS.items() if is_installed(name) for s in endings}


def missing_suffixes() -> set[str]:
    return {s for *_, endings in PLUGINS.values() for s in endings} - suffixes()
