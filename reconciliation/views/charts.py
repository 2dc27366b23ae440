"""Charts as SVG, drawn on the server by `leather`, in the theme's own colours.

`leather` writes presentation attributes only, which the content security policy lets be (a test looks); its colours
are replaced by classes, so that both themes' tokens apply. What a chart shows is always in a table beside it too.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import leather
from django.utils.safestring import SafeString, mark_safe
from leather import theme

WIDTH, HEIGHT = 520, 230
# More lines than this in one chart can't be told apart.
MOST_LINES = 5
_COLOURS = [f"#0000{number}" for number in range(11, 11 + MOST_LINES)]
_FONT = "system-ui, sans-serif"

# What leather would write as a colour, and the class that stands for it (static/landed/team.css).
_CLASSES: Mapping[str, str] = {
    "#000001": "chart-back",
    "#000002": "chart-tick",
    "#000003": "chart-zero",
    "#000004": "chart-text",
    **{colour: f"chart-{number}" for number, colour in enumerate(_COLOURS, start=1)},
}


def _set_up() -> None:
    """leather has one theme for the process. It is set once, when this module is loaded."""
    theme.background_color, theme.tick_color, theme.zero_color = "#000001", "#000002", "#000003"
    theme.label_color = theme.legend_color = theme.axis_title_color = theme.title_color = "#000004"
    theme.tick_font_family = theme.legend_font_family = theme.axis_title_font_family = _FONT
    theme.tick_font_size = theme.legend_font_size = theme.axis_title_font_size = 12
    theme.tick_font_char_width, theme.legend_font_char_width, theme.margin = 7, 7, 0.03
    theme.default_series_colors = _COLOURS


_set_up()


class _Dots(leather.Dots):  # type: ignore[misc]  # leather has no types
    """The points of a line: the line itself is in the legend already."""

    def legend_to_svg(self, series: Any, palette: Any) -> list[tuple[ET.Element, float]]:
        return []


def bars(rows: Sequence[tuple[str, int]], *, title: str) -> SafeString:
    """One bar per row, from the top: `[("under 1 h", 3), …]`. `title` is what the picture is called."""
    chart = leather.Chart()
    chart.add_bars([(count, name) for name, count in rows])
    _scale(chart.add_x_scale, chart.add_x_axis, max((count for _, count in rows), default=0), str)
    return _drawn(chart, title)


def columns(rows: Sequence[tuple[str, int]], *, title: str) -> SafeString:
    """One column per row, from the left."""
    chart = leather.Chart()
    chart.add_columns([(name, count) for name, count in rows])
    _scale(chart.add_y_scale, chart.add_y_axis, max((count for _, count in rows), default=0), str)
    return _drawn(chart, title)


def lines(days: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], *, title: str) -> SafeString:
    """One line per series, a point per day, in per cent; no point (and a gap) for a day without anything."""
    chart = leather.Chart()
    for colour, (name, values) in zip(_COLOURS, series, strict=False):
        points = [(float(place), value) for place, value in enumerate(values)]
        known = [point for point in points if point[1] is not None] or [(0.0, 0.0)]
        chart.add_series(leather.Series(points, name=name), leather.Line(colour))
        # A day between two days without anything is no line: a dot shows it.
        chart.add_series(leather.Series(known, name=name), _Dots(colour))
    highest = max((value for _, values in series for value in values if value is not None), default=0)
    chart.add_x_scale(0, max(len(days) - 1, 1))
    chart.add_x_axis(ticks=list(range(len(days))), tick_formatter=lambda value, *_: days[int(value)])
    _scale(chart.add_y_scale, chart.add_y_axis, highest, lambda value: f"{value:g} %")
    return _drawn(chart, title)


def _scale(
    scale: Callable[[int, int], None], axis: Callable[..., None], highest: float, label: Callable[[int], str]
) -> None:
    """From 0 to a round number, with at most five ticks, all whole."""
    step = next(size for size in _steps() if size * 4 >= highest)
    scale(0, step * 4)
    axis(ticks=[step * number for number in range(5)], tick_formatter=lambda value, *_: label(value))


def _steps() -> Sequence[int]:
    return [digit * 10**power for power in range(18) for digit in (1, 2, 5)]


def _drawn(chart: leather.Chart, title: str) -> SafeString:
    """The SVG as a picture with a name, and with classes for colours. leather escapes what it is given."""
    root = ET.Element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "class": "chart", "role": "img"})
    root.set("aria-label", title)
    root.append(chart.to_svg_group(WIDTH, HEIGHT))
    for element in root.iter():
        for attribute in ("fill", "stroke"):
            if name := _CLASSES.get(element.get(attribute, "")):
                del element.attrib[attribute]
                element.set("class", f"{element.get('class', '')} {name}-{attribute}".strip())
    return mark_safe(ET.tostring(root, encoding="unicode"))  # noqa: S308  ElementTree escaped every text in it
