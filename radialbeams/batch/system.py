"""What differs between operating systems: timers, memory limits, handles that a child inherits.

Each function has a portable form, which may do less. No other module of the package imports
`fcntl` or `resource`, or uses a signal that Windows does not have.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

TICK = 0.25  # seconds between two looks of the watchdog
_CPU_SIGNALS = {number for name in ("SIGPROF", "SIGXCPU") if (number := getattr(signal, name, 0))}


# --- files -------------------------------------------------------------------------------------


def lock(handle: int) -> bool:
    """Whether this process now has the file for itself; True as well where there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


# --- limits of this process --------------------------------------------------------------------


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


# --- other processes ---------------------------------------------------------------------------


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
