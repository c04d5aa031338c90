"""The torch module on the Hugging Face Hub. What it saves is a run's folder, so either reads it.

HubCanonicalizer.around(Canonicalizer.from_pretrained("ring.lfw")).push_to_hub("me/faces")
canonicalizer = HubCanonicalizer.from_pretrained("me/faces")
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from huggingface_hub import (  # type: ignore[import-not-found, unused-ignore]
    ModelHubMixin,
    snapshot_download,
)

from radialbeams.nn.module import Canonicalizer
from radialbeams.training.weights import load_model, save_model

FILES = ["model.json", "model.safetensors"]


class HubCanonicalizer(ModelHubMixin, Canonicalizer, library_name="radialbeams"):  # type: ignore[misc, call-arg, unused-ignore]
    """A `Canonicalizer` with `save_pretrained`, `push_to_hub` and `from_pretrained(hub id)`.

    Its options come back with it: the mixin keeps them in a config.json.
    """

    @classmethod
    def around(cls, canonicalizer: Canonicalizer) -> HubCanonicalizer:
        """With the very same network, and the same options."""
        sight = canonicalizer.sight
        made = cls(
            canonicalizer.network,
            parent_size=sight.square_size if sight.leakfree else None,
            hard=canonicalizer.hard,
            abstain=canonicalizer.abstain,
            still_degrees=math.degrees(canonicalizer.still),
            most_upright=canonicalizer.most_upright,
            canvas=canonicalizer.canvas,
            fill=canonicalizer.fill,
            returns=canonicalizer.returns,
            temperature=canonicalizer.temperature,
            spread_degrees=math.degrees(canonicalizer.spread),
        )
        return made.train(canonicalizer.training)

    def _save_pretrained(self, save_directory: Path) -> None:
        leakfree = {"name": "leakfree", "parent_size": self.sight.square_size}
        card: dict[str, Any] = {"protocol": leakfree if self.sight.leakfree else {"name": "paper"}}
        if self.network.config.decoder == "ring":
            spread = math.degrees(self.spread)
            card["calibration"] = {"temperature": self.temperature, "spread": spread}
        save_model(save_directory / "model", self.network, card)

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **options: Any,  # the mixin's: what config.json says, and what the caller says instead
    ) -> HubCanonicalizer:
        folder = Path(model_id)
        if not folder.is_dir():
            found = snapshot_download(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                allow_patterns=FILES,
            )
            folder = Path(found)
        network, _ = load_model(folder / "model")
        return cls(network, **options).eval()
