"""File attributes: owner, permissions, extended attributes, times and hard links."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

# Labels that the system sets on every new file by its own rules; they need not be copied.
_SYSTEM_LABELS = ("security.selinux", "security.ima", "security.evm", "system.nfs4_acl")

PERMISSIONS = 0o777  # without the set-user-ID, set-group-ID and sticky bits


class AttributesError(ValueError):
    """Replacing the file would lose something that is not in its bytes; the message says what."""


def check_links(path: str) -> None:
    """Refuses a file with several hard links: replacing one name leaves the others unturned."""
    names = os.stat(path).st_nlink
    if names > 1:
        raise AttributesError(
            f"It has {names} names (hard links), and only this one would get the turned image. "
            "Choose an output with -o, or add --force to replace it under this name only."
        )


def check_writable(path: str) -> None:
    """Refuses a read-only file, even if the permissions of its folder allow replacing it."""
    if not os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise AttributesError(
            "It is read-only. Change its permissions, choose an output with -o, or add --force to "
            "replace it anyway."
        )


def copy_to_output(source: str, target: str | int) -> None:
    """Copies permissions, extended attributes and times from an input to its separate output.

    Attributes that the file system refuses are skipped: nothing is lost, since the input keeps
    them.
    """
    status = os.stat(source)
    with suppress(OSError):
        os.chmod(target, stat.S_IMODE(status.st_mode) & PERMISSIONS)
    with suppress(OSError):
        _copy_extended(source, target)
    with suppress(OSError):
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def copy(source: str, target: str | int, *, force: bool = False) -> None:
    """Copies all attributes of `source` to `target`, a file that this program created.

    Pass the target's file descriptor where the system supports it (`by_descriptor`): a path could
    be replaced by a link in the meantime. Raises AttributesError if an attribute cannot be copied,
    unless `force` is set.
    """
    status = os.stat(source)
    lost = [] if _copy_owner(status, target) else ["its owner or group"]
    # After the owner, because changing the owner may clear bits of the mode.
    os.chmod(target, stat.S_IMODE(status.st_mode))
    lost += _copy_extended(source, target)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    if lost and not force:
        raise AttributesError(
            f"Replacing it would lose {' and '.join(lost)}. Choose an output with -o, or add "
            "--force to replace it anyway."
        )


def by_descriptor() -> bool:
    return {os.stat, os.chmod, os.utime} <= os.supports_fd


def _copy_owner(status: os.stat_result, target: str | int) -> bool:
    own = os.stat(target)
    if (own.st_uid, own.st_gid) == (status.st_uid, status.st_gid):
        return True
    if not hasattr(os, "chown"):
        return True  # this system does not have owners of this kind
    try:
        os.chown(target, status.st_uid, status.st_gid)
    except PermissionError:
        return False
    return True


def _copy_extended(source: str, target: str | int) -> list[str]:
    """Copies extended attributes (on Linux, access control lists too); returns those it lost."""
    if not hasattr(os, "listxattr"):
        return []
    lost = []
    for name in _names(source):
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            if name not in _SYSTEM_LABELS:
                lost.append(f"the extended attribute {name}")
    for name in set(_names(target)) - set(_names(source)):  # for example inherited from the folder
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
