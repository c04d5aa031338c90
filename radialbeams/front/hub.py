"""The torch module on the Hugging Face Hub. It saves the same files as the folder of a run.

HubCanonicalizer.around(Canonicalizer.from_pretrained("ring.lfw")).push_to_hub("me/faces")
canonicalizer = HubCanonicalizer.from_pretrained("me/faces")
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import (  # type: ignore[import-not-found, unused-ignore]
    ModelHubMixin,
    snapshot_download,
)

from radialbeams.cards import ViewProtocol
from radialbeams.defaults import ABSTAIN
from radialbeams.front.module import TorchCanonicalizer
from radialbeams.posterior import Calibration, Thresholds
from radialbeams.stored import JsonDict
from radialbeams.training.weights import new_card, save_model

FILES = ["model.json", "model.safetensors"]

# The thresholds besides `abstain`.
THRESHOLDS = ("still_degrees", "most_upright", "least_quarter", "least_exact", "tilts")


class HubCanonicalizer(ModelHubMixin, TorchCanonicalizer, library_name="radialbeams"):  # type: ignore[misc, call-arg, unused-ignore]
    """A `Canonicalizer` with `save_pretrained`, `push_to_hub` and `from_pretrained(hub id)`.

    Its options are saved too: the mixin stores them in a config.json.
    """

    @classmethod
    def around(cls, canonicalizer: TorchCanonicalizer) -> HubCanonicalizer:
        """Wraps a module: the result shares its network and has the same options.

        Its thresholds are saved on the card, unless it has measured ones from a card.
        """
        made = cls(canonicalizer.network, **_options(canonicalizer))
        made.measured = canonicalizer.measured
        made.looks = canonicalizer.looks
        return made.train(canonicalizer.training)

    @classmethod
    def from_pretrained(cls, name: str | Path, **options: Any) -> HubCanonicalizer:  # type: ignore[override, unused-ignore]
        """Loads a module from a folder or the hub. Options given here override the saved ones.

        `abstain="card"` takes all thresholds from the card, as `Canonicalizer` does; it is the
        default for a folder without saved options.
        """
        # `_from_pretrained` cannot tell the options given here from the saved ones otherwise.
        canonicalizer: HubCanonicalizer = super().from_pretrained(
            name, **options, given=frozenset(options)
        )
        return canonicalizer

    def _save_pretrained(self, save_directory: Path) -> None:
        geometry = self.view_geometry
        protocol = ViewProtocol("paper")
        if geometry.parent_size:
            protocol = ViewProtocol(
                "leakfree", geometry.parent_size, sigma=geometry.sigma, reach=geometry.reach
            )
        card = replace(
            new_card(self.network, protocol),
            calibration=Calibration(self.temperature, math.degrees(self.spread)),
            abstain=self.measured or _in_force(self),
            looks=self.looks,
        )
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
        given: frozenset[str] = frozenset(),
        **options: Any,  # from the mixin: those in config.json, overridden by the caller's
    ) -> HubCanonicalizer:
        folder = Path(model_id)
        if not folder.is_dir():
            downloaded = snapshot_download(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                allow_patterns=FILES,
            )
            folder = Path(downloaded)
        folder = folder.resolve()  # absolute, so that it is not taken for a pretrained model's name
        abstain = options.get("abstain", ABSTAIN)
        by_card = isinstance(abstain, str)
        plain = TorchCanonicalizer.from_pretrained(folder, abstain=abstain if by_card else None)
        if by_card:  # ignore the thresholds that were saved as options
            replaced = {"abstain", *(set(THRESHOLDS) - given)}
            options = {key: value for key, value in options.items() if key not in replaced}
        made = cls(plain.network, **{**_options(plain), **options}).eval()
        made.measured, made.looks = plain.measured, plain.looks
        return made


def _options(canonicalizer: TorchCanonicalizer) -> JsonDict:
    geometry = canonicalizer.view_geometry
    return {
        "parent_size": geometry.parent_size,
        "sigma": geometry.sigma,
        "reach": geometry.reach,
        "hard": canonicalizer.hard,
        "abstain": canonicalizer.abstain,
        "still_degrees": math.degrees(canonicalizer.still),
        "most_upright": canonicalizer.most_upright,
        "least_quarter": canonicalizer.least_quarter,
        "least_exact": canonicalizer.least_exact,
        "tilts": canonicalizer.tilts,
        "snap": canonicalizer.snap,
        "canvas": canonicalizer.canvas,
        "fill": canonicalizer.fill,
        "returns": canonicalizer.returns,
        "temperature": canonicalizer.temperature,
        "spread_degrees": math.degrees(canonicalizer.spread),
    }


def _in_force(canonicalizer: TorchCanonicalizer) -> Thresholds | None:
    """The thresholds in use, in the format of a card; None if every image is turned."""
    if canonicalizer.abstain is None:
        return None
    return Thresholds(
        canonicalizer.abstain,
        round(math.degrees(canonicalizer.still), 9),
        canonicalizer.most_upright,
        canonicalizer.least_quarter,
        canonicalizer.least_exact,
        canonicalizer.tilts,
    )
