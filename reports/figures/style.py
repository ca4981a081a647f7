"""The one look of all figures: Okabe-Ito colours, text as text, byte-identical files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness.files.printable import visible
from reports.document.blocks import Figure

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure as Plot
    from numpy.typing import NDArray

INK = "#1d232b"
MUTED = "#6a7380"
INK_ON_LIGHT = "#1d232c"  # on colours that a dark page has too: `inline` replaces only `INK`
GRID = "#dfe3e8"
# Okabe & Ito (2008), "Color universal design", without black (the ink) and yellow (too light on
# white); ordered so that neighbours differ in lightness and stay apart in grey print, where markers
# and dashes help.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.5)),
    (0, (5, 1.5, 1.5, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


_own: ContextVar[dict[str, Any]] = ContextVar("own", default={})  # noqa: B039 - never changed in place


def look(index: int) -> dict[str, Any]:
    """Colour, dash and marker of the index-th row: no two of the first 24 rows are alike."""
    cycle = _own.get().get("axes.prop_cycle")
    if cycle is not None:
        colours = cycle.by_key().get("color", COLOURS)
    else:
        colours = COLOURS
    return {
        "color": colours[index % len(colours)],
        "linestyle": DASHES[(index // len(colours)) % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
    }


def changed_settings() -> dict[str, Any]:
    """What of matplotlib's settings the caller, or a matplotlibrc, has changed."""
    import matplotlib as mpl

    # The library's own type has an overload for each of 300 keys, which takes mypy seconds.
    default = cast("dict[str, Any]", mpl.rcParamsDefault)
    current = cast("dict[str, Any]", mpl.rcParams)
    found: dict[str, Any] = {}
    for key, value in default.items():
        if key != "backend" and current[key] != value:
            found[key] = current[key]
    return found


@contextmanager
def with_settings(own: dict[str, Any]) -> Iterator[None]:
    """Figures that are made inside have these settings of matplotlib above ours."""
    before = _own.set(own)
    try:
        yield
    finally:
        _own.reset(before)


@contextmanager
def style() -> Iterator[None]:
    """Our settings and those of `with_settings`, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A label in a script that the font lacks: boxes in print.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        mpl.rcdefaults()
        sheet = Path(__file__).with_name("report.mplstyle")
        mpl.rc_file(sheet, use_default_template=False)
        mpl.rcParams.update(cast("Any", _own.get()))
        yield


def new(width: float, height: float) -> Plot:
    """An empty figure of that size in inches, as wide as the caller's `figure.figsize`; without
    pyplot (no display).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Plot

    size = _own.get().get("figure.figsize")
    if size is not None:
        width = size[0]
    plot = Plot(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(plot)  # measures text for the placement of labels
    return plot


def plain(axis: Any) -> None:
    """Numbers as they are read (0.01, 1,000), also on a logarithmic axis: powers would need a
    parser of formulas.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def add_bar(
    plot: Plot,
    mappable: Any,
    axes: Any,
    label: str,
    aspect: float = 30,
) -> None:
    """The scale of a figure's colours, on its right."""
    bar = plot.colorbar(mappable, ax=axes, pad=0.02, aspect=aspect)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    cast("Any", bar.outline).set_visible(False)


def draw_heat_map(
    axes: Any,
    values: NDArray[np.float64],
    across: Sequence[object],
    up: Sequence[object],
    limits: tuple[float, float],
    *,
    digits: int = 1,
) -> Any:
    """Draw (up, across) values as colours with the numbers in them, NaN as nothing; what a scale is
    drawn from.

    Args:
        across, up: labels of the columns and of the rows, the first row below.
        limits: the values that the darkest and the lightest colour are for.
    """
    import numpy as np

    low, high = limits
    mesh = axes.pcolormesh(
        np.arange(len(across) + 1) - 0.5,
        np.arange(len(up) + 1) - 0.5,
        values,
        cmap="cividis",
        vmin=low,
        vmax=max(high, low + 1e-9),
    )
    middle = (low + high) / 2
    for (y, x), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        text = f"{value:.{digits}f}".replace("-", "\u2212")
        axes.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if value < middle else INK_ON_LIGHT,
        )
    axes.set_xticks(range(len(across)), across, fontsize=7)
    axes.set_yticks(range(len(up)), up, fontsize=7)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return mesh


def new_panels(plot: Plot, count: int, columns: int, **options: Any) -> Any:
    """Axes for so many panels, line by line; what is left of the last line is not shown."""
    lines = -(-count // columns)
    grid = plot.subplots(lines, columns, squeeze=False, **options).ravel()
    for i, axes in enumerate(grid[count:], count):
        axes.set_visible(False)
        if i >= columns:  # the panel above ends its column: it says what the axis is
            grid[i - columns].tick_params(labelbottom=True)
    return grid[:count]


def legend_below(plot: Plot, handles: Iterable[Any], labels: Iterable[str]) -> None:
    """The legend of a figure of full width, in as many columns as its longest label leaves room
    for.
    """
    names = list(labels)
    if max(map(len, names), default=0) <= 19:
        columns = 4
    else:
        columns = 3
    plot.legend(
        list(handles),
        names,
        loc="outside lower center",
        ncols=min(columns, len(names)),
        fontsize=8,
    )


def settle(plot: Plot) -> None:
    """Lay the plot out, once and not again for each format: every draw with a layout engine is done
    twice.
    """
    if plot.get_layout_engine() is not None:
        plot.draw_without_rendering()
        plot.set_layout_engine(None)


_FONTS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


def _compact(svg: str) -> str:
    """Half the size: hundredths of a point suffice, and the fonts need be named once."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = svg.replace("'DejaVu Sans'", "system-ui, 'Segoe UI', 'DejaVu Sans'")
    svg = svg.replace(f" font-family: {_FONTS};", "").replace(
        "<svg ",
        f'<svg font-family="{_FONTS}" ',
        1,
    )
    svg = re.sub(
        r"(?<= d=\")[^\"]*",
        lambda m: _round_numbers(m[0]).strip().replace(" \n", " "),
        svg,
    )
    svg = re.sub(r' (?:x|y|points)="[^"]*"', lambda m: _round_numbers(m[0]), svg)
    return re.sub(r">\s+<", ">\n<", svg)


def _round_numbers(numbers: str) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", numbers)


def finish(
    plot: Plot,
    key: str,
    title: str,
    caption: str,
    alt: str,
) -> Figure:
    """A plot to be drawn in the requested formats. It is laid out with the first: most callers want
    tables or other figures, and its text has to be measured for that.
    """
    from matplotlib.text import Text

    for text in plot.findobj(Text):  # a control character would make the SVG no XML at all
        if isinstance(text, Text) and (clean := visible(text.get_text())) != text.get_text():
            text.set_text(clean)
    own = _own.get()

    def lay_out() -> Plot:
        with with_settings(own), style():  # labels of ticks are made when they are drawn
            settle(plot)
        return plot

    return Figure(key, title, caption, alt, lay_out, draw)


# Without dates or anything else that changes between builds.
_AS: dict[str, dict[str, Any]] = {
    "svg": {"transparent": True, "metadata": {"Date": None, "Creator": None}},
    "png": {"dpi": 160, "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}


def draw(plot: Plot, kind: str) -> bytes:
    """The file of a plot in a format: the same bytes each time."""
    file = io.BytesIO()
    with style():
        plot.savefig(file, format=kind, **_AS[kind])
    if kind != "svg":
        return file.getvalue()
    return _compact(
        re.sub(r"^.*?(?=<svg )", "", file.getvalue().decode(), flags=re.DOTALL)
    ).encode()


def _limit_width(found: re.Match[str]) -> str:
    """Return the start of an SVG whose text is neither tiny on a phone nor large on a wide page."""
    width = float(found[2])
    return f'{found[1]} style="min-width: {width:.0f}px; max-width: {1.62 * width:.0f}px"'


def inline(figure: Figure, prefix: str) -> str:
    """The SVG for the inside of a page: ids made unique by `prefix`, colours that follow light and
    dark.
    """
    svg = re.sub(r'(?<=\s)id="', f'id="{prefix}-', figure.svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'xlink:href="#', f'xlink:href="#{prefix}-', svg)
    colours = {
        INK: "ink",
        MUTED: "muted",
        GRID: "grid",
        "#0072b2": "blue",
    }
    for colour, name in colours.items():
        svg = svg.replace(colour, f"var(--figure-{name}, {colour})")
    svg = re.sub(r'(<svg [^>]*?)\swidth="([\d.]+)pt"', _limit_width, svg, count=1)
    svg = re.sub(r'(<svg [^>]*?)\sheight="[\d.]+pt"', r"\1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-labelledby="{prefix}-alt" ', 1)
