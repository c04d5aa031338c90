"""SI-SCORE: composed as the benchmark defines it; the full set by its tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from radialbeams.training.data import ImageSet, in_test, load, place_of, siscore
from radialbeams.training.data.archives import file_names, without_top

RED, GREEN = (255, 0, 0, 255), (0, 255, 0, 255)


def cutout(width: int = 60, height: int = 90) -> Image.Image:
    """Red above, green below."""
    pixels = np.zeros((height, width, 4), np.uint8)
    pixels[: height // 2], pixels[height // 2 :] = RED, GREEN
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A root with samples of three cut-outs and one background."""
    sky = Image.new("RGB", (90, 60), (0, 0, 200))
    with zipfile.ZipFile(tmp_path / "si-score.zip", "w") as archive:
        archive.writestr("si-score/background_samples/sky.jpg", encoded(sky, "JPEG"))
        for name in ("koala", "vase", "zebra"):
            path = f"si-score/foreground_samples/{name}/{name}1.png"
            archive.writestr(path, encoded(cutout()))
    return tmp_path


# --- the rules of the benchmark ---


def test_the_angles_are_the_papers() -> None:
    """1 + 360°·k/18."""
    assert tuple(1 + 360 * k / 18 for k in range(18)) == siscore.ANGLES


@pytest.mark.parametrize("area", siscore.AREAS)
def test_a_cutout_covers_its_share_of_the_scene(area: float) -> None:
    width, height = siscore.resized((60, 90), area)
    assert width * height / 512**2 == pytest.approx(area, rel=0.01)
    assert width / height == pytest.approx(60 / 90, rel=0.01)


def test_it_lies_in_the_middle_turned_counter_clockwise() -> None:
    scene = Image.new("RGB", (512, 512), (0, 0, 200))
    upright = siscore.compose(cutout(), scene, 0.2, 0)
    assert upright.getpixel((256, 200)) == RED[:3] and upright.getpixel((256, 312)) == GREEN[:3]
    turned = siscore.compose(cutout(), scene, 0.2, 90)
    assert turned.getpixel((200, 256)) == RED[:3] and turned.getpixel((312, 256)) == GREEN[:3]
    assert turned.getpixel((5, 5)) == (0, 0, 200)


@pytest.mark.parametrize("angle", [1, 41, 81, 121, 201])
@pytest.mark.parametrize("area", [0.5, 0.8, 1.0])
def test_what_is_in_view_is_what_the_turned_box_says(angle: int, area: float) -> None:
    piece = cutout().resize(siscore.resized((60, 90), area))
    piece = piece.rotate(angle, Image.Resampling.BICUBIC, expand=True)
    expected = np.prod([min(side, 512) / side for side in piece.size])
    assert siscore.share_in_view((60, 90), area, angle) == pytest.approx(expected, rel=0.02)


def test_a_small_one_is_always_in_view_and_a_large_one_never() -> None:
    assert all(siscore.share_in_view((60, 90), 0.2, angle) == 1 for angle in siscore.ANGLES)
    assert all(siscore.share_in_view((60, 90), 1.0, a) < 0.95 for a in siscore.ANGLES)


# --- as data sets ---


def test_the_samples_become_turned_images_that_know_their_angle(samples: Path) -> None:
    images = load("si-score-rotation", root=samples, size=64)
    assert images.angles_degrees is not None
    assert set(images.groups) == {"koala", "vase", "zebra"}
    assert set(images.angles_degrees) == {float(angle) for angle in siscore.ANGLES}
    key = next(k for k in images.keys if k.endswith("-0.2-181"))
    upside_down = images.images[images.keys.index(key)]
    assert upside_down[:, 26, 32].tolist()[1] > 200  # green is above
    with pytest.raises(ValueError, match="contains pre-rotated images"):
        images.upright()


def test_split_by_object_no_cutout_is_in_both_halves(samples: Path) -> None:
    options = {"root": samples, "size": 16, "split_by": "object"}
    train = load("si-score-rotation", split="train", **options)  # type: ignore[arg-type]
    test = load("si-score-rotation", split="test", **options)  # type: ignore[arg-type]
    held_out = {name for name in ("koala", "vase", "zebra") if in_test(f"{name}/{name}1")}
    assert set(test.groups) == held_out
    assert set(train.groups) == {"koala", "vase", "zebra"} - held_out


def test_many_cutouts_lie_on_the_backgrounds_in_turn(tmp_path: Path) -> None:
    cutout = Image.new("RGBA", (60, 40), (255, 0, 0, 255))
    with zipfile.ZipFile(tmp_path / "imagenet-cutouts.zip", "w") as archive:
        for name, grey in (("dark", 0), ("light", 200)):
            scene = Image.new("RGB", (64, 64), (grey, grey, grey))
            archive.writestr(f"background_samples/{name}.png", encoded(scene, "PNG"))
        for n in (0, 4):  # the second is in the test split
            path = f"foreground_samples/{n:04d}/thing{n}.png"
            archive.writestr(path, encoded(cutout, "PNG"))
    images = load("imagenet-cutouts", root=tmp_path, size=32)
    seen = [a for a in siscore.ANGLES if siscore.share_in_view((60, 40), 0.5, a) >= 0.95]
    assert len(images) == 2 * (len(siscore.ANGLES) + len(seen))  # all in view where it is small
    corners = images.images[:, 0, 0, 0]
    assert 0.4 < (corners == 0).float().mean() < 0.6 and set(corners.tolist()) == {0, 200}
    options = {"root": tmp_path, "size": 16, "split_by": "object"}
    train = load("imagenet-cutouts", split="train", **options)  # type: ignore[arg-type]
    test = load("imagenet-cutouts", split="test", **options)  # type: ignore[arg-type]
    things = [{key.split("-")[0] for key in half.keys} for half in (train, test)]
    assert all(things) and not things[0] & things[1]


def test_the_full_set_is_read_by_its_tables(tmp_path: Path) -> None:
    folder = tmp_path / "rotation"
    rows = ["image_id,area,rotation,foreground_class,foreground_instance,background"]
    for number, (name, angle, instance) in enumerate(
        [("bagel", 21, 0), ("bagel", 41, 1), ("zebra", 341, 0)]
    ):
        rows.append(f"{number},0.2,{angle},0,{instance},3")
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (500, 500)).save(folder / name / f"{number}.jpg")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    (folder / "foreground_classes.csv").write_text("int,label\n931,bagel\n340,zebra\n")
    images = load("si-score-rotation", root=tmp_path, size=224)
    assert images.images.shape == (3, 3, 224, 224)
    assert images.angles_degrees == (21.0, 41.0, 341.0)
    place = place_of("si-score-rotation", tmp_path)
    found = siscore.imagenet_classes(place, file_names(place))
    assert found == {"bagel": 931, "zebra": 340}


def test_without_a_table_the_classes_are_those_of_the_samples(samples: Path) -> None:
    place = place_of("si-score-rotation", samples)
    found = siscore.imagenet_classes(place, without_top(file_names(place)))
    assert found["zebra"] == 340 and len(found) == 9


def test_real_samples(real: Callable[..., ImageSet]) -> None:
    images = real("si-score-rotation", size=32, limit=200)
    assert set(images.groups) == set(siscore.SAMPLE_CLASSES)
