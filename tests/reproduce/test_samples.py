"""`reproduce samples`: equal sizes, which loss reaches which network, and images needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from radialbeams.nn.losses import LossInputs, RingLoss
from radialbeams.reproduce import samples
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.joint import parameters
from radialbeams.reproduce.pipelines import PIPELINES, transformer
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.recipe import Recipe


def recipe(name: str) -> Recipe:
    return samples.recipe(PIPELINES[name], 0, ReproduceSettings())


def test_all_pipelines_have_as_many_parameters() -> None:
    sizes = [parameters(transformer(one, recipe(name), 10)) for name, one in PIPELINES.items()]
    assert max(sizes) < 1.03 * min(sizes)


def reached(name: str) -> tuple[bool, bool]:
    """Whether a step changes the localisation network, and the classifier."""
    torch.manual_seed(0)
    pipeline = PIPELINES[name]
    network = transformer(pipeline, recipe(name), 10)
    images = torch.rand(4, 1, samples.SIDE, samples.SIDE)
    given = LossInputs(
        images, torch.rand(4), torch.arange(4), lambda: images, None, torch.ones(2), RingLoss()
    )
    loss, _ = samples.pipeline_loss(pipeline, torch.arange(4), network, given)
    loss.backward()

    def moved(part: torch.nn.Module | None) -> bool:
        grads = [] if part is None else [p.grad for p in part.parameters()]
        return any(g is not None and bool(g.abs().sum() > 0) for g in grads)

    return moved(network.localiser), moved(network.classifier)


@pytest.mark.parametrize("name", PIPELINES)
def test_every_network_learns(name: str) -> None:
    assert reached(name) == (PIPELINES[name].localiser != "none", True)


def test_a_share_takes_evenly_spaced_images() -> None:
    parts = samples.parts(PIPELINES["ring"], 4)
    assert parts.rows is not None
    assert list(parts.rows(range(12))) == [0, 4, 8]  # type: ignore[arg-type]


def test_images_are_read_between_two_measurements() -> None:
    curve = [(1_000, 0.6), (10_000, 0.8)]
    assert samples._images_for(0.7, curve) == "about 3,200"
    assert samples._images_for(0.5, curve) == "at most 1,000"
    assert samples._images_for(0.9, curve) == "more than 10,000 (80.0%)"


def cells(canonicaliser: dict[int, float], group: dict[int, float]) -> dict[str, Record]:
    """Accuracies by the number of images; augmentation has 70%, other canonicalisers 50%."""
    found = {}
    for name in PIPELINES:
        for share, images in ((16, 1_000), (1, 16_000)):
            known = {"c8": group, "ring": canonicaliser}.get(name)
            middle = known[images] if known else 0.7 if name == "augmented" else 0.5
            found[f"{name}, {share}"] = {
                "images": images,
                "parameters": 7,
                "turned": spread([middle - 0.01, middle, middle + 0.01]),
            }
    return found


@pytest.mark.parametrize(
    ("ring", "rival", "words"),
    [
        ({1_000: 0.8, 16_000: 0.9}, "augmented", "confirmed: the best canonicaliser is better "
         "with 1,000 and 16,000 images"),
        ({1_000: 0.7, 16_000: 0.9}, "augmented", "not confirmed: the best canonicaliser is better "
         "with 16,000 images and not clearly different with 1,000 images"),
        ({1_000: 0.8, 16_000: 0.95}, "c8", "not confirmed: the best canonicaliser is not clearly "
         "different with 16,000 images and worse with 1,000 images"),
    ],
)  # fmt: skip
def test_the_claim_is_judged_by_seeds_where_images_are_few(
    ring: dict[int, float], rival: str, words: str
) -> None:
    found = cells(ring, {1_000: 0.9, 16_000: 0.95})
    assert samples.verdict(found, rival) == words
    assert words in samples.sentence({"cells": found, "notes": []})


def test_the_figure_needs_nothing_but_json(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    found = cells({1_000: 0.8, 16_000: 0.9}, {1_000: 0.9, 16_000: 0.95})
    with figures.style():
        for figure in samples.draw({"data": {"cells": found}}).values():
            figures.save(figure, tmp_path / "samples", quick=False)
