"""Splits a folder into training and held-out images, by group if there are enough groups.

Near copies always stay on the same side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from radialbeams.images.fingerprints import BITS, within
from radialbeams.training.own.scan import LEAST_GROUPS, Scan, ScannedImage

# Copies that were saved again, resized or brightened stay below both; views of an object that
# was turned by 5° are above the second, unless they look the same.
NEAR_BITS = 12  # of 128
NEAR_THUMBNAIL = 6e-4  # 1 − correlation of two thumbnails
TILE = 1024  # images that are compared with as many others at once
TOO_LARGE = 0.6  # share of all images from which on a unit is no longer kept together

By = Literal["group", "image"]
Labels = NDArray[np.int64]  # (N,): of each image the smallest index of its unit


@dataclass(frozen=True)
class Split:
    """Indices into the images of a scan."""

    train: tuple[int, ...]
    held_out: tuple[int, ...]
    by: By
    near_copies: int = 0  # images that have a near copy, with which they stay
    warnings: tuple[str, ...] = ()  # in words


def split(scan: Scan, share: float = 0.2, seed: int = 0) -> Split:
    """About `share` of the images, held out in units that are never torn apart.

    A unit is a group, or a single image where there are fewer than five groups, together with
    everything that a near copy ties to it.
    """
    if not 0 < share < 1:
        raise ValueError(f"The held-out share must lie between 0 and 1; got {share}.")
    by: By = "group" if len(scan.groups) >= LEAST_GROUPS else "image"
    alone = np.arange(len(scan.images))
    apart = _joined(alone, _same_group(scan.images)) if by == "group" else alone
    copies = near_copies(scan.images)
    units = _joined(apart, [(alone, copies)])
    near = int((np.bincount(copies, minlength=len(alone))[copies] > 1).sum())
    warnings: tuple[str, ...] = ()
    if np.bincount(units).max() > TOO_LARGE * len(alone):
        units = apart
    held_out = _chosen(units, scan.images, share, seed)
    if torn := int(np.isin(copies[held_out], copies[~held_out]).sum()):
        warnings = (
            f"{torn} of {int(held_out.sum())} held-out images have a near copy among the training "
            "images: most of the images are tied to one another by near copies. The held-out "
            "error says little about new pictures.",
        )
    train, out = (tuple(np.flatnonzero(which).tolist()) for which in (~held_out, held_out))
    return Split(train, out, by, near, warnings)


def near_copies(images: Sequence[ScannedImage]) -> Labels:
    """The unit of each image: those that near copies tie to one another, also through others."""
    stored = np.frombuffer(bytes.fromhex("".join(i.fingerprint for i in images)), np.uint8)
    rows = stored.reshape(len(images), -1)
    bits = np.unpackbits(rows[:, : BITS // 8], axis=1).astype(bool)
    looks = rows[:, BITS // 8 :].astype(np.float32)
    looks -= looks.mean(1, keepdims=True)
    looks /= np.maximum(np.linalg.norm(looks, axis=1, keepdims=True), 1e-6)

    units = np.arange(len(images))
    for above, left in _tiles(len(images)):
        # Pairs that others have tied already are left out: a folder of copies has billions.
        near = units[above, None] != units[left]
        near &= within(bits[above], bits[left], NEAR_BITS)
        if near.any():
            near &= looks[above] @ looks[left].T >= 1 - NEAR_THUMBNAIL
            later, earlier = np.nonzero(near)
            units = _joined(units, [(above.start + later, left.start + earlier)])
    return units


def _tiles(count: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns that together cover every pair."""
    for above in range(0, count, TILE):
        for left in range(0, above + 1, TILE):
            yield slice(above, above + TILE), slice(left, left + TILE)


def _same_group(images: Sequence[ScannedImage]) -> list[tuple[Labels, Labels]]:
    """Each image with the first of its group; those in no group stand alone."""
    first: dict[str, int] = {}
    of_group = [first.setdefault(image.group, i) for i, image in enumerate(images)]
    rows = np.array([i for i, image in enumerate(images) if image.group], dtype=np.int64)
    return [(rows, np.array(of_group)[rows])]


def _joined(labels: Labels, pairs: Iterable[tuple[Labels, Labels]]) -> Labels:
    """Labels after the units of each pair have become one."""
    for one, other in pairs:
        while True:
            first, second = labels[one], labels[other]
            apart = first != second
            if not apart.any():
                break
            root = np.arange(len(labels))
            low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
            np.minimum.at(root, high, low)
            while (root[root] != root).any():
                root = root[root]
            labels = root[labels]
    return labels


def _chosen(
    units: Labels, images: Sequence[ScannedImage], share: float, seed: int
) -> NDArray[np.bool_]:
    """Units in an order that depends only on their names and the seed, until the share is full."""
    sizes = np.bincount(units, minlength=len(units))
    names = {unit: images[unit].path for unit in np.flatnonzero(sizes).tolist()}
    if len(names) < 2:
        raise ValueError(
            "Expected images that can be held out; got images that are all tied to one another, "
            "as one group or as near copies. Add other images."
        )
    order = sorted(names, key=lambda unit: _draw(names[unit], seed))
    target = max(1, round(share * len(images)))
    held: list[int] = []
    count = 0
    for unit in order:
        if count + sizes[unit] <= target:
            held.append(unit)
            count += int(sizes[unit])
    rest = [unit for unit in order if unit not in set(held)]
    if count < target / 2 and len(rest) > 1:  # large units only: the smallest comes nearest
        held.append(min(rest, key=lambda unit: int(sizes[unit])))
    return np.isin(units, held)


def _draw(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}/{name}".encode(errors="surrogateescape")).digest()
