"""Loops in a cloud of points: persistent homology of its Vietoris–Rips complex, dimension one.

Points are joined as the distance grows. A loop is born with the edge that closes it and dies with
the triangle that fills it; a long-lived loop is a feature of the point cloud, not noise. Written
for up to a few hundred points, which do not need a package for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.floating]


def loops(points: Points) -> list[tuple[float, float]]:
    """(birth, death) of every loop of n points (n, d), longest first; coefficients are Z/2.

    The coboundary matrix is reduced edge by edge, from the longest. If a third point is nearer to
    both ends of an edge than they are to each other, its loop is filled at once, so only the few
    other edges that close a loop need a reduction.
    """
    edges = _Edges.of(pairwise(points))
    bars: list[tuple[float, float]] = []
    killers: dict[int, list[int]] = {}  # triangle → the edges whose coboundaries it is reduced by
    for edge in edges.open_edges():
        column = _Column(edges)
        column.add(edge)
        reduced_by = [edge]
        while (killer := column.first()) is not None:
            last = killer // edges.count  # the longest edge of the triangle
            if killer == edges.instant[last]:
                reducers = [last]
            elif killer in killers:
                reducers = killers[killer]
            else:
                killers[killer] = reduced_by
                birth, death = float(edges.lengths[edge]), float(edges.lengths[last])
                if death > birth:
                    bars.append((birth, death))
                break
            for other in reducers:
                column.add(other)
            reduced_by = reduced_by + reducers
    return sorted(bars, key=lambda bar: bar[0] - bar[1])


@dataclass(frozen=True)
class _Edges:
    """Edges by rank, from the shortest; a triangle is its longest edge and the third point."""

    count: int  # n, of points
    rank: NDArray[np.int64]  # (n, n), symmetric; on the diagonal −1
    ends: NDArray[np.int64]  # (edges, 2)
    lengths: NDArray[np.float64]  # (edges,)
    instant: NDArray[np.int64]  # (edges,): the triangle that fills an edge's loop at once, or −1

    @classmethod
    def of(cls, distances: NDArray[np.float64]) -> _Edges:
        n = len(distances)
        rows, columns = np.triu_indices(n, 1)
        order = np.argsort(distances[rows, columns], kind="stable")
        rows, columns = rows[order], columns[order]
        rank = np.full((n, n), -1)
        rank[rows, columns] = rank[columns, rows] = np.arange(len(rows))
        instant = np.full(len(rows), -1)
        for start in range(0, len(rows), 4096):  # (4096, n) at a time
            chunk = slice(start, start + 4096)
            near = np.maximum(rank[rows[chunk]], rank[columns[chunk]]) < np.arange(
                start, min(start + 4096, len(rows))
            ).reshape(-1, 1)
            rows_here = np.arange(len(near))
            near[rows_here, rows[chunk]] = near[rows_here, columns[chunk]] = False
            third = near.argmax(1)
            instant[chunk] = np.where(near.any(1), (start + rows_here) * n + third, -1)
        ends = np.stack((rows, columns), axis=1)
        return cls(n, rank, ends, distances[rows, columns], instant)

    def open_edges(self) -> list[int]:
        """The edges that close a loop which is not filled at once, from the longest."""
        joining = _joining(self.ends, self.count)
        candidates = np.flatnonzero(self.instant < 0)
        return [int(edge) for edge in candidates[::-1] if int(edge) not in joining]

    def triangles(self, edge: int) -> list[int]:
        """The triangles on an edge."""
        a, b = self.ends[edge]
        others = np.delete(np.arange(self.count), [a, b])
        to_a, to_b = self.rank[a, others], self.rank[b, others]
        # The third point is the one opposite to the longest edge.
        longest = np.maximum(np.maximum(to_a, to_b), edge)
        third = np.where(longest == edge, others, np.where(longest == to_a, b, a))
        return (longest * self.count + third).tolist()  # type: ignore[no-any-return]


class _Column:
    """A sum of coboundaries modulo 2, which gives only its first triangle."""

    def __init__(self, edges: _Edges) -> None:
        self.edges = edges
        self.terms: set[int] = set()
        self.heap: list[int] = []

    def add(self, edge: int) -> None:
        for triangle in self.edges.triangles(edge):
            if triangle in self.terms:
                self.terms.remove(triangle)
            else:
                self.terms.add(triangle)
                heappush(self.heap, triangle)

    def first(self) -> int | None:
        while self.heap and self.heap[0] not in self.terms:
            heappop(self.heap)
        return self.heap[0] if self.heap else None


def _joining(ends: NDArray[np.int64], count: int) -> set[int]:
    """The edges that join two components; all others close a loop."""
    parent = list(range(count))

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    joining = set()
    for edge, (a, b) in enumerate(ends.tolist()):
        first, second = root(a), root(b)
        if first != second:
            joining.add(edge)
            parent[first] = second
            if len(joining) == count - 1:
                break
    return joining


def pairwise(points: Points) -> NDArray[np.float64]:
    """(n, d) → (n, n) Euclidean distances."""
    exact = np.asarray(points, dtype=np.float64)
    exact = exact - exact.mean(0)  # nothing to cancel far from the origin
    squares = (exact**2).sum(1)
    squared: NDArray[np.float64] = squares[:, None] + squares - 2 * exact @ exact.T
    return np.sqrt(np.maximum(squared, 0))


def one_circle(points: Points) -> float:
    """A score in [0, 1): the lifetime of the longest loop minus that of the next, over its death.

    A circle of n equal steps scores about 1 − 2·sin(π/n)/√3; no loop, or two equal ones, score 0.
    """
    return circle_score(loops(points))


def circle_score(bars: list[tuple[float, float]]) -> float:
    """The score of `one_circle` from the loops."""
    if not bars:
        return 0.0
    (birth, death), rest = bars[0], bars[1:]
    second = rest[0][1] - rest[0][0] if rest else 0.0
    return (death - birth - second) / death


# --- which loops are noise ---


def landmarks(points: Points, count: int) -> tuple[NDArray[np.int64], float]:
    """Points far from one another, and the largest distance of any point to the nearest of them.

    The births and deaths of the landmarks' loops equal those of all points within twice that
    distance.
    """
    exact = np.asarray(points, dtype=np.float64)
    chosen = [0]
    nearest = np.linalg.norm(exact - exact[0], axis=1)
    while len(chosen) < min(count, len(exact)):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(exact - exact[chosen[-1]], axis=1))
    return np.array(sorted(chosen)), float(nearest.max())


def bootstrap_band(points: Points, repetitions: int, seed: int, level: float = 0.05) -> float:
    """The life up to which a loop is noise, at this level.

    Points are resampled with replacement. A Hausdorff distance of h from the original points moves
    births and deaths by at most 2h, so a loop that lives longer than 4h does not depend on the
    sample.
    """
    distances = pairwise(points)
    generator = np.random.default_rng(seed)
    hausdorff = [
        distances[:, np.unique(generator.integers(len(distances), size=len(distances)))]
        .min(1)
        .max()
        for _ in range(repetitions)
    ]
    return 4 * float(np.quantile(hausdorff, 1 - level))


def shapeless(points: Points, generator: np.random.Generator) -> NDArray[np.float64]:
    """The same number of points with the same variance along each principal axis, and no shape.

    Along each axis, values are drawn with replacement, independently of the other axes.
    """
    exact = np.asarray(points, dtype=np.float64)
    exact = exact - exact.mean(0)
    _, _, axes = np.linalg.svd(exact, full_matrices=False)
    along = exact @ axes.T  # (n, axes)
    rows = generator.integers(len(along), size=along.shape)
    return np.take_along_axis(along, rows, axis=0)


def longest(points: Points, count: int) -> float:
    """The life of the longest loop over its death, among landmarks; 0 if there is no loop."""
    bars = loops(np.asarray(points)[landmarks(points, count)[0]])
    return (bars[0][1] - bars[0][0]) / bars[0][1] if bars else 0.0
