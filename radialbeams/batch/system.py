"""What differs between operating systems: locks, owners, power cuts, timers, memory, processes.

Each function has a portable form, which may do less. No other module of the package imports
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
    """None where the system has no such module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = map(_module, ("fcntl", "msvcrt", "resource"))
LOCKED_BYTE = 1 << 40  # Windows locks ranges of bytes; this one lies beyond all content
# Windows neither has nor needs most of these.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
BINARY: int = getattr(os, "O_BINARY", 0)
TICK = 0.25  # seconds between two looks of the watchdog
_CPU_SIGNALS = {number for name in ("SIGPROF", "SIGXCPU") if (number := getattr(signal, name, 0))}
REPLACES_OPEN_FILES = os.name == "posix"


class Untrusted(Exception):
    """A file that another user made, or may change."""


# --- locks ---


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """False where another process holds the lock. A file system without locks refuses nobody."""
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
    """Windows has exclusive locks only, and reports one that is held as a lack of permission."""
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
    """A descriptor of a file that did not exist before; never follows a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY
    return os.open(path, flags, 0o600 if private else 0o666)


def open_own(path: str, *, create: bool = False) -> int:
    """A descriptor of a file of this user's, which has no other name and is no link.

    Raises Untrusted for any other. `create` also opens it for appending.
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
    """Whether this user owns a file, or at least whoever owns what this user creates in `folder`.

    Some network file systems give all that a user creates to another one.
    """
    if not hasattr(os, "geteuid") or info.st_uid == os.geteuid():
        return True
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_uid == info.st_uid
    return False


def make_folders(folder: str) -> None:
    """Like `os.makedirs`, for any depth: it does not call itself."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        parent = os.path.dirname(folder)
        folder = "" if parent == folder else parent
    for name in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(name)


# --- power cuts ---


def sync(descriptor: int) -> None:
    """Waits until a file's content is on the disk, not only in the disk's own memory."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, where fsync alone promises less
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: str) -> None:
    """So that the names in it survive a power cut too, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- limits of this process ---


def limit_cpu(seconds: float) -> None:
    """Ends this process after `seconds` more of computing, even inside a C decoder; 0: never.

    Windows has no such timer; there the watchdog of the parent is the only one.
    """
    if hasattr(signal, "setitimer") and hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


@contextmanager
def deadline(seconds: float, sentence: str) -> Iterator[None]:
    """Ends this process with `sentence` and exit code 1 if the block takes longer by the clock.

    The clock stands still while the process is suspended. Only for blocks that may hang inside a
    library, where no exception can reach them.
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
    """Lets this process allocate `size` bytes more than it has; then allocations fail.

    Where the system cannot limit the address space, nothing happens.
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
    """Bytes that this process has mapped; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


# --- other processes ---


def start(
    command: list[str], environment: dict[str, str], *, quiet: bool, handles: tuple[int, ...] = ()
) -> subprocess.Popen[str]:
    """A process with ASCII pipes for its input and output, which inherits `handles`.

    Without `fcntl` no lock can be shared through an inherited handle, so none is inherited.
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
    """Whether an exit code says that the timer of `limit_cpu` ended the process."""
    return -code in _CPU_SIGNALS


def exit_reason(code: int) -> str:
    """An exit code in words: the name of the signal that ended the process, or the number."""
    with suppress(ValueError):
        if code < 0:
            return signal.Signals(-code).name
    return f"exit code {code}"


class Watchdog:
    """Kills processes that take too long by the clock, from a thread of this process.

    The clock stands still while this process is suspended (Ctrl-Z, a sleeping laptop), and a
    process's own clock stands still while that process is.
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
        """From now on, `process` has so many seconds until the next call for it."""
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
    """Whether a child was stopped by a signal; False where the system does not say."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except OSError:  # it has ended
        return False
