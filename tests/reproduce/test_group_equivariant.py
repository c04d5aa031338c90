"""The C8-equivariant classifier: what a rotation does to its features and to its logits."""

from __future__ import annotations

import torch

from radialbeams.nn.rotation import disc, rotate
from radialbeams.reproduce.group_equivariant import (
    ORDER,
    SIDE,
    GroupClassifier,
    GroupConvolution,
    group_parameters,
    group_widths,
)


def edge(side: int = 41) -> torch.Tensor:
    """A soft edge inside of the disc, lighter on the right."""
    across = torch.linspace(-1, 1, side).expand(1, 1, side, side)
    return torch.sigmoid(8 * across) * disc(side)


def derivative() -> torch.Tensor:
    """A soft kernel that answers to lighter on the right."""
    places = torch.arange(SIDE) - (SIDE - 1) / 2
    squares = places**2 + places[:, None] ** 2
    return (places * torch.exp(-squares / 2)).reshape(1, 1, 1, -1)


@torch.no_grad()
def test_a_quarter_turn_turns_the_maps_and_rolls_the_group() -> None:
    torch.manual_seed(0)
    first, second = GroupConvolution(1, 2, lifts=True), GroupConvolution(2, 3)
    images = torch.randn(2, 1, 20, 20)
    there, turned = (
        second(first(given)).unflatten(1, (3, ORDER))
        for given in (images, torch.rot90(images, 1, (2, 3)))
    )
    expected = torch.rot90(there, 1, (3, 4)).roll(ORDER // 4, dims=2)
    assert torch.allclose(turned, expected, atol=1e-4)


@torch.no_grad()
def test_an_eighth_turn_rolls_the_group_by_one_up_to_interpolation() -> None:
    layer = GroupConvolution(1, 1, lifts=True)
    layer.weight.copy_(derivative())
    for turns in range(ORDER):
        images = rotate(edge(), torch.tensor([turns * torch.pi / 4]))
        middle = layer(images)[0, :, 20, 20]  # (8,): the answer of every rotation of the kernel
        assert int(middle.argmax()) == turns
        assert torch.allclose(middle.roll(-turns), layer(edge())[0, :, 20, 20], atol=0.1)


@torch.no_grad()
def test_the_logits_do_not_depend_on_quarter_turns() -> None:
    torch.manual_seed(0)
    model = GroupClassifier(1, 5, (2, 4, 6)).eval()
    images = torch.randn(2, 1, 32, 32)
    assert torch.allclose(model(images), model(torch.rot90(images, 1, (2, 3))), atol=1e-5)


def test_parameters_are_counted_without_building() -> None:
    for widths in ((2, 4, 6), (3, 5, 9)):
        model = GroupClassifier(3, 7, widths)
        count = sum(p.numel() for p in model.parameters())
        assert group_parameters(3, 7, widths) == count
    assert abs(group_parameters(1, 10, group_widths(1, 10, 400_000)) - 400_000) < 12_000
