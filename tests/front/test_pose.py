"""Pose: the conventions, pinned; what goes there comes back; quarter turns only move pixels."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from radialbeams.front import sampling
from radialbeams.front.affine import Canvas, canvas_size, corners, enclosed, inverted
from radialbeams.front.pose import Pose
from radialbeams.nn.rotation import rotate

angles = st.floats(0, 2 * math.pi)
sides = st.integers(24, 90)
long_sides = st.integers(120, 180)
canvases = st.sampled_from(["same", "expand"])


def pose(angle: float, size: tuple[int, int], canvas: Canvas = "same") -> Pose:
    return Pose.from_angles(torch.tensor([angle]), size, canvas=canvas)


def degrees(angle: float, size: tuple[int, int], canvas: Canvas = "same") -> Pose:
    return pose(math.radians(angle), size, canvas)


def smooth(height: int, width: int) -> Tensor:
    """(1, 1, H, W): waves far longer than a pixel, so that interpolation is nearly exact."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (0.5 + 0.25 * torch.sin(x / 9) + 0.25 * torch.cos(y / 7))[None, None]


def disc(size: tuple[int, int], x: float, y: float, radius: float) -> Tensor:
    """(1, H, W) of bools."""
    rows, columns = torch.meshgrid(*(torch.arange(side) for side in size), indexing="ij")
    return ((columns - x) ** 2 + (rows - y) ** 2 <= radius**2)[None]


# --- conventions ---


def test_convention_of_the_transform() -> None:
    """Turned a quarter counter-clockwise, an image's top is at its left; upright puts it back."""
    expected = torch.tensor([[[0.0, -1.0, 3.0], [1.0, 0.0, 0.0]]])
    torch.testing.assert_close(degrees(90, (4, 4)).transform, expected, rtol=0, atol=0)


def test_convention_of_the_transform_at_30_degrees_of_a_wide_image() -> None:
    """About (W − 1)/2, (H − 1)/2 = (3, 1)."""
    cos, sin = math.sqrt(3) / 2, 0.5
    expected = torch.tensor([[[cos, -sin, 3 - 3 * cos + sin], [sin, cos, 1 - 3 * sin - cos]]])
    torch.testing.assert_close(degrees(30, (3, 7)).transform, expected)


def test_convention_of_the_points() -> None:
    """The left end of the middle row was the top: it goes back up there."""
    left = torch.tensor([[[0.0, 1.5]]])
    torch.testing.assert_close(degrees(90, (4, 4)).apply_points(left), torch.tensor([[[1.5, 0.0]]]))


def test_convention_of_the_corners() -> None:
    """Clockwise from the upper left."""
    expected = [[1.0, 2.0], [5.0, 2.0], [5.0, 7.0], [1.0, 7.0]]
    assert corners(torch.tensor([1.0, 2.0, 5.0, 7.0])).tolist() == expected
    assert enclosed(torch.tensor(expected)).tolist() == [1.0, 2.0, 5.0, 7.0]


def test_coordinates_that_count_from_the_corner_are_half_a_pixel_larger() -> None:
    """As the docstring says: then the middle of the image is (W/2, H/2), and stays where it is."""
    middle = torch.tensor([[[3.5, 1.5]]])
    torch.testing.assert_close(degrees(77, (3, 7)).invert_points(middle - 0.5) + 0.5, middle)


@pytest.mark.parametrize("turn", [0.0, 0.3, 2.0, 5.5])
@pytest.mark.parametrize("size", [16, 17])
def test_upright_is_the_projects_own_rotation_by_minus_the_angle(turn: float, size: int) -> None:
    images = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(size))
    expected = rotate(images, -turn)
    torch.testing.assert_close(
        pose(turn, (size, size)).apply_images(images), expected, rtol=0, atol=1e-4
    )


def test_convention_of_the_expanded_canvas() -> None:
    """As long as the diagonal, and odd or even as the side, so that whole pixels stay whole."""
    assert canvas_size((30, 40), "same") == (30, 40)
    assert canvas_size((30, 40), "expand") == (50, 50)
    assert canvas_size((31, 40), "expand") == (51, 52)


# --- quarter turns ---


@pytest.mark.parametrize("quarters", range(-4, 5))
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("canvas", ["same", "expand"])
def test_quarter_turns_of_squares_only_move_pixels(
    quarters: int, size: int, canvas: Canvas
) -> None:
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(quarters + 4))
    turned = Pose.from_angles(torch.full((2,), quarters * math.pi / 2), (size, size), canvas=canvas)
    width = (turned.after[0] - size) // 2
    there = turned.apply_images(images, fill=0.3)
    inner = there[..., width : width + size, width : width + size]
    assert torch.equal(inner, torch.rot90(images, -quarters, (-2, -1)))
    assert torch.equal(turned.invert_images(there), images)
    labels = torch.arange(size * size).reshape(1, size, size).expand(2, -1, -1)
    assert torch.equal(turned.invert_masks(turned.apply_masks(labels)), labels)
    boxes = torch.tensor([[[1.0, 2.0, 5.0, 3.0]]]).expand(2, -1, -1)
    back = turned.invert_boxes(turned.apply_boxes(boxes, enclosing=True), enclosing=True)
    assert torch.equal(back, boxes)


def test_half_turns_of_any_rectangle_only_move_pixels() -> None:
    images = torch.rand(1, 1, 5, 8)
    assert torch.equal(degrees(180, (5, 8)).apply_images(images), images.flip(-1, -2))


def test_what_is_nearly_a_quarter_turn_is_none() -> None:
    assert not torch.equal(pose(math.pi / 2 + 1e-4, (9, 9)).transform[0, 0, 0], torch.tensor(0.0))


def test_a_quarter_turn_has_the_gradient_of_the_turns_beside_it() -> None:
    """Else a network that answers exactly 0 could never learn to answer anything else."""
    images = smooth(21, 21)

    def gradient(angle: float) -> float:
        turn = torch.tensor([angle], requires_grad=True)
        made = Pose.from_angles(turn, (21, 21)).apply_images(images)
        (made[..., 4:-4, 4:-4] * smooth(13, 13).mT).sum().backward()  # type: ignore[no-untyped-call]
        assert turn.grad is not None
        return turn.grad.item()

    beside = (gradient(-1e-3) + gradient(1e-3)) / 2
    assert abs(beside) > 0.1
    assert gradient(0.0) == pytest.approx(beside, rel=0.2)


# --- there and back ---


@given(angles, sides, sides, canvases, st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_points_and_corners_of_boxes_come_back(
    angle: float, height: int, width: int, canvas: Canvas, seed: int
) -> None:
    """Asked for: within 0.5 pixels."""
    turned = pose(angle, (height, width), canvas)
    points = torch.rand(1, 9, 2, generator=torch.Generator().manual_seed(seed)) * 100
    back = turned.invert_points(turned.apply_points(points))
    assert (back - points).abs().max() < 1e-3
    boxes = torch.cat((points[:, :4], points[:, :4] + points[:, 4:8]), dim=-1)
    there = turned.apply_boxes(boxes)  # (1, 4, 4, 2)
    assert (turned.invert_points(there) - corners(boxes)).abs().max() < 1e-3
    around = turned.invert_boxes(boxes, enclosing=True)
    inside = turned.invert_boxes(boxes)
    assert (around[..., None, :2] <= inside).all() and (inside <= around[..., None, 2:]).all()


@given(angles, sides, sides, st.floats(0.2, 0.8), st.floats(0.2, 0.8))
@settings(max_examples=40, deadline=None)
def test_a_bright_spot_is_where_the_points_say(
    angle: float, height: int, width: int, across: float, down: float
) -> None:
    """Points and pixels go by the same map: the middle of a turned spot is the turned middle."""
    x, y = across * (width - 1), down * (height - 1)
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    spot = torch.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 4)[None, None]
    turned = pose(angle, (height, width), "expand")
    there = turned.apply_images(spot)[0, 0]
    mass = there / there.sum()
    found = torch.stack(
        (
            (mass.sum(0) * torch.arange(mass.shape[1])).sum(),
            (mass.sum(1) * torch.arange(len(mass))).sum(),
        )
    )
    expected = turned.apply_points(torch.tensor([[[x, y]]]))[0, 0]
    assert (found - expected).abs().max() < 0.1


# What a sensible mask is. The nearest pixel is up to half a pixel off, all along the outline, so
# what counts is how many pixels a mask has for each step of its outline, as `steps` counts them. A
# mask that is there and comes back needs 8 of them: a disc 41 pixels across has as many, and so has
# a square of 32. One that is drawn in the upright frame is rounded to pixels there as well, a whole
# straight edge at once: against the thing itself it needs 24. Smaller and thinner masks come back
# as well as pixels allow, but a step of the outline is a larger share of them.
COMES_BACK, IS_THE_THING = 8, 24
shapes = st.sampled_from(["ellipse", "box", "blob", "ring"])
shares = st.floats(0.2, 0.8)


def inside(shape: str, points: Tensor, radius: float, tilt: float, ratio: float) -> Tensor:
    """Points (…, 2) around the shape's middle → bools."""
    x, y = points.unbind(-1)
    u, v = x * math.cos(tilt) + y * math.sin(tilt), y * math.cos(tilt) - x * math.sin(tilt)
    away = torch.hypot(u, v)
    if shape == "ellipse":
        return torch.hypot(u, v / ratio) <= radius
    if shape == "box":
        return (u.abs() <= radius) & (v.abs() <= radius * ratio)
    if shape == "ring":
        return (away <= radius) & (away >= 0.4 * radius)
    bumps = 0.8 + 0.15 * torch.cos(3 * torch.atan2(v, u)) + 0.05 * torch.cos(5 * torch.atan2(v, u))
    return away <= radius * bumps


def steps(mask: Tensor) -> int:
    """(1, H, W) → the pixel edges that its outline is made of, the frame's included."""
    framed = torch.nn.functional.pad(mask[0], (1, 1, 1, 1))
    return int((framed[1:] ^ framed[:-1]).sum() + (framed[:, 1:] ^ framed[:, :-1]).sum())


@given(
    angles, long_sides, long_sides, canvases, shapes, shares, shares, st.floats(0.2, 0.6), angles
)
@example(math.pi / 4, 120, 120, "same", "box", 0.5, 0.5, 0.3, 0.0)
@example(math.pi / 4, 160, 120, "expand", "ellipse", 0.5, 0.5, 0.4, 0.0)
@settings(max_examples=80, deadline=None)
def test_masks_come_back(
    angle: float,
    height: int,
    width: int,
    canvas: Canvas,
    shape: str,
    across: float,
    down: float,
    share: float,
    tilt: float,
) -> None:
    """IoU ≥ 0.98 wherever the upright frame shows the image: there and back, and as drawn there."""
    turned = pose(angle, (height, width), canvas)
    middle = torch.tensor([across * width, down * height])

    def drawn(places: Tensor) -> Tensor:  # (1, H, W, 2) → (1, H, W)
        return inside(shape, places - middle, share * min(height, width), tilt, 0.6)

    truth = drawn(pixel_places((height, width)))
    shown = turned.invert_masks(torch.ones(1, *turned.after, dtype=torch.bool))
    assume((truth & shown).any())
    fine = (truth & shown).sum().item() / steps(truth & shown)
    back = turned.invert_masks(turned.apply_masks(truth))
    assert back.dtype == torch.bool
    if fine >= COMES_BACK:
        assert overlap(back & shown, truth & shown) >= 0.98
    if fine >= IS_THE_THING:
        seen = drawn(turned.invert_points(pixel_places(turned.after)))
        assert overlap(turned.invert_masks(seen) & shown, truth & shown) >= 0.98


def test_a_mask_of_half_that_size_is_still_nearly_itself() -> None:
    """What the bound above leaves out, at the worst of angles."""
    turned = degrees(45, (64, 64), "expand")
    small = disc((64, 64), 31.5, 31.5, 10)
    assert 3.5 < small.sum().item() / steps(small) < 4.5
    assert overlap(turned.invert_masks(turned.apply_masks(small)), small) > 0.95


def pixel_places(size: tuple[int, int]) -> Tensor:
    """(1, H, W, 2) as x, y."""
    rows, columns = torch.meshgrid(*(torch.arange(side) for side in size), indexing="ij")
    return torch.stack((columns, rows), dim=-1)[None].float()


def overlap(one: Tensor, other: Tensor) -> float:
    return ((one & other).sum() / (one | other).sum()).item()


@given(angles, sides, sides)
@settings(max_examples=40, deadline=None)
def test_images_come_back(angle: float, height: int, width: int) -> None:
    images = smooth(height, width)
    turned = pose(angle, (height, width), "expand")
    back = turned.invert_images(turned.apply_images(images))
    inner = (back - images).abs()[..., 2:-2, 2:-2]
    assert inner.max() < 0.02


@given(angles, st.sampled_from([2, 4, 8]))
@settings(max_examples=30, deadline=None)
def test_features_at_a_lower_resolution_come_back_to_where_they_belong(
    angle: float, stride: int
) -> None:
    """A spot that a backbone found on its coarse map, by the middle of the map's cells."""
    size, x, y = (128, 160), 90.0, 50.0
    turned = pose(angle, size, "expand")
    rows, columns = (cells(side // stride, side) for side in turned.after)
    u, v = turned.apply_points(torch.tensor([[[x, y]]]))[0, 0]
    coarse = torch.exp(-((columns - u) ** 2 + (rows[:, None] - v) ** 2) / (2 * stride**2))
    back = turned.invert_features(coarse[None, None], size=(128 // stride, 160 // stride))[0, 0]
    assert back.shape == (128 // stride, 160 // stride)
    mass = back / back.sum()
    found = torch.stack(
        (
            (mass.sum(0) * cells(160 // stride, 160)).sum(),
            (mass.sum(1) * cells(128 // stride, 128)).sum(),
        )
    )
    assert (found - torch.tensor([x, y])).abs().max() < 0.1 * stride


def cells(count: int, side: int) -> Tensor:
    """Where the middles of a map's cells lie in the image that they tile."""
    return (torch.arange(count) + 0.5) * side / count - 0.5


def test_a_map_as_fine_as_the_image_is_an_image() -> None:
    images = torch.rand(1, 3, 20, 30)
    turned = pose(1.0, (20, 30))
    assert torch.equal(turned.invert_features(images), turned.invert_images(images))


# --- the small print ---


def test_what_is_left_alone_stays_to_the_bit_and_its_angle_is_still_reported() -> None:
    images = torch.rand(2, 3, 12, 15)
    applied = torch.tensor([True, False])
    mixed = Pose.from_angles(torch.tensor([1.0, 1.0]), (12, 15), applied=applied)
    upright = mixed.apply_images(images)
    assert torch.equal(upright[1], images[1]) and not torch.equal(upright[0], images[0])
    assert mixed.angle.tolist() == [1.0, 1.0]


def test_outside_lies_the_fill() -> None:
    turned = degrees(45, (32, 32), "expand")
    there = turned.apply_images(torch.ones(1, 1, 32, 32), fill=0.25)
    assert there[0, 0, 0, 0] == 0.25 and there[0, 0, 23, 23] == 1
    labels = turned.apply_masks(torch.ones(1, 32, 32, dtype=torch.uint8), fill=255)
    assert labels.dtype == torch.uint8 and labels[0, 0, 0] == 255


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_masks_keep_their_type_and_their_dimensions(dtype: torch.dtype) -> None:
    masks = torch.ones(1, 2, 4, 10, 12, dtype=dtype)
    back = degrees(10, (10, 12)).invert_masks(masks)
    assert (back.dtype, back.shape) == (masks.dtype, masks.shape)


def test_half_precision_images_are_turned_in_full_and_come_back_as_they_were() -> None:
    images = smooth(20, 20)
    turned = degrees(33, (20, 20))
    half = turned.apply_images(images.half())
    assert half.dtype == torch.float16
    assert (half.float() - turned.apply_images(images)).abs().max() < 1e-3


def test_no_image_at_all_is_a_batch_too() -> None:
    nothing = Pose.from_angles(torch.zeros(0), (8, 9), canvas="expand")
    assert nothing.apply_images(torch.zeros(0, 3, 8, 9)).shape == (0, 3, *nothing.after)
    assert nothing.invert_masks(torch.zeros(0, *nothing.after)).shape == (0, 8, 9)
    assert nothing.invert_boxes(torch.zeros(0, 5, 4)).shape == (0, 5, 4, 2)


def test_a_pose_goes_to_another_device() -> None:
    pose = Pose.from_angles(torch.rand(3), (40, 60))
    there = pose.to("meta")
    assert there.transform.is_meta and there.source.is_meta and there.before == (40, 60)
    assert there.invert_points(torch.rand(3, 5, 2, device="meta")).shape == (3, 5, 2)
    assert torch.equal(pose.to("cpu").transform, pose.transform)


def test_some_of_the_items_by_index() -> None:
    all_three = Pose.from_angles(torch.tensor([0.1, 0.2, 0.3]), (8, 9))
    assert len(all_three) == 3
    last = all_three[2:]
    assert (len(last), last.angle.tolist(), last.source.tolist()) == (1, [pytest.approx(0.3)], [2])
    assert all_three[torch.tensor([True, False, True])].source.tolist() == [0, 2]
    assert all_three[-1].source.tolist() == [2]


def test_the_inverse_of_the_inverse_is_the_transform() -> None:
    turned = degrees(200, (50, 70), "expand").transform
    torch.testing.assert_close(inverted(inverted(turned)), turned)


@pytest.mark.parametrize("kind", ["images", "masks", "features", "points", "boxes"])
def test_invert_by_kind(kind: str) -> None:
    turned = degrees(20, (8, 8))
    found = torch.rand(1, 3, {"points": 2, "boxes": 4}.get(kind, 8))
    found = (
        found[:, None].expand(-1, 1, 3, -1)
        if kind in ("points", "boxes")
        else torch.rand(1, 1, 8, 8)
    )
    expected = getattr(turned, f"invert_{kind}")(found)
    assert torch.equal(turned.invert(found, kind), expected)  # type: ignore[arg-type]


def test_wrong_options_and_sizes_are_refused() -> None:
    turned = degrees(20, (8, 9), "expand")
    with pytest.raises(ValueError, match=r"kind must be one of images, masks, .*; got 'boxen'"):
        turned.invert(torch.zeros(1, 1, 8, 9), "boxen")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"canvas must be one of same, expand; got 'crop'"):
        degrees(20, (8, 9), "crop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"8 × 9 pixels; got 4 × 9.*apply_features"):
        turned.apply_images(torch.zeros(1, 1, 4, 9))
    with pytest.raises(ValueError, match=r"14 × 13 pixels; got 8 × 9.*invert_features"):
        turned.invert_images(torch.zeros(1, 1, 8, 9))


@pytest.mark.parametrize("size", [(427, 640), (224, 223), (31, 30), (30, 31), (8, 8), (9, 9)])
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_quarter_turns_are_exact_for_sides_of_any_parity(
    size: tuple[int, int], quarters: int
) -> None:
    images = torch.rand(1, 2, *size, generator=torch.Generator().manual_seed(1))
    pose = Pose.from_angles(torch.tensor([quarters * math.pi / 2]), size, canvas="expand")
    assert torch.equal(pose.invert_images(pose.apply_images(images)), images)
    labels = torch.arange(size[0] * size[1]).reshape(1, *size)
    assert torch.equal(pose.invert_masks(pose.apply_masks(labels)), labels)


def test_half_a_pixel_beside_a_mask_stays_whole() -> None:
    """Ties all go one way; rounded to even, every second row would be lost."""
    still = torch.tensor([[[1.0, 0, 0.5], [0, 1, 0.5]]])
    angle = torch.zeros(1)
    pose = Pose(angle, angle, angle.bool(), still, torch.zeros(1).long(), (8, 8), (9, 9))
    labels = torch.arange(1, 10)[None, :, None].expand(1, 9, 9).contiguous()
    assert pose.invert_masks(labels)[0, :, 0].tolist() in (
        list(range(1, 9)),
        list(range(2, 10)),
    )


def test_poses_can_be_counted_and_walked_through() -> None:
    pose = Pose.from_angles(torch.tensor([0.0, 1.0, 2.0]), (8, 8))
    assert [one.angle.item() for one in pose] == [0.0, 1.0, 2.0]
    assert pose[-1].angle.item() == 2.0
    with pytest.raises(IndexError):
        pose[3]


def test_what_is_not_of_every_item_is_refused() -> None:
    pose = Pose.from_angles(torch.zeros(2), (8, 8))
    with pytest.raises(ValueError, match=r"points of 2 items, \(N, …, 2\); got \(2, 5, 3\)"):
        pose.invert_points(torch.zeros(2, 5, 3))
    with pytest.raises(ValueError, match=r"boxes of 2 items, \(N, …, 4\); got \(1, 5, 4\)"):
        pose.invert_boxes(torch.zeros(1, 5, 4))
    with pytest.raises(ValueError, match=r"N = 2 items.*images\[pose.source\]"):
        pose.invert_masks(torch.zeros(3, 8, 8))
    boxes = pose.invert(torch.zeros(2, 1, 4), "boxes", enclosing=True)
    assert boxes.shape == (2, 1, 4)


@pytest.mark.parametrize("size", [(9, 9), (8, 13), (1, 1), (1, 6)])
def test_a_gpus_way_to_count_samples_the_same(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = torch.rand(3, 2, *size)
    pose = Pose.from_angles(torch.tensor([0.4, 2.5, math.pi]), size)
    expected = pose.apply_images(images, fill=0.3)
    real = sampling._between_middles

    class OnAGpu:
        is_cuda, shape = True, images.shape

    there = real(OnAGpu())  # type: ignore[arg-type]
    assert there == (min(size) > 1) and not real(images)
    monkeypatch.setattr(sampling, "_between_middles", lambda _: there)
    torch.testing.assert_close(pose.apply_images(images, fill=0.3), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("canvas", ["same", "expand"])
def test_lists_of_detections_go_there_and_back(canvas: Canvas) -> None:
    pose = Pose.from_angles(torch.tensor([0.3, 1.0, 4.0]), (40, 60), canvas=canvas)
    boxes = [torch.rand(k, 4) * 30 for k in (2, 0, 3)]
    boxes[1] = torch.zeros(0)  # as some detectors say that there is none
    there = pose.apply_boxes(boxes)
    assert [tuple(found.shape) for found in there] == [(2, 4, 2), (0, 4, 2), (3, 4, 2)]
    for number, found in enumerate(there):
        torch.testing.assert_close(
            found, pose[number].apply_boxes(boxes[number].reshape(1, -1, 4))[0]
        )
    back = pose.invert_points(there)
    torch.testing.assert_close(back[2], corners(boxes[2]), atol=1e-3, rtol=0)
    around = pose.invert(boxes, "boxes", enclosing=True)
    assert [tuple(found.shape) for found in around] == [(2, 4), (0, 4), (3, 4)]
    torch.testing.assert_close(around[0], pose[0].invert_boxes(boxes[0][None], enclosing=True)[0])
    assert pose[:0].invert_boxes([]) == []
    assert [len(found) for found in pose.invert_points([torch.zeros(0, 2)] * 3)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([torch.zeros(2, 4)], r"boxes of 2 items, one tensor \(K, …, 4\) for each; got \(2, 4\)\."),
        (
            [torch.zeros(2, 4), torch.zeros(1, 5)],
            r"got \(2, 4\), \(1, 5\)\. For an item without",
        ),
        ([torch.zeros(2, 5), torch.zeros(1, 5)], r"got \(2, 5\), \(1, 5\)\."),
        ([torch.tensor(3.0), torch.tensor(4.0)], r"got \(\), \(\)\."),
        ([], r"got none\. For an item without boxes, pass torch\.zeros\(0, 4\)"),
    ],
)
def test_lists_of_something_else_are_refused(given: list[Tensor], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Pose.from_angles(torch.tensor([0.3, 1.0]), (40, 60)).invert_boxes(given)
