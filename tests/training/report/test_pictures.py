"""Thumbnails are turned counter-clockwise and lie in the page itself."""

from __future__ import annotations

import base64
import io

import pytest
import torch
from PIL import Image

from radialbeams.training.report.pictures import BATCH, SIDE, data_uri, thumbnails


@pytest.mark.parametrize("channels", [1, 3])
def test_a_quarter_turn_moves_the_top_to_the_left(channels: int) -> None:
    image = torch.zeros(1, channels, 40, 40, dtype=torch.uint8)
    image[:, :, :10] = 255
    (shown,) = thumbnails(image, torch.tensor([90.0]))
    assert shown.shape == ((SIDE, SIDE) if channels == 1 else (SIDE, SIDE, 3))
    assert shown[SIDE // 2, 8].min() > 250 and shown[8, SIDE - 20].max() < 5


def test_many_come_in_the_order_given() -> None:
    levels = torch.arange(BATCH + 3, dtype=torch.uint8)
    images = levels[:, None, None, None].expand(-1, 1, 8, 8)
    shown = thumbnails(images, torch.zeros(len(images)))
    assert [int(one[SIDE // 2, SIDE // 2]) for one in shown] == levels.tolist()
    assert thumbnails(images[:0], torch.zeros(0)) == []


def test_a_picture_is_inside_its_own_address() -> None:
    image = torch.full((1, 3, 8, 8), 100, dtype=torch.uint8)
    (shown,) = thumbnails(image, torch.zeros(1))
    head, _, content = data_uri(shown).partition(",")
    assert head == "data:image/webp;base64"
    read = Image.open(io.BytesIO(base64.b64decode(content)))
    assert (read.format, read.size) == ("WEBP", (SIDE, SIDE))
