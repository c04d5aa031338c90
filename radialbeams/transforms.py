"""Transforms that turn pictures upright in your own pipeline: for a Dataset, and for scikit-learn.

As in the command, the thresholds of the model's card decide whether a picture is turned. A number
as `abstain` is a confidence that raises or replaces them; None turns every picture. Both transforms
can be pickled: each process loads the model for its first picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import defaults, images, zoo
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.decisions import decide
from radialbeams.defaults import Abstain, Snap
from radialbeams.documents import document_thresholds
from radialbeams.images import Corners

Array = NDArray[Any]


@dataclass(frozen=True)
class Upright:
    """Turns a Pillow image upright, as in `Compose([Upright(), ToTensor()])`."""

    model: str = zoo.DEFAULT
    abstain: Abstain = defaults.ABSTAIN
    corners: Corners = defaults.CORNERS
    fill: str | None = defaults.FILL
    snap: Snap = defaults.SNAP

    def __post_init__(self) -> None:
        _check(self.model, self.abstain, self.snap)

    def __call__(self, image: Image.Image) -> Image.Image:
        result = _loaded(self.model).predict(
            image, corners=self.corners, fill=self.fill, abstain=self.abstain, snap=self.snap
        )
        upright: Image.Image = result.image
        return upright


class UprightTransformer:
    """Turns arrays upright, as a step of a scikit-learn Pipeline.

    The arrays are stacked, so every array keeps its size: unlike elsewhere, the canvas stays the
    same, and corners that are rotated out of it are lost. `X` is (N, H, W) or (N, H, W, C) of
    uint8, uint16 or float in [0, 1]; or (N, H·W·C), if `image_shape` gives the shape of a row.
    There is nothing to fit, since the model is already trained.
    """

    def __init__(
        self,
        model: str = zoo.DEFAULT,
        abstain: Abstain = defaults.ABSTAIN,
        image_shape: Sequence[int] | None = None,
        snap: Snap = defaults.SNAP,
    ) -> None:
        _check(model, abstain, snap)
        self.model = model
        self.abstain = abstain
        self.image_shape = image_shape
        self.snap = snap

    def fit(self, X: Any, y: Any = None) -> UprightTransformer:
        return self

    def transform(self, X: Any) -> Array:
        arrays = np.asarray(X)
        shape = arrays.shape[1:] if self.image_shape is None else tuple(self.image_shape)
        pictures = list(arrays.reshape(len(arrays), *shape))
        if not pictures:
            return arrays.copy()
        loaded = _loaded(self.model)
        least = defaults.thresholds_for(loaded.card, self.abstain)
        pages = document_thresholds(self.abstain)
        turned = []
        for picture, answer, look in zip(
            pictures, *loaded.answers_and_looks(pictures), strict=True
        ):
            limits = pages if answer.kind == "document" else least
            decision = decide(answer, limits, self.snap, look.around)
            turned.append(
                picture if decision.turn is None else _turned_inside(picture, -decision.turn)
            )
        return np.stack(turned).reshape(arrays.shape)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        return self.fit(X, y).transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {
            "model": self.model,
            "abstain": self.abstain,
            "image_shape": self.image_shape,
            "snap": self.snap,
        }

    def set_params(self, **params: Any) -> UprightTransformer:
        unknown = sorted(set(params) - set(self.get_params()))
        if unknown:
            raise ValueError(
                f"Expected parameters of UprightTransformer ({', '.join(self.get_params())}); "
                f"got {', '.join(unknown)}."
            )
        wanted = {**self.get_params(), **params}
        _check(wanted["model"], wanted["abstain"], wanted["snap"])
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"UprightTransformer({params})"

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is installed.
        from sklearn.utils import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
            InputTags,
            Tags,
            TargetTags,
            TransformerTags,
        )

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            requires_fit=False,
            input_tags=InputTags(two_d_array=self.image_shape is not None, three_d_array=True),
        )


# One thread per process: data loaders already use one process per core.
@lru_cache(maxsize=4)
def _loaded(model: str) -> Canonicalizer:
    return Canonicalizer(model, threads=1)


def _check(model: str, abstain: Abstain, snap: Snap) -> None:
    """Raises errors when the transform is created, not in a worker at its first picture."""
    defaults.thresholds_for(zoo.find(model).card, abstain)
    defaults.check_snap(snap)


def _turned_inside(picture: Array, degrees: float) -> Array:
    """The picture turned on the same canvas, even for a quarter turn of a non-square picture."""
    if degrees % 90 == 0 and degrees % 180 and picture.shape[0] != picture.shape[1]:
        degrees += 1e-6  # a multiple of 90° itself would swap the sides
    return images.turn(picture, degrees, corners=defaults.FIXED_CORNERS)
