"""Small plots as inline SVG: no script, no font, no network. Colours are CSS variables, so that a page can be dark.

A plot is drawn in 420 x 280 units, which a phone shows at nearly full size and a desktop enlarges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

WIDTH, HEIGHT = 420, 280
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 14, 40


@dataclass(frozen=True)
class Point:
    """One value; `low` and `high` are its interval's ends, `note` what is shown when it is pointed at."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    label: str = ""


@dataclass(frozen=True)
class Series:
    """Points of one run; `colour` is the number of its CSS variable."""

    name: str
    colour: int
    points: tuple[Point, ...]


def nice_ticks(top: float, wanted: int = 5) -> list[float]:
    """0 and round steps up to `top` or just above it."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / wanted
    power = 10 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    count = int(top / step - 1e-9) + 1
    return [step * place for place in range(count + 1)]


def number(value: float) -> str:
    """A tick's text: at most three figures that matter."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


class Canvas:
    """The frame, axes and ticks of a plot, and the parts drawn into it."""

    def __init__(self, title: str, x_title: str, y_title: str, y_top: float, x_range: tuple[float, float]) -> None:
        self._parts: list[str] = []
        self._title = title
        self._ticks = nice_ticks(y_top)
        self._x_range = x_range
        self._axes(x_title, y_title)

    def x(self, value: float) -> float:
        """A value's place across."""
        low, high = self._x_range
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """A value's place down."""
        return HEIGHT - BOTTOM - value / self._ticks[-1] * (HEIGHT - TOP - BOTTOM)

    def add(self, part: str) -> None:
        """A piece of SVG."""
        self._parts.append(part)

    def _axes(self, x_title: str, y_title: str) -> None:
        for tick in self._ticks:
            place = self.y(tick)
            self.add(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>')
            self.text(LEFT - 6, place + 4, number(tick), "end")
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_title, "middle")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        self.add(
            f'<text transform="translate(12 {middle:.0f}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>'
        )

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Words at a place."""
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def x_label(self, value: float, words: str) -> None:
        """A label below the axis."""
        self.text(self.x(value), HEIGHT - BOTTOM + 16, words, "middle")

    def svg(self) -> str:
        """The whole plot."""
        head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self._title, quote=True)}">'
        return head + "".join(self._parts) + "</svg>"


def _top(series: Sequence[Series]) -> float:
    return max((max(p.y, p.high or 0.0) for each in series for p in each.points), default=1.0)


def line_plot(
    title: str, x_title: str, y_title: str, series: Sequence[Series], x_labels: Sequence[str], mark: float | None = None
) -> str:
    """Lines over equally spaced labels; points carry their intervals as bars. `mark`: a dashed line at this value."""
    canvas = Canvas(title, x_title, y_title, max(_top(series), mark or 0), (-0.4, len(x_labels) - 0.6))
    for place, words in enumerate(x_labels):
        canvas.x_label(place, words)
    if mark is not None:
        y = canvas.y(mark)
        canvas.add(f'<line class="mark" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    # Intervals of several runs at one label stand beside each other, not on top.
    step = min(0.06, 0.5 / max(1, len(series)))
    for number_, each in enumerate(series):
        shift = (number_ - (len(series) - 1) / 2) * step
        _line(canvas, each, shift)
    return canvas.svg()


def _line(canvas: Canvas, series: Series, shift: float = 0.0) -> None:
    style = f"--c:var(--c{series.colour})"
    places = [(canvas.x(point.x + shift), canvas.y(point.y), point) for point in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    canvas.add(f'<polyline class="line" style="{style}" points="{path}"/>')
    for x, y, point in places:
        if point.low is not None and point.high is not None:
            top, bottom = canvas.y(point.high), canvas.y(max(0.0, point.low))
            canvas.add(
                f'<path class="bar" style="{style}" d="M{x:.1f} {bottom:.1f}V{top:.1f}'
                f'M{x - 3:.1f} {top:.1f}h6M{x - 3:.1f} {bottom:.1f}h6"/>'
            )
        note = f"<title>{escape(point.note)}</title>" if point.note else ""
        canvas.add(f'<circle class="dot" style="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{note}</circle>')
        if point.label:
            canvas.text(x + 6, y - 5, point.label)


def scatter_plot(title: str, x_title: str, y_title: str, series: Sequence[Series]) -> str:
    """Points over two measured axes, joined in their order."""
    right = nice_ticks(max((p.x for each in series for p in each.points), default=1.0))
    canvas = Canvas(title, x_title, y_title, _top(series), (0.0, right[-1] * 1.06))
    for tick in right:
        canvas.x_label(tick, number(tick))
    for each in series:
        _line(canvas, each)
    return canvas.svg()


def bar_plot(
    title: str,
    y_title: str,
    groups: Sequence[str],
    series: Sequence[Series],
    mark: float | None = None,
    x_title: str = "",
) -> str:
    """Bars side by side in each group; a point's `x` is the place of its group. `mark`: a dashed line."""
    canvas = Canvas(title, x_title, y_title, max(_top(series), mark or 0), (-0.5, len(groups) - 0.5))
    for place, words in enumerate(groups):
        canvas.x_label(place, words if len(words) <= 13 else words[:12] + "…")
    width = 0.8 / max(1, len(series))
    for number_, each in enumerate(series):
        for point in each.points:
            left = canvas.x(point.x - 0.4 + number_ * width)
            across = canvas.x(point.x - 0.4 + (number_ + 0.92) * width) - left
            top = canvas.y(point.y)
            note = f"<title>{escape(point.note)}</title>" if point.note else ""
            canvas.add(
                f'<rect class="fill" style="--c:var(--c{each.colour})" x="{left:.1f}" y="{top:.1f}" '
                f'width="{across:.1f}" height="{HEIGHT - BOTTOM - top:.1f}">{note}</rect>'
            )
    if mark is not None:
        y = canvas.y(mark)
        canvas.add(f'<line class="mark" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    return canvas.svg()
