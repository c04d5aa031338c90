"""`reproduce saliency`: maps, whether they turn with the image, and where they lie."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import SIZE, TINY_RING, easy_images

from radialbeams.nn.architectures import build
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.rotation import PADDINGS, rotate
from radialbeams.reproduce import registry, runner, saliency, saliency_maps
from radialbeams.reproduce.saliency_maps import SaliencyProbe
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.thumbnails import decode
from radialbeams.training.data import ImageSet
from radialbeams.training.views import LeakfreeViews, PaperViews


@pytest.fixture
def bic(tiny_model: BIC) -> SaliencyProbe:
    return SaliencyProbe("bic", tiny_model, PaperViews("zeros"), easy_images(6))


@pytest.fixture
def ring() -> SaliencyProbe:
    torch.manual_seed(0)
    return SaliencyProbe(
        "ring", build(TINY_RING).eval(), LeakfreeViews(24), easy_images(6, size=56)
    )


# --- maps ---


def test_a_map_is_the_gradient_of_the_answer(bic: SaliencyProbe) -> None:
    views = bic.views.render(bic.images.images[:1], torch.zeros(1))
    found = saliency_maps.saliency(bic.model, views)[0, 0]
    row, column = divmod(int(found.argmax()), found.shape[1])
    changes = []
    for channel in range(3):
        moved = views.clone()
        moved[0, channel, row, column] += 1e-3
        with torch.no_grad():
            changes.append((bic.model.angles(moved) - bic.model.angles(views)).abs() / 1e-3)
    assert found.max().item() == pytest.approx(max(changes).item(), rel=0.05)


def test_only_what_beams_read_is_salient(bic: SaliencyProbe) -> None:
    found = bic.maps(torch.zeros(6))
    read = bic.sampled() > 0
    assert (found[:, 0, ~read] == 0).all()
    assert (found[:, 0, read] > 0).float().mean() > 0.5


def test_correlation_is_over_the_pixels_inside() -> None:
    maps = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    inside = torch.zeros(8, 8)
    inside[2:6, 2:6] = 1
    changed = torch.where(inside > 0, 3 * maps + 1, torch.zeros(1))
    assert saliency_maps.correlation(maps, changed, inside).tolist() == pytest.approx([1, 1])
    assert saliency_maps.correlation(maps, -maps, inside).tolist() == pytest.approx([-1, -1])
    assert (saliency_maps.correlation(maps, changed, torch.ones(8, 8)) < 0.99).all()


def test_the_ring_s_map_turns_with_the_image_and_the_lstm_s_does_not(
    bic: SaliencyProbe, ring: SaliencyProbe
) -> None:
    quarter = [torch.full((6,), torch.pi / 2)]
    found = {}
    for looker in (bic, ring):
        upright = saliency_maps.blurred(looker.maps(torch.zeros(6)))
        found[looker.name] = saliency_maps.equivariance(looker, quarter, upright)
    assert found["ring"]["back"]["mean"] == pytest.approx(1, abs=1e-3)
    assert found["ring"]["unturned"]["mean"] < 0.99
    assert found["bic"]["back"]["mean"] < 0.99


def test_blurring_keeps_the_sum_and_turns_along() -> None:
    maps = torch.zeros(1, 1, 31, 31)
    maps[0, 0, 12, 15] = 1
    once = saliency_maps.blurred(maps)
    assert once.sum().item() == pytest.approx(1)
    turned = saliency_maps.blurred(rotate(maps, torch.pi / 2))
    assert torch.allclose(turned, rotate(once, torch.pi / 2), atol=1e-6)


# --- where they lie ---


def test_the_border_is_a_band_around_the_image() -> None:
    band = saliency_maps.border(SIZE, torch.zeros(1))[0, 0]
    outer, inner = SIZE + 2 * saliency_maps.BAND, SIZE - 2 * saliency_maps.BAND
    assert band.sum() == outer**2 - inner**2


def test_the_object_is_what_differs_from_the_ground() -> None:
    image = torch.full((1, 3, 4, 4), 30, dtype=torch.uint8)
    image[0, 1, 2, 2] = 90
    image[0, 0, 1, 1] = 40  # noise of the ground
    assert (saliency_maps.object_masks(image)[0, 0] > 0).nonzero().tolist() == [[2, 2]]


def on_a_ground(images: ImageSet) -> ImageSet:
    """A bright square on a dark ground, of the same size."""
    size = images.images.shape[-1]
    pixels = torch.full_like(images.images, 20)
    pixels[..., size // 4 : size // 2, size // 4 : size // 2] = 200
    return replace(images, images=pixels)


def test_densities_average_to_one(
    bic: SaliencyProbe, ring: SaliencyProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    bic, ring = (replace(looker, images=on_a_ground(looker.images)) for looker in (bic, ring))
    flat = torch.ones(6, 1, 1, 1) * bic.sampled()
    monkeypatch.setattr(SaliencyProbe, "maps", lambda self, angles: flat)
    assert saliency_maps.densities(bic, torch.zeros(6)) == pytest.approx(
        {"object": 1, "border": 1, "rest": 1}
    )
    flat = torch.ones(6, 1, 1, 1) * ring.sampled()
    assert set(saliency_maps.densities(ring, torch.zeros(6))) == {"object", "rest"}


def test_the_contrast_is_that_of_the_edge_to_the_padding(bic: SaliencyProbe) -> None:
    image = torch.full((1, 3, 4, 4), 30, dtype=torch.uint8)
    image[0, 1, 0, 0] = 37  # the corner has a colour of its own
    images = replace(easy_images(1), images=image)
    found = {
        padding: saliency_maps.contrast(replace(bic, images=images, views=PaperViews(padding)))
        for padding in PADDINGS
    }
    assert found == {"zeros": 30, "corner": 7}
    assert saliency_maps.contrast(replace(bic, views=LeakfreeViews(24))) is None


# --- the whole ---


def test_the_trainings_differ_in_their_padding_alone() -> None:
    first, second = saliency.trainings(ReproduceSettings(quick=True))
    assert replace(first.recipe, padding="corner") == second.recipe
    assert first.keep and second.keep


def test_all_is_measured_and_drawn_from_json(
    bic: SaliencyProbe, ring: SaliencyProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    four = [bic, ring, *(replace(bic, name=f"short bic, {p}") for p in saliency.PADDED.values())]
    monkeypatch.setattr(saliency, "probes", lambda settings, count: four)
    asked = ReproduceSettings(quick=True, out=tmp_path, devices="cpu")
    experiment = replace(saliency.EXPERIMENT, trainings=lambda settings: [])
    monkeypatch.setattr(registry, "find", lambda name: experiment)
    files = runner.reproduce("saliency", asked)
    record = json.loads(files[0].read_text())
    assert set(record["paper"]) <= set(record["ours"])
    assert len(record["data"]["rows"]) == 4
    objects = record["data"]["pictures"][0]["objects"]
    assert len(objects) == len(saliency.FIGURE_OBJECTS)
    sizes = {decode(turn["input"]).shape[:2] for turns in objects for turn in turns}
    assert sizes == {(saliency.THUMBNAIL_SIZE, saliency.THUMBNAIL_SIZE)}
    assert [path.name for path in files[1:]] == [
        "saliency.png", "saliency.svg", "saliency-measured.png", "saliency-measured.svg",
    ]  # fmt: skip


def test_longer_beams_are_compared_over_a_wider_circle() -> None:
    config = BICConfig.for_images(SIZE, num_beams=8, latent=16, lstm_layers=1)
    longer = replace(config, beam_length=config.beam_length + 3)
    areas = [
        SaliencyProbe("", build(c), PaperViews("zeros"), easy_images(1)).inside().sum()
        for c in (config, longer)
    ]
    assert areas[0] < areas[1]


def test_a_stray_pixel_in_the_corner_is_not_the_background() -> None:
    images = torch.full((1, 3, 16, 16), 20, dtype=torch.uint8)
    images[..., 4:12, 4:12] = 200
    images[..., 0, 0] = 90
    masks = saliency_maps.object_masks(images)[0, 0] > 0
    assert masks[4:12, 4:12].all()
    assert masks.sum() == 64 + 1
