"""Whether a graph is being exported to a file, which must run where our kernels cannot."""

from __future__ import annotations

import torch


def is_exporting() -> bool:
    """As `torch.compiler.is_exporting`, which before torch 2.13 is also true in `torch.compile`."""
    return torch.compiler._is_exporting_flag
