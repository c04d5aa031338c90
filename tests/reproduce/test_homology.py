"""Loops against a plain reduction of all triangles, landmarks, and which loops are noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from radialbeams.reproduce import fine_orbit, homology


def plain_loops(points: np.ndarray) -> list[tuple[float, float]]:
    """All triangles in order, reduced one by one: slow and short."""
    apart = homology.pairwise(points)
    edges = sorted(combinations(range(len(points)), 2), key=lambda e: (apart[e], e))
    number = {edge: i for i, edge in enumerate(edges)}
    triangles = sorted(
        (max(sides), *sides)
        for a, b, c in combinations(range(len(points)), 3)
        for sides in [(number[a, b], number[a, c], number[b, c])]
    )
    found, reduced = [], {}
    for last, *sides in triangles:
        boundary = sum(1 << side for side in sides)
        while boundary:
            latest = boundary.bit_length() - 1
            if latest not in reduced:
                reduced[latest] = boundary
                found.append((apart[edges[latest]], apart[edges[last]]))
                break
            boundary ^= reduced[latest]
    lasting = [(float(b), float(d)) for b, d in found if d > b]
    return sorted(lasting, key=lambda bar: bar[0] - bar[1])


@pytest.mark.parametrize("seed", range(6))
def test_loops_are_those_of_a_plain_reduction(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(14 + 2 * seed, 2 + seed % 3))
    found, plain = homology.loops(points), plain_loops(points)
    assert len(found) == len(plain) > 0
    assert np.allclose(sorted(found), sorted(plain))


def test_loops_of_a_grid_with_many_equal_distances_are_those_of_a_plain_reduction() -> None:
    points = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    points = np.delete(points, [5, 6], axis=0)
    found, plain = homology.loops(points), plain_loops(points)
    assert len(found) == len(plain) > 0
    assert np.allclose(sorted(found), sorted(plain))


def round_trip(count: int, noise: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    turn = np.arange(count) * 2 * np.pi / count
    plane = np.stack((np.cos(turn), np.sin(turn)), axis=1)
    return plane @ np.linalg.qr(generator.normal(size=(20, 2)))[0].T + noise * generator.normal(
        size=(count, 20)
    )


def test_landmarks_reach_every_point() -> None:
    points = round_trip(200, 0.01)
    chosen, reach = homology.landmarks(points, 24)
    apart = np.linalg.norm(points[:, None] - points[chosen], axis=-1).min(1)
    assert len(chosen) == 24
    assert apart.max() == pytest.approx(reach)
    assert reach < 0.25


def test_a_circle_is_no_noise_and_a_cloud_is() -> None:
    circle = round_trip(256, 0.01)
    found = fine_orbit.circle(circle.astype(np.float32), 0)
    assert (found["loops"], found["p"]) == (1, 0.05)
    cloud = homology.shapeless(circle, np.random.default_rng(1)).astype(np.float32)
    found = fine_orbit.circle(cloud, 0)
    assert found["loops"] == 0
    assert found["p"] > 0.05


def test_points_without_a_shape_keep_their_variances() -> None:
    points = np.random.default_rng(0).normal(size=(4000, 3)) * [3.0, 2.0, 1.0]
    drawn = homology.shapeless(points, np.random.default_rng(1))
    assert drawn.std(0) == pytest.approx([3.0, 2.0, 1.0], rel=0.06)
