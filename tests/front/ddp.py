"""One of two processes that train one module together: `python ddp.py FOLDER RANK`.

Leaves the gradients in FOLDER/RANK.safetensors.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
from conftest import TINY_RING
from safetensors.torch import save_file
from torch import nn
from torch._C._distributed_c10d import FileStore

from radialbeams.front.module import Canonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.architectures import build


def main(folder: Path, rank: int) -> None:
    torch.manual_seed(0)
    module = Canonicalizer(build(TINY_RING), parent_size=54, hard=False).eval()
    images = torch.rand(2, 3, 40, 50, generator=torch.Generator().manual_seed(rank))
    store = FileStore(str(folder / "store"), 2)
    wait = timedelta(seconds=200)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=wait)
    shared = nn.parallel.DistributedDataParallel(module)
    upright, pose = shared(images)
    if not isinstance(pose, Pose):
        raise TypeError(f"Expected a pose; got {type(pose)}.")
    (upright * images).sum().backward()
    gradients = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    save_file(gradients, folder / f"{rank}.safetensors")
    torch.distributed.destroy_process_group()
    # Without letting go of the store: where two do that at once, one sometimes waits for ever.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
