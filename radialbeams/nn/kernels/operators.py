"""How kernels become part of a compiled graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def operator(
    name: str, launch: Callable[..., Any], empty: Callable[..., Any]
) -> Callable[..., Any]:
    """`launch` as an operator that a compiler does not look into; `empty` gives results to fill.

    Outside a compiler it is called as it is, since an operator of its own costs more time on the
    processor than a kernel on the GPU.
    """
    defined = torch.library.custom_op(f"radialbeams::{name}", launch, mutates_args=())
    defined.register_fake(empty)

    def call(*arguments: Any) -> Any:
        return defined(*arguments) if torch.compiler.is_compiling() else launch(*arguments)

    return call
