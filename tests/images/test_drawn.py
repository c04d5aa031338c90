"""What tells a drawing from a photo, in Python and in the browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from radialbeams import Canonicalizer
from radialbeams.demo import PICTURES
from radialbeams.images.drawn import WEIGHT, drawn

MODEL = Path(__file__).parents[2] / "radialbeams/web/model"
SIDE = 48


def drawing() -> Image.Image:
    picture = Image.new("RGB", (320, 320), "white")
    draw = ImageDraw.Draw(picture)
    for k in range(5):
        box = (20 + 55 * k, 60, 60 + 55 * k, 260)
        draw.rectangle(box, fill=("red", "blue")[k % 2], outline="black", width=4)
    return picture


def test_a_drawing_is_told_from_a_photo_at_any_angle() -> None:
    model = Canonicalizer("general", threads=1)
    assert model.card.looks is not None and model.card.looks.drawn is not None
    with Image.open(PICTURES / "astronaut.webp") as opened:
        photo = opened.convert("RGB")
    for degrees in (0, 30, 90):
        turned = (drawing().rotate(degrees, fillcolor="white"), photo.rotate(degrees))
        first, second = (drawn(model.view(picture)) for picture in turned)
        assert first > model.card.looks.drawn > second


def test_flat_and_steep_neighbours_count() -> None:
    view = np.full((3, SIDE, SIDE), 0.5, np.float32)
    assert drawn(view) == 1
    view[2, :, ::2] = 1  # in one colour is enough; columns are flat
    assert drawn(view) == pytest.approx(0.5 * (1 + WEIGHT), abs=0.02)
    view[2, :, ::2] = 0.55  # neither flat nor steep
    assert drawn(view) == pytest.approx(0.5, abs=0.02)


def test_what_is_outside_the_disc_does_not_count() -> None:
    view = np.full((1, SIDE, SIDE), 0.5, np.float32)
    view[:, 1:7, 1:7] = np.random.default_rng(0).random((6, 6))
    assert drawn(view) == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="There is no node")
@pytest.mark.parametrize("channels", [1, 3])
def test_the_browser_measures_the_same(tmp_path: Path, channels: int) -> None:
    rng = np.random.default_rng(1)
    view = np.round(rng.random((channels, SIDE, SIDE)) * rng.random((SIDE, SIDE)) * 4) / 4
    shutil.copytree(MODEL, tmp_path / "model")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    spec = {"channels": channels, "view_size": SIDE}
    script = f"""
        import {{ drawn }} from "./model/drawn.js";
        const view = Float32Array.from({json.dumps(view.ravel().tolist())});
        console.log(drawn(view, {json.dumps(spec)}));
    """
    (tmp_path / "measure.js").write_text(script, encoding="utf-8")
    command = ["node", str(tmp_path / "measure.js")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = drawn(view.astype(np.float32))
    assert 0.1 < expected < WEIGHT
    assert float(done.stdout) == pytest.approx(expected, abs=1e-6)
