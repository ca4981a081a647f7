"""The one look of all figures: Okabe-Ito colours, text as text, byte-identical files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from reports.document import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

INK = "#1d232b"
MUTED = "#6a7380"
GRID = "#dfe3e8"
# Okabe & Ito (2008), "Color universal design", without black (the ink) and yellow (too light on white); ordered so
# that neighbours differ in lightness and stay apart in grey print, where markers and dashes help.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

_RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same layout on every machine
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "text.usetex": False,
    "text.parse_math": False,  # a "$" in a method's name is a dollar sign
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",
    "pdf.fonttype": 42,
}


def look(index: int) -> dict[str, Any]:
    """Colour, dash and marker of the index-th row: no two of the first 24 rows are alike."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[(index // len(COLOURS)) % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
    }


@contextmanager
def style() -> Iterator[None]:
    """Our settings and no others, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(cast("Any", _RC))
        yield


def new(width: float, height: float) -> Plot:
    """An empty figure of that size in inches, without the pyplot machinery (no display, nothing to close)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Plot

    plot = Plot(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(plot)  # measures text for the placement of labels
    return plot


def finish(plot: Plot, key: str, title: str, caption: str, alt: str) -> Figure:
    """Write a plot in all formats, without dates or anything else that changes between builds."""
    plot.draw_without_rendering()
    plot.set_layout_engine("none")  # laid out once, not again for each format
    vector, raster, print_ = io.StringIO(), io.BytesIO(), io.BytesIO()
    plot.savefig(vector, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plot.savefig(raster, format="png", dpi=160, metadata={"Software": None})
    plot.savefig(print_, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    svg = re.sub(r"^.*?(?=<svg )", "", vector.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("'DejaVu Sans'", "system-ui, 'Segoe UI', 'DejaVu Sans'")
    return Figure(key, title, caption, alt, svg, raster.getvalue(), print_.getvalue())


def inline(figure: Figure, prefix: str) -> str:
    """The SVG for the inside of a page: ids made unique by `prefix`, colours that follow light and dark."""
    svg = re.sub(r'(?<=\s)id="', f'id="{prefix}-', figure.svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'xlink:href="#', f'xlink:href="#{prefix}-', svg)
    for colour, name in ((INK, "ink"), (MUTED, "muted"), (GRID, "grid"), ("#0072b2", "blue")):
        svg = svg.replace(colour, f"var(--figure-{name}, {colour})")
    svg = re.sub(r'(<svg [^>]*?)\swidth="([\d.]+)pt"', r'\1 style="max-width: 840px"', svg, count=1)
    svg = re.sub(r'(<svg [^>]*?)\sheight="[\d.]+pt"', r"\1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-labelledby="{prefix}-alt" ', 1)
