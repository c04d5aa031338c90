"""What a run changes in its process for a while: how Ctrl-C is handled, and cuDNN's search."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def interrupt_noted() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits for the end of the step: half of one is nothing that could be saved."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # only the main thread is ever interrupted
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def cudnn_search(enabled: bool) -> Iterator[None]:
    """Whether cuDNN times its algorithms and takes the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = enabled
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
