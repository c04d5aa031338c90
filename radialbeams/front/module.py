"""TorchCanonicalizer: a module that turns batches upright, in front of any other module.

    upright, pose = canonicalizer(images)  # (N, C, H, W) in [0, 1], of any size
    masks = pose.invert_masks(segmenter(upright))  # masks in the coordinates of `images`

All steps are differentiable: view, network, angle and rotation. So the loss of a following model
can train the network. The module keeps no state between calls.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn

from radialbeams import zoo
from radialbeams.cards import Card, Looks
from radialbeams.defaults import (
    ABSTAIN,
    FIXED_CORNERS,
    NEVER,
    SNAP,
    Abstain,
    Snap,
    check_snap,
    thresholds_for,
)
from radialbeams.front.affine import Canvas, canvas_size, inverted, middle, turned_back
from radialbeams.front.checks import check_boxes, check_dtype, check_images, check_number
from radialbeams.front.deciding import Reading, decided, plain_corners, quarter_masses
from radialbeams.front.folding import folded, with_kernels
from radialbeams.front.pose import Pose
from radialbeams.front.sampling import blend, can_ask
from radialbeams.front.straight import goes_straight, turned_upright
from radialbeams.front.view_geometry import ViewGeometry, cut
from radialbeams.nn.angles import from_unit, wrap
from radialbeams.nn.architectures import Network, architecture
from radialbeams.nn.posterior import (
    UPRIGHT,
    WITHIN,
    answer,
    mass_near,
    mean_direction,
    posterior,
)
from radialbeams.nn.pretrained import load_model
from radialbeams.nn.rotation import REACH
from radialbeams.posterior import Thresholds

Outputs = Tensor | tuple[Tensor, Tensor]
Returns = Literal["both", "image"]

MARGIN = 0.1  # around an object's box, as a share of its side
CROPS_AT_ONCE = 16  # each temporarily needs a copy of its whole image


class TorchCanonicalizer(nn.Module):
    """Images (N, C, H, W) in [0, 1] → the images turned upright, and the pose to map results back.

    With `hard`, the angle is that of the most probable beam and its offset; otherwise it is the
    mean direction, through which every beam gets a gradient. Images are left alone if their
    confidence is below `abstain`, if they are within `still_degrees` of upright, or if the
    probability that they are upright is above `most_upright`. `snap="auto"` turns images that fill
    their canvas by exact quarter turns, as the command does, by the thresholds `least_quarter` and
    `least_exact`. `returns="image"` returns only the images, for an `nn.Sequential`.

    The module uses one view per image; the commands use more if they are unsure and the card
    says so. All images of a batch have one size, so unlike the command, the module keeps the canvas
    (or enlarges it for all angles alike, `canvas="expand"`) and does not remove filled corners.
    docs/in-front-of-your-model.md says what that costs.
    """

    measured: Thresholds | None = None  # the thresholds of the card, whether or not they are used
    looks: Looks | None = None  # when more views help the model, by its card

    def __init__(
        self,
        network: Network,
        *,
        parent_size: int | None = None,  # of leak-free views; None: the paper's views
        sigma: float | None = None,  # of their blur, in parent pixels; None: from the sizes
        reach: float = REACH,  # radius of their disc, as a share of the parent's half-width
        hard: bool = True,
        abstain: float | None = None,
        still_degrees: float = 0.0,
        most_upright: float = 1.0,
        least_quarter: float = Thresholds.quarter,
        least_exact: float = Thresholds.exact,
        tilts: bool = Thresholds.tilts,  # turn images that fill their canvas by any angle
        snap: Snap = "none",
        canvas: Canvas = FIXED_CORNERS,
        fill: float = 0.0,  # value outside the image
        returns: Returns = "both",
        temperature: float = 1.0,  # this and the next: the calibration of a card
        spread_degrees: float = 0.0,
    ) -> None:
        super().__init__()
        _check_options(network, abstain, canvas, returns)
        check_number("still_degrees", still_degrees, 0, 180)
        check_number("most_upright", most_upright, 0, 1)
        check_number("least_quarter", least_quarter, 0, NEVER.quarter)
        check_number("least_exact", least_exact, 0, NEVER.exact)
        check_snap(snap)
        check_number("fill", fill, -math.inf, math.inf)
        self.network = network
        config = network.config
        self.view_geometry = ViewGeometry(
            config.view_size, config.channels, parent_size, sigma, reach
        )
        self.hard, self.returns = hard, returns
        self.abstain, self.still = abstain, math.radians(still_degrees)
        self.most_upright = most_upright
        self.snap, self.tilts = snap, tilts
        self.least_quarter, self.least_exact = least_quarter, least_exact
        self.canvas, self.fill = canvas, fill
        self.temperature, self.spread = temperature, math.radians(spread_degrees)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = zoo.DEFAULT,
        *,
        hard: bool = True,
        abstain: Abstain = ABSTAIN,
        still_degrees: float | None = None,
        snap: Snap = SNAP,
        canvas: Canvas = FIXED_CORNERS,
        fill: float = 0.0,
        returns: Returns = "both",
    ) -> TorchCanonicalizer:
        """Loads a pretrained model by its name, or your own model by the path of its run folder.

        It turns the same images as the command: the thresholds are those of the model's card. A
        confidence as `abstain` raises or replaces them; None turns every image, as training
        requires.
        """
        network, card = load_model(zoo.find(model).stem)
        least = _thresholds(card, abstain)
        known = card.network.reading == "posterior"
        made = cls(
            network,
            parent_size=card.protocol.parent_size if card.protocol.name == "leakfree" else None,
            sigma=card.protocol.sigma,
            reach=card.protocol.reach,
            hard=hard,
            abstain=None if abstain is None or not known else least.confidence,
            still_degrees=least.angle if still_degrees is None else still_degrees,
            most_upright=least.upright,
            least_quarter=least.quarter,
            least_exact=least.exact,
            tilts=least.tilts,
            snap=snap,
            canvas=canvas,
            fill=fill,
            returns=returns,
            temperature=card.calibration.temperature,
            spread_degrees=card.calibration.spread,
        )
        made.measured = card.abstain
        made.looks = card.looks
        return made.eval()

    @property
    def more_views_below(self) -> float:
        """The confidence below which three more views of a square help."""
        return 0.0 if self.looks is None else self.looks.below

    @torch.inference_mode(False)  # otherwise the copy could not be used outside inference mode
    def for_inference(self, dtype: torch.dtype | None = None) -> Self:
        """A faster copy with a folded network, which gives the same results but cannot be trained.

        On a GPU, use `torch.float16`. It applies to the network only; views and beams are sampled
        and images are turned in the same precision as before.
        """
        check_dtype(dtype)
        network = folded(self.network)
        if dtype is not None:
            network = network.to(dtype)
            for part in self.network.full_precision:
                setattr(network, part, copy.deepcopy(getattr(self.network, part)))
        with_kernels(network)
        return copy.deepcopy(self, {id(self.network): network}).eval()

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Pose]:
        if self.returns != "image":
            return self.canonicalize(images)
        if self.hard and not self.may_leave_alone:  # nothing but the angle decides
            outputs = self._outputs(images)
            if goes_straight(outputs):
                return turned_upright(images, *outputs, self.canvas, self.fill)
            return self.pose(outputs, images, sure=False).apply_images(
                images, self.fill, exact=False
            )
        # The confidence is needed only to abstain.
        return self._turned(images, sure=self.abstain is not None)[0]

    def canonicalize(self, images: Tensor) -> tuple[Tensor, Pose]:
        """The upright images and the pose, whatever `returns` is."""
        return self._turned(images, sure=True)

    def _turned(self, images: Tensor, sure: bool) -> tuple[Tensor, Pose]:
        pose = self.estimate(images, sure)  # N angles
        # Images that are left alone must not change at all; estimated angles are never exact.
        upright = pose.apply_images(images, self.fill, exact=self.may_leave_alone)  # (N, C, H', W')
        return upright, pose

    def estimate(self, images: Tensor, sure: bool = True) -> Pose:
        """The pose of the images, which are not turned; `sure` as for `read`."""
        return self.pose(self._outputs(images), images, sure)

    def _outputs(self, images: Tensor) -> Outputs:
        """Of the network: unit vectors (N, 2), or logits and offsets (N, |B|)."""
        check_images(images)
        outputs: Outputs = self.network(self.view_geometry(images))  # views (N, c, S, S)
        return outputs

    @property
    def may_leave_alone(self) -> bool:
        snaps = self.snap != "none"
        return self.abstain is not None or self.still > 0 or self.most_upright < 1 or snaps

    def pose(self, outputs: Outputs, images: Tensor, sure: bool = True) -> Pose:
        """The pose of the images, from the outputs of the network; see `read`."""
        reading = self.read(outputs, sure)
        size = (images.shape[-2], images.shape[-1])
        angle, applied = reading.angle, None
        if self.may_leave_alone:
            angle, applied = self.decided(reading, plain_corners(images))
        return Pose.from_angles(
            angle, size, canvas=self.canvas, confidence=reading.confidence, applied=applied
        )

    def decided(self, reading: Reading, plain: Tensor) -> tuple[Tensor, Tensor]:
        """(N,) each: the angles to undo, and `applied`, by the rules of `decisions.decide`.

        An image with `plain` corners may have any angle. The angle of an image that is left alone
        is the estimate.
        """
        quarters = Thresholds(quarter=self.least_quarter, exact=self.least_exact, tilts=self.tilts)
        return decided(reading, self._applied(reading), plain, self.snap, quarters)

    def read(self, outputs: Outputs, sure: bool = True) -> Reading:
        """The estimates in the outputs of the network; without a posterior, no probabilities.

        With `sure=False`, the confidence is omitted: on a GPU it costs as much as the angle.
        """
        if isinstance(outputs, Tensor):
            angle = from_unit(outputs.float())
            return Reading(angle, torch.full_like(angle, math.nan), torch.zeros_like(angle))
        masses = posterior(*outputs, self.temperature)
        likeliest = answer(masses)
        unknown, nowhere = torch.full_like(likeliest, math.nan), torch.zeros_like(likeliest)
        reading = Reading(
            likeliest if self.hard else mean_direction(masses),
            mass_near(masses, likeliest, WITHIN, self.spread) if sure else unknown,
            mass_near(masses, nowhere, UPRIGHT, self.spread) if self.most_upright < 1 else nowhere,
        )
        if self.snap == "none":
            return reading
        chance, quarter = quarter_masses(masses).max(-1)
        exact = torch.stack(
            [mass_near(masses, nowhere + k * math.pi / 2, UPRIGHT, self.spread) for k in range(4)]
        ).sum(0)
        return reading._replace(quarter=quarter, quarter_sure=chance, exact=exact)

    def crops(
        self,
        images: Tensor,
        boxes: Sequence[Tensor] | Tensor,
        *,
        margin: float = MARGIN,
        size: int | None = None,  # None: the size that the network was trained on
    ) -> tuple[Tensor, Pose]:
        """Crops each object to an upright square: (M, C, size, size), and the pose to map back.

        `boxes` are (Kᵢ, 4) for each image as x₀, y₀, x₁, y₁, or (M, 5) with the index of the image
        first. The square is centred on the box; its side is the longer side of the box plus the
        margin at both ends. `pose.source` is the index of the image of each object.
        """
        check_images(images)
        source, box = _listed(boxes, images)  # (M,), (M, 4)
        size = self.view_geometry.square_size if size is None else size
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be a whole number of pixels, at least 1; got {size}.")
        check_number("margin", margin, -0.49, math.inf)
        centres = (box[:, :2] + box[:, 2:]) / 2  # (M, 2)
        sides = (box[:, 2:] - box[:, :2]).amax(-1).clamp(min=1) * (1 + 2 * margin)  # (M,)
        parts = [
            self._crops(images[source[part]], centres[part], sides[part], size)
            for part in _chunks(source.shape[0], CROPS_AT_ONCE)
        ]
        crops, angle, sure, applied = (torch.cat(columns) for columns in zip(*parts, strict=True))
        turn = torch.where(applied, angle, torch.zeros_like(angle))
        x, y = centres.unbind(-1)
        transform = turned_back(turn, (x, y), middle((size, size)), size / sides)
        before = (images.shape[-2], images.shape[-1])
        return crops, Pose(angle, sure, applied, transform, source, before, (size, size))

    def _crops(
        self, images: Tensor, centres: Tensor, sides: Tensor, size: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One object per image: upright (m, C, size, size); angle, confidence, applied (m,)."""
        reading = self.read(self.network(self.view_geometry.around(images, centres, sides)))
        applied = self._applied(reading)  # without snapping, since an object may have any angle
        turn = torch.where(applied, reading.angle, torch.zeros_like(reading.angle))
        crops = turned_squares(images, centres, sides, turn, size, self.fill)
        return crops, reading.angle, reading.confidence, applied

    def _applied(self, reading: Reading) -> Tensor:
        applied = torch.ones_like(reading.angle, dtype=torch.bool)
        if self.abstain is not None:
            applied = reading.confidence >= self.abstain
        if self.still:
            applied = applied & (wrap(reading.angle).abs() >= self.still)
        if self.most_upright < 1:
            applied = applied & (reading.upright <= self.most_upright)
        return applied


# The documented name. `radialbeams.Canonicalizer` is the one that needs no torch.
Canonicalizer = TorchCanonicalizer


def turned_squares(
    images: Tensor, centres: Tensor, sides: Tensor, angles: Tensor, size: int, fill: float
) -> Tensor:
    """One square of each image, rotated back by its angle: (N, C, H, W) → (N, C, size, size).

    First a larger square is resized to the new scale, then it is rotated: sampling a rotated grid
    directly would skip pixels of large squares.
    """
    wide = canvas_size((size, size), "expand")
    squares = cut(images, centres, sides * (wide[0] / size), wide[0], fill)
    origin = inverted(turned_back(angles, middle(wide), middle((size, size))))
    return blend(squares, origin, (size, size), fill)


def _chunks(count: int, at_once: int) -> list[slice]:
    """Slices of at most `at_once` items; at least one slice, so that empty results have a shape."""
    starts = range(0, max(count, 1), at_once)
    return [slice(start, min(start + at_once, count)) for start in starts]


# --- checks of inputs --------------------------------------------------------------------------

UNSURE = (
    "abstain needs a network with a posterior; the paper's network returns only an angle. Use a "
    "ring, or leave abstain out."
)


def _listed(boxes: Sequence[Tensor] | Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
    """The index of the image and the box of every object: (M,) and (M, 4)."""
    if not isinstance(boxes, Tensor):
        if len(boxes) != images.shape[0]:
            raise ValueError(
                f"Expected the boxes of {images.shape[0]} images, one tensor (K, 4) for each; got "
                f"{len(boxes)}. For an image without boxes, pass torch.zeros(0, 4)."
            )
        tensors = [torch.as_tensor(box, device=images.device) for box in boxes]
        reshaped = [box.reshape(0, 4) if not box.numel() else box for box in tensors]
        numbers = [box.new_full((box.shape[0], 1), number) for number, box in enumerate(reshaped)]
        rows = [torch.cat(pair, dim=1) for pair in zip(numbers, reshaped, strict=True)]
        boxes = torch.cat(rows) if rows else images.new_zeros(0, 5)
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise ValueError(
            "Expected boxes (K, 4) for each image, or one tensor (M, 5) with the index of the "
            f"image first; got {tuple(boxes.shape)}."
        )
    boxes = boxes.to(images.device, torch.float32)
    if can_ask(boxes):
        check_boxes(boxes, images.shape[0])
    return boxes[:, 0].long(), boxes[:, 1:]


def _thresholds(card: Card, abstain: Abstain) -> Thresholds:
    if card.network.reading == "unit" and abstain not in ("card", None):
        raise ValueError(UNSURE)
    if abstain is not None and not isinstance(abstain, str):
        check_number("abstain", abstain, 0, 1)
    return thresholds_for(card, abstain)


def _check_options(
    network: Network, abstain: float | None, canvas: Canvas, returns: Returns
) -> None:
    canvas_size((1, 1), canvas)
    if returns not in get_args(Returns):
        raise ValueError(f"returns must be one of {', '.join(get_args(Returns))}; got {returns!r}.")
    if abstain is not None and architecture(network.config).reading == "unit":
        raise ValueError(UNSURE)
    if abstain is not None:
        check_number("abstain", abstain, 0, NEVER.confidence)
