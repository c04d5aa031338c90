"""Charts as SVG text: axes, lines, bands, bars and points. Colours come from the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# In units of the drawing. A phone shows it at about four fifths, so letters are large for it.
WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 18, 46
DEGREES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 180)


@dataclass(frozen=True)
class Axis:
    """From values to places: `low` lies left or below, `high` right or above."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between low (0) and high (1); what lies outside is moved inside."""
        low, high, value = (self._scaled(number) for number in (self.low, self.high, value))
        return min(1.0, max(0.0, (value - low) / ((high - low) or 1.0)))

    def _scaled(self, value: float) -> float:
        return math.log(max(value, 1e-9)) if self.log else value


def linear(label: str, low: float, high: float, *, count: int = 5, unit: str = "") -> Axis:
    """Ticks at 1, 2 or 5 times a power of ten; the axis ends on or after the last value."""
    step = _step((high - low) / count)
    end = low + step * math.ceil((high - low) / step - 1e-9)
    values = [low + step * k for k in range(round((end - low) / step) + 1)]
    return Axis(label, low, end, tuple((value, _short(value) + unit) for value in values))


def percent(label: str) -> Axis:
    ticks = tuple((k / 4, f"{25 * k}%") for k in range(5))
    return Axis(label, 0.0, 1.0, ticks)


def log_degrees(label: str, values: Sequence[float]) -> Axis:
    """Degrees on a logarithmic axis that holds all values."""
    low, high = max(min(values), DEGREES[0]), min(max(values), 180.0)
    first = max([k for k, tick in enumerate(DEGREES) if tick <= low], default=0)
    last = min([k for k, tick in enumerate(DEGREES) if tick >= high], default=len(DEGREES) - 1)
    last = max(last, min(first + 2, len(DEGREES) - 1))
    first = min(first, last - 2)
    ticks = tuple((tick, f"{tick:g}°") for tick in DEGREES[first : last + 1])
    return Axis(label, DEGREES[first], DEGREES[last], ticks, log=True)


def steps(last: int) -> Axis:
    step = max(1.0, _step(last / 4))
    values = [step * k for k in range(int(last / step) + 1)]
    return Axis("training step", 0, max(last, 1), tuple((v, _thousands(v)) for v in values))


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least so large."""
    least = max(least, 1e-6)
    power = 10.0 ** math.floor(math.log10(least))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= least * (1 - 1e-9))


def _short(value: float) -> str:
    return f"{value:.6g}"


def _thousands(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.6g}"


Points = Sequence[tuple[float, float]]


class Chart:
    """Parts are drawn in the order in which they are added. `kind` names a style of the page."""

    def __init__(self, x: Axis, y: Axis, title: str) -> None:
        self.x, self.y, self.title = x, y, title
        self.parts: list[str] = []

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * self.x.share(x)
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.y.share(y)

    def line(self, points: Points, kind: str) -> None:
        if len(points) == 1:
            self.dots(points, kind)
        elif points:
            self.parts.append(f'<polyline class="line {kind}" points="{self._path(points)}"/>')

    def band(self, rows: Sequence[tuple[float, float, float]], kind: str) -> None:
        """(x, low, high): the area between."""
        edge = [(x, low) for x, low, _ in rows] + [(x, high) for x, _, high in reversed(rows)]
        if len(rows) > 1:
            self.parts.append(f'<polygon class="band {kind}" points="{self._path(edge)}"/>')

    def dots(self, points: Points, kind: str) -> None:
        for x, y in points:
            across, down = self.place(x, y)
            self.parts.append(
                f'<circle class="dot {kind}" cx="{across:.1f}" cy="{down:.1f}" r="4"/>'
            )

    def whiskers(self, rows: Sequence[tuple[float, float, float]], kind: str) -> None:
        for x, low, high in rows:
            (across, down), (_, up) = self.place(x, low), self.place(x, high)
            self.parts.append(_segment(across, down, across, up, f"whisker {kind}"))

    def bars(self, rows: Sequence[tuple[float, float, float, str]], kind: str) -> None:
        """(from, to, height, label above)."""
        for start, end, height, label in rows:
            (left, top), (right, foot) = self.place(start, height), self.place(end, self.y.low)
            self.parts.append(
                f'<rect class="bar {kind}" x="{left + 2:.1f}" y="{top:.1f}" '
                f'width="{max(right - left - 4, 1):.1f}" height="{max(foot - top, 0):.1f}"/>'
                f'<text x="{(left + right) / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )

    def upright(self, x: float, label: str, kind: str) -> None:
        """A vertical line over the whole height, labelled on the side that has room."""
        (across, down), (_, up) = self.place(x, self.y.low), self.place(x, self.y.high)
        end = self.x.share(x) > 0.5
        shift, anchor = (-6, "end") if end else (6, "start")
        self.parts.append(
            _segment(across, down, across, up, f"mark {kind}")
            + f'<text class="marked" x="{across + shift:.1f}" y="{down - 8:.1f}" '
            f'text-anchor="{anchor}">{escape(label)}</text>'
        )

    def svg(self) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">'
            f"{self._grid()}{''.join(self.parts)}</svg>"
        )

    def _path(self, points: Points) -> str:
        return " ".join("{:.1f},{:.1f}".format(*self.place(x, y)) for x, y in points)

    def _grid(self) -> str:
        parts = []
        for value, label in self.y.ticks:
            _, down = self.place(self.x.low, value)
            parts.append(_segment(LEFT, down, WIDTH - RIGHT, down, "grid"))
            parts.append(
                f'<text x="{LEFT - 7}" y="{down + 4.5:.1f}" text-anchor="end">'
                f"{escape(label)}</text>"
            )
        for value, label in self.x.ticks:
            across, down = self.place(value, self.y.low)
            parts.append(
                f'<text x="{across:.1f}" y="{down + 18:.1f}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )
        middle = (TOP + HEIGHT - BOTTOM) / 2
        return (
            f'{"".join(parts)}<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" '
            f'y="{HEIGHT - 7}" text-anchor="middle">{escape(self.x.label)}</text>'
            f'<text class="axis" transform="translate(13 {middle:.0f}) rotate(-90)" '
            f'text-anchor="middle">{escape(self.y.label)}</text>'
        )


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def dial(mass: Sequence[float], truth: float, answer: float) -> str:
    """The posterior as rays around a circle, with the true angle and the answer as hands.

    0° is at the top; angles grow counter-clockwise, as pictures turn.
    """
    parts = ['<circle class="rim" r="46"/>']
    longest = max(mass, default=0.0) or 1.0
    for k, weight in enumerate(mass):
        if weight >= 0.02 * longest:
            x, y = _hand(360 * k / len(mass), 14 + 30 * weight / longest)
            x0, y0 = _hand(360 * k / len(mass), 14)
            parts.append(_segment(x0, y0, x, y, "ray"))
    for degrees, kind in ((truth, "truth"), (answer, "answer")):
        parts.append(_segment(0, 0, *_hand(degrees, 46), f"hand {kind}"))
    return (
        f'<svg class="dial" viewBox="-50 -50 100 100" role="img" '
        f'aria-label="turned by {truth:.0f}°, answer {answer:.0f}°">{"".join(parts)}</svg>'
    )


def _hand(degrees: float, length: float) -> tuple[float, float]:
    turn = math.radians(degrees)
    return -length * math.sin(turn), -length * math.cos(turn)
