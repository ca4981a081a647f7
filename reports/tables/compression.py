"""Scores of vectors that are cut or quantised: a table for each pair set, and the score by bytes
for all of them.
"""

from __future__ import annotations

from statistics import mean

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
    made, pairs = ScoreTable(comparison, None), task.removeprefix("compression:")
    names = {"spearman": ("", "all", "")}
    for group, title in _GROUPS.items():
        names |= {f"spearman_{group}_{k}": (title, str(k), f"{4 * k:,} B") for k in _SHOWN}
    names |= {metric: ("Quantised", title, "") for metric, title in _QUANTISED.items()}
    for metric, (group, title, sub) in names.items():
        measure = Measure(task, source, metric, "")
        if metric == "spearman" or any(row.scores(task, source, metric) for row in comparison.rows):
            noun = "pairs" if metric == "spearman" else ""
            made.add_task(
                Column(metric, title, sub, group=group), measure, noun=noun, decides=False
            )
    caption = f"{pairs} ({SOURCES.get(source, source)}) by vectors of fewer dimensions or bits, compared by cosine."
    legend = (
        "Spearman ×100, mean ± standard deviation over seeds. Principal dimensions are fitted to the sentences of the "
        "set; random ones are the mean of ten draws: chance. int8 as in sentence-transformers (ST) and in mteb."
    )
    return made.table(
        f"compression-{source}-{pairs}", f"Compressed vectors · {pairs}", caption, legend
    )


def compression_figure(comparison: RecordedResults, target: Target | None = None) -> Figure | None:
    """Score by bytes of a sentence, a panel for each pair set: first dimensions as a line, int8 and
    bits as marks.
    """
    panels: dict[str, dict[tuple[str, str], Curve]] = {}
    for task, _ in comparison.columns("compression"):
        curves: dict[tuple[str, str], Curve] = {}
        for key, runs in comparison.figure_data.items():
            kept = [
                part["compression"]
                for _, parts in runs
                if "compression" in (part := parts.get(task, {}))
            ]
            try:
                if kept:
                    curves[key] = {
                        m: (kept[0][m][0], 100 * mean(one[m][1] for one in kept)) for m in kept[0]
                    }
            except (TypeError, KeyError, IndexError):
                comparison.warnings.append(f"curves of {key[1]} ({task}) are damaged: left out")
        panels |= {task: curves} if curves else {}
    found = [row for row in comparison.rows if any(row.key in curves for curves in panels.values())]
    rows, others = rows_shown(found, target)
    if not rows:
        return None
    with style():
        plot = new(7.2, 3.4 + 0.17 * -(-len(rows) // 4))
        said = []
        for axes, (task, curves) in zip(
            new_panels(plot, len(panels), 2), panels.items(), strict=True
        ):
            for i, row in enumerate(rows):
                if (curve := curves.get(row.key)) is None:
                    continue
                first = [curve[m] for m in curve if m == "spearman" or "_first_" in m]
                kind = look(i)
                axes.plot(
                    *zip(*sorted(first), strict=True),
                    label=row_name(row, comparison),
                    markersize=3.5,
                    **kind,
                )
                bits = [
                    curve[m]
                    for m in ("spearman_hamming", "spearman_st_int8", "spearman")
                    if m in curve
                ]
                hollow = {
                    **kind,
                    "linestyle": ":",
                    "linewidth": 0.9,
                    "markerfacecolor": "white",
                    "markersize": 3.5,
                }
                axes.plot(*zip(*bits, strict=True), **hollow)
                size, best = max(first)
                least = min((k for k in first if k[1] >= best - 1), default=(size, best))
                said.append(
                    f"{task.removeprefix('compression:')}, {row.label}: {least[0]:,.0f} of {size:,.0f} bytes"
                )
            axes.set_xscale("log", base=2)
            plain(axes.xaxis)
            axes.set_xlabel("bytes a sentence")
            axes.set_ylabel("Spearman ×100")
            axes.set_title(task.removeprefix("compression:"), fontsize=8)
        handles = {
            n: h
            for axes in plot.axes
            for h, n in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        legend_below(plot, handles.values(), handles)
        return finish(
            plot,
            "compression",
            "Score by size of the vectors",
            "Mean over seeds. Filled: the first dimensions, in 32 bits; all of them on the right. Hollow: all "
            f"dimensions in 1 bit (Hamming distance), 8 bits (int8 of sentence-transformers) and 32 bits.{others}",
            f"Rising lines. Least bytes within a point of all dimensions: {'; '.join(said)}.",
        )
