"""Loops in a cloud of points: persistent homology of its Vietoris–Rips complex, dimension one.

Points are joined as the distance grows. A loop is born with the edge that closes it and dies with
the triangle that fills it; a long-lived loop is a feature of the point cloud, not noise. Written
for up to about a hundred points, which do not need a package for it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def loops(points: NDArray[np.floating]) -> list[tuple[float, float]]:
    """(birth, death) of every loop of n points (n, d), longest first; coefficients are Z/2."""
    distances = pairwise(points)
    edges = sorted(combinations(range(len(points)), 2), key=lambda e: (distances[e], e))
    number = {edge: i for i, edge in enumerate(edges)}
    closing = _closing(edges, len(points))  # the edges that close a loop, rather than join parts
    triangles = sorted(
        (max(number[a, b], number[a, c], number[b, c]), number[a, b], number[a, c], number[b, c])
        for a, b, c in combinations(range(len(points)), 3)
    )
    found: list[tuple[float, float]] = []
    reduced: dict[int, int] = {}  # by its latest edge, the boundary that kills that edge's loop
    for last, *sides in triangles:
        if len(reduced) == len(closing):
            break  # every loop is filled; the other triangles only enclose voids
        boundary = sum(1 << side for side in sides)
        while boundary:
            latest = boundary.bit_length() - 1
            if latest not in reduced:
                reduced[latest] = boundary
                birth, death = distances[edges[latest]], distances[edges[last]]
                if death > birth:
                    found.append((float(birth), float(death)))
                break
            boundary ^= reduced[latest]
    return sorted(found, key=lambda bar: bar[0] - bar[1])


def pairwise(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """(n, d) → (n, n) Euclidean distances."""
    exact = np.asarray(points, dtype=np.float64)
    exact = exact - exact.mean(0)  # nothing to cancel far from the origin
    squares = (exact**2).sum(1)
    apart: NDArray[np.float64] = squares[:, None] + squares - 2 * exact @ exact.T
    return np.sqrt(np.maximum(apart, 0))


def _closing(edges: list[tuple[int, int]], count: int) -> set[int]:
    parent = list(range(count))

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    found = set()
    for i, (a, b) in enumerate(edges):
        first, second = root(a), root(b)
        if first == second:
            found.add(i)
        parent[first] = second
    return found


def one_circle(points: NDArray[np.floating]) -> float:
    """A score in [0, 1): the lifetime of the longest loop minus that of the next, over its death.

    A circle of n equal steps scores about 1 − 2·sin(π/n)/√3; no loop, or two equal ones, score 0.
    """
    bars = loops(points)
    if not bars:
        return 0.0
    (birth, death), rest = bars[0], bars[1:]
    second = rest[0][1] - rest[0][0] if rest else 0.0
    return (death - birth - second) / death
