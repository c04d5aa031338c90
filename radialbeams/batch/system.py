"""What differs between operating systems: locks, owners, syncing, timers, memory, processes.

Each function has a portable fallback, which may do less. No other module of the package imports
`fcntl`, `msvcrt` or `resource`, or uses a signal that Windows does not have.
"""

from __future__ import annotations

import importlib
import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def _module(name: str) -> Any:
    """The module, or None if the system does not have it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = map(_module, ("fcntl", "msvcrt", "resource"))
LOCKED_BYTE = 1 << 40  # Windows locks byte ranges; this byte lies beyond the content of any file
# Windows neither has nor needs most of these.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
BINARY: int = getattr(os, "O_BINARY", 0)
TICK = 0.25  # seconds between two checks by the watchdog
_CPU_SIGNALS = {number for name in ("SIGPROF", "SIGXCPU") if (number := getattr(signal, name, 0))}
REPLACES_OPEN_FILES = os.name == "posix"


class Untrusted(Exception):
    """A file that another user created or can change."""


# --- locks ---


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """False if another process holds the lock; always True on a file system without locks."""
    if fcntl is not None:
        return _try_flock(descriptor, shared)
    if msvcrt is not None:
        return _try_locking(descriptor)
    return True


def _try_flock(descriptor: int, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _try_locking(descriptor: int) -> bool:
    """Windows has only exclusive locks, and raises PermissionError if one is held."""
    os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except PermissionError:
        return False
    except OSError:
        return True
    return True


# --- files ---


def open_new(path: str, *, private: bool = False) -> int:
    """A descriptor of a new file; raises FileExistsError if it exists, and follows no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY
    return os.open(path, flags, 0o600 if private else 0o666)


def open_own(path: str, *, create: bool = False) -> int:
    """A descriptor of a regular file that this user owns and that has only one name.

    Raises Untrusted for any other file, and for a link. `create` creates the file if necessary
    and opens it for appending.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT if create else os.O_RDONLY
    if os.path.islink(path):
        raise Untrusted(path)
    descriptor = os.open(path, flags | NO_FOLLOW | NO_WAIT | BINARY, 0o600)
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode) and info.st_nlink <= 1 and is_own(info, os.path.dirname(path)):
        return descriptor
    os.close(descriptor)
    raise Untrusted(path)


def is_own(info: os.stat_result, folder: str) -> bool:
    """Whether a file belongs to this user, or to the owner of new files of this user in `folder`.

    Some network file systems assign the files that a user creates to another user.
    """
    if not hasattr(os, "geteuid") or info.st_uid == os.geteuid():
        return True
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_uid == info.st_uid
    return False


def make_folders(folder: str) -> None:
    """Like `os.makedirs`, but not recursive, so that it works for any depth."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        parent = os.path.dirname(folder)
        folder = "" if parent == folder else parent
    for name in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(name)


# --- syncing to disk ---


def sync(descriptor: int) -> None:
    """Waits until the content of a file is on the disk, not only in the disk's cache."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, where fsync does not flush the disk's cache
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: str) -> None:
    """Syncs the file names in a folder, so that they survive a power cut; ignores failure."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- limits of this process ---


def limit_cpu(seconds: float) -> None:
    """Ends this process after `seconds` more of CPU time, even inside a C decoder; 0: no limit.

    Windows has no such timer; there, only the watchdog of the parent limits a worker.
    """
    if hasattr(signal, "setitimer") and hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


@contextmanager
def deadline(seconds: float, sentence: str) -> Iterator[None]:
    """Prints `sentence` and exits with code 1 if the block takes more than `seconds`.

    This is wall-clock time, except that it does not pass while the process is suspended. Only for
    blocks that may hang inside a library, where no exception can interrupt them.
    """
    done = threading.Event()

    def wait() -> None:
        left, last = seconds, time.monotonic()
        while not done.wait(TICK):
            now = time.monotonic()
            left, last = left - min(now - last, 2 * TICK), now
            if left < 0:
                os.write(2, f"{sentence}\n".encode())
                os._exit(1)

    threading.Thread(target=wait, name="deadline", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def limit_memory(size: int) -> None:
    """Lets this process allocate `size` more bytes; further allocations fail.

    Does nothing if the system cannot limit the address space.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _address_space() + size
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    with suppress(ValueError, OSError):  # macOS refuses some values
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _address_space() -> int:
    """Bytes that this process has mapped; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


# --- other processes ---


def start(
    command: list[str], environment: dict[str, str], *, quiet: bool, handles: tuple[int, ...] = ()
) -> subprocess.Popen[str]:
    """Starts a process with ASCII pipes for standard input and output; it inherits `handles`.

    Without `fcntl`, an inherited handle cannot share a lock, so none is inherited.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
        encoding="ascii",
        env=environment,
        pass_fds=() if fcntl is None else handles,
    )


def ran_out_of_cpu_time(code: int) -> bool:
    """Whether the exit code shows that the timer of `limit_cpu` ended the process."""
    return -code in _CPU_SIGNALS


def exit_reason(code: int) -> str:
    """An exit code in words: the name of the signal that ended the process, or the number."""
    with suppress(ValueError):
        if code < 0:
            return signal.Signals(-code).name
    return f"exit code {code}"


class Watchdog:
    """A thread that kills processes which exceed a wall-clock limit.

    Time does not pass while this process is suspended (Ctrl-Z, a sleeping laptop), nor, for each
    watched process, while that process is suspended.
    """

    def __init__(self) -> None:
        self._awake = 0.0  # seconds
        self._deadlines: dict[subprocess.Popen[str], float] = {}
        self._killed: set[subprocess.Popen[str]] = set()
        self._changes = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def watch(self, process: subprocess.Popen[str], seconds: float) -> None:
        """Kills `process` in `seconds` from now, unless it is watched again or forgotten before."""
        with self._changes:
            self._deadlines[process] = self._awake + seconds

    def forget(self, process: subprocess.Popen[str]) -> None:
        with self._changes:
            self._deadlines.pop(process, None)

    def has_killed(self, process: subprocess.Popen[str]) -> bool:
        return process in self._killed

    def _run(self) -> None:
        last = time.monotonic()
        while not self._closed.wait(TICK):
            now = time.monotonic()
            step = min(now - last, 2 * TICK)  # a longer gap is a suspension
            last = now
            with self._changes:
                self._tick(step)

    def _tick(self, step: float) -> None:
        self._awake += step
        for process, deadline in list(self._deadlines.items()):
            if _is_suspended(process.pid):
                self._deadlines[process] = deadline + step
            elif self._awake > deadline:
                self._killed.add(process)
                del self._deadlines[process]
                process.kill()


def _is_suspended(pid: int) -> bool:
    """Whether a child was stopped by a signal; False if the system cannot tell."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:  # it has ended
        return False
