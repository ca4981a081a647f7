"""Scores of vectors that are cut or quantised: a table for each pair set, and the score by bytes
for all of them.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from reports.document.blocks import Figure
from reports.document.table import Column, Table
from reports.figures.labels import row_name
from reports.figures.style import finish, legend_below, look, new, new_panels, plain, style
from reports.load import RecordedResults
from reports.tables.score_table import ScoreTable
from reports.targets import SOURCES, Measure, Target, rows_shown

_GROUPS = {
    "first": "First dimensions",
    "pca": "Principal dimensions",
    "random": "Random dimensions",
}
_QUANTISED = {
    "spearman_st_int8": "int8 (ST)",
    "spearman_mteb_int8": "int8 (mteb)",
    "spearman_binary": "bits, cosine",
    "spearman_hamming": "bits, Hamming",
}
_SHOWN = (256, 64, 16)  # numbers of dimensions in the table; all are in the figure
Curve = dict[str, tuple[float, float]]  # metric -> bytes of a sentence, score x 100


def compression_tables(comparison: RecordedResults) -> list[Table]:
    """One table for each pair set."""
    return [_table(comparison, task, source) for task, source in comparison.columns("compression")]


def _table(comparison: RecordedResults, task: str, source: str) -> Table:
    made = ScoreTable(comparison, None)
    pairs = task.removeprefix("compression:")
    names = {"spearman": ("", "all", "")}
    for group, title in _GROUPS.items():
        for k in _SHOWN:
            size = f"{4 * k:,} B"
            names[f"spearman_{group}_{k}"] = (title, str(k), size)
    for metric, title in _QUANTISED.items():
        names[metric] = ("Quantised", title, "")
    for metric, (group, title, sub) in names.items():
        is_whole = metric == "spearman"
        if is_whole or any(row.scores(task, source, metric) for row in comparison.rows):
            made.add_task(
                Column(metric, title, sub, group=group),
                Measure(task, source, metric, ""),
                noun="pairs" if is_whole else "",
                decides=False,
            )
    caption = f"{pairs} ({SOURCES.get(source, source)}) by vectors of fewer dimensions or bits, compared by cosine."
    legend = (
        "Spearman ×100, mean ± standard deviation over seeds. Principal dimensions are fitted to the sentences of the "
        "set; random ones are the mean of ten draws: chance. int8 as in sentence-transformers (ST) and in mteb."
    )
    return made.table(
        f"compression-{source}-{pairs}",
        f"Compressed vectors · {pairs}",
        caption,
        legend,
    )


def compression_figure(comparison: RecordedResults, target: Target | None = None) -> Figure | None:
    """Score by bytes of a sentence, a panel for each pair set: first dimensions as a line, int8 and
    bits as marks.
    """
    panels = {}
    for task, _ in comparison.columns("compression"):
        curves = _read_curves(comparison, task)
        if curves:
            panels[task] = curves
    found = []
    for row in comparison.rows:
        if any(row.key in curves for curves in panels.values()):
            found.append(row)
    rows, others = rows_shown(found, target)
    if not rows:
        return None
    with style():
        plot = new(7.2, 3.4 + 0.17 * -(-len(rows) // 4))
        said = []
        grid = new_panels(plot, len(panels), 2)
        for axes, (task, curves) in zip(grid, panels.items(), strict=True):
            pairs = task.removeprefix("compression:")
            for i, row in enumerate(rows):
                if row.key in curves:
                    least = _draw_curve(axes, i, row_name(row, comparison), curves[row.key])
                    said.append(f"{pairs}, {row.label}: {least}")
            axes.set_xscale("log", base=2)
            plain(axes.xaxis)
            axes.set_xlabel("bytes a sentence")
            axes.set_ylabel("Spearman ×100")
            axes.set_title(pairs, fontsize=8)
        handles = {}
        for axes in plot.axes:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles[name] = handle
        legend_below(plot, handles.values(), handles)
        return finish(
            plot,
            "compression",
            "Score by size of the vectors",
            "Mean over seeds. Filled: the first dimensions, in 32 bits; all of them on the right. Hollow: all "
            f"dimensions in 1 bit (Hamming distance), 8 bits (int8 of sentence-transformers) and 32 bits.{others}",
            f"Rising lines. Least bytes within a point of all dimensions: {'; '.join(said)}.",
        )


def _read_curves(comparison: RecordedResults, task: str) -> dict[tuple[str, str], Curve]:
    """Return the curve of each row whose runs stored one: means over seeds, times 100."""
    curves: dict[tuple[str, str], Curve] = {}
    for key, runs in comparison.figure_data.items():
        stored = []
        for _, parts in runs:
            part = parts.get(task, {})
            if "compression" in part:
                stored.append(part["compression"])
        if not stored:
            continue
        try:
            curve: Curve = {}
            for metric, (size, _) in stored[0].items():
                values = [one[metric][1] for one in stored]
                curve[metric] = (size, 100 * mean(values))
            curves[key] = curve
        except (TypeError, KeyError, IndexError, ValueError, AttributeError):
            comparison.warnings.append(f"curves of {key[1]} ({task}) are damaged: left out")
    return curves


def _draw_curve(axes: Any, place: int, name: str, curve: Curve) -> str:
    """Draw the curve of a row; return the least bytes within a point of its best score, in words."""
    first = [curve[metric] for metric in curve if metric == "spearman" or "_first_" in metric]
    kind = look(place)
    axes.plot(
        *zip(*sorted(first), strict=True),
        label=name,
        markersize=3.5,
        **kind,
    )
    coarse = ("spearman_hamming", "spearman_st_int8", "spearman")
    bits = [curve[metric] for metric in coarse if metric in curve]
    hollow = {
        **kind,
        "linestyle": ":",
        "linewidth": 0.9,
        "markerfacecolor": "white",
        "markersize": 3.5,
    }
    axes.plot(*zip(*bits, strict=True), **hollow)
    size, best = max(first)
    enough = [point for point in first if point[1] >= best - 1]
    least, _ = min(enough, default=(size, best))
    return f"{least:,.0f} of {size:,.0f} bytes"
