"""Attributes of a file: owner, permissions, extended attributes, times and hard links."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

# The system's own labels, which a new file gets by the system's rules.
_SYSTEM_LABELS = ("security.selinux", "security.ima", "security.evm", "system.nfs4_acl")

PERMISSIONS = 0o777  # without the bits that let a program run as its owner


class AttributesError(ValueError):
    """A replaced file would lose something that is not in its bytes; the sentence says what."""


def check_links(path: str) -> None:
    """Refuses a file with several names: replacing it under one leaves the others unturned."""
    names = os.stat(path).st_nlink
    if names > 1:
        raise AttributesError(
            f"It has {names} names (hard links), and only this one would get the turned image. "
            "Name an output with -o, or add --force to replace it under this name only."
        )


def check_writable(path: str) -> None:
    """Refuses a file that somebody protected, even where its folder allows to replace it."""
    if not os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise AttributesError(
            "It is read-only. Change its permissions, name an output with -o, or add --force to "
            "replace it all the same."
        )


def copy_to_output(source: str, target: str | int) -> None:
    """Gives an output elsewhere the permissions, extended attributes and times of its input.

    As far as the file system allows: the input still has them.
    """
    found = os.stat(source)
    with suppress(OSError):
        os.chmod(target, stat.S_IMODE(found.st_mode) & PERMISSIONS)
    with suppress(OSError):
        _copy_extended(source, target)
    with suppress(OSError):
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def copy(source: str, target: str | int, *, force: bool = False) -> None:
    """Gives `target`, a file of our own, the attributes of `source`.

    Give the target's descriptor where the system can use it (`by_descriptor`): somebody may put a
    link where a path leads. Where an attribute cannot be given, an AttributesError says what would
    be lost, or with `force` it is lost.
    """
    found = os.stat(source)
    lost = [] if _copy_owner(found, target) else ["its owner or group"]
    # After the owner: changing that may clear bits of the mode.
    os.chmod(target, stat.S_IMODE(found.st_mode))
    lost += _copy_extended(source, target)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    if lost and not force:
        raise AttributesError(
            f"Replaced, it would lose {' and '.join(lost)}. Name an output with -o, or add "
            "--force to replace it all the same."
        )


def by_descriptor() -> bool:
    return {os.stat, os.chmod, os.utime} <= os.supports_fd


def _copy_owner(found: os.stat_result, target: str | int) -> bool:
    own = os.stat(target)
    if (own.st_uid, own.st_gid) == (found.st_uid, found.st_gid):
        return True
    if not hasattr(os, "chown"):
        return True  # the system has other means than owners
    try:
        os.chown(target, found.st_uid, found.st_gid)
    except PermissionError:
        return False
    return True


def _copy_extended(source: str, target: str | int) -> list[str]:
    """Access control lists are among them on Linux. Returns the names of those that are lost."""
    if not hasattr(os, "listxattr"):
        return []
    lost = []
    for name in _names(source):
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            if name not in _SYSTEM_LABELS:
                lost.append(f"the extended attribute {name}")
    for name in set(_names(target)) - set(_names(source)):  # such as those that a folder hands on
        with suppress(OSError):
            os.removexattr(target, name)
    return lost


def _names(path: str | int) -> list[str]:
    try:
        return os.listxattr(path)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM, errno.EACCES):
            return []
        raise
