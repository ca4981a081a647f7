"""DeCLUTR's ablations: sampling (its Figure 2), objectives and text (Figure 3), head and memory bank (Figure S1).

Each is None when nothing was measured that it could show. Only runs of one base model, text and length stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.results.record import Record
from reports.document.blocks import Figure
from reports.figures.style import COLOURS, INK, finish, look, new, style
from reports.papers.definition import PaperColumn
from reports.papers.matching import Matching
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.run_library import default_of
from reports.stats.bootstrap import mean_sd

# What ablations are drawn by: that which most rows of the figure have, the first of equals.
SCORES = (
    PaperColumn(title="SentEval Avg., dev", average="half", split="dev"),
    PaperColumn(title="STS average (7 tasks, mean over subsets)", average="sts-mean"),
    PaperColumn(title="STS-B test", task="STS-B", aggregation="all"),
    PaperColumn(title="Embedded-STS-natural", task="Embedded-STS-natural", aggregation="all", source="embedded"),
)

_LEVELS = tuple[Any, list[tuple[ResultRow, float]]]  # level of a factor -> rows with their mean score


def _ablation(
    matching: Matching,
    keep: Callable[[Record], bool],
    *,
    amounts: bool = False,
    needs: Callable[[ResultRow], bool] = lambda _: True,
) -> tuple[str, list[tuple[ResultRow, float]]] | None:
    """The DeCLUTR rows that `keep` takes, of one base model, text and number of updates, with one score each: those
    with most rows that the figure `needs`.

    `amounts`: different amounts of that text belong together, each with the number of updates that most of it had.
    """
    budgets: dict[tuple[str, str], dict[tuple[int, int], list[ResultRow]]] = {}
    for row in matching.library.find("declutr"):
        if row.finished and keep(row.records[0]):
            place = row.base_model, str((row.finished[0].corpus or {}).get("uri"))
            budgets.setdefault(place, {}).setdefault((_documents(row), _updates(row)), []).append(row)

    def merit(budget: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
        return sum(map(needs, own[budget])), len(own[budget]), budget

    best: list[ResultRow] = []
    for _, own in sorted(budgets.items()):
        if amounts:
            chosen = [max((b for b in own if b[0] == amount), key=merit) for amount in sorted({a for a, _ in own})]
        else:
            chosen = [max(own, key=merit)]
        rows = [row for budget in chosen for row in own[budget]]
        best = max(best, rows, key=lambda found: (sum(map(needs, found)), len(found)))
    measured = {
        column.title: [(row, mean_sd(m.values)[0]) for row in best if (m := matching.measure(row, column)).by_seed]
        for column in SCORES
    }
    title = max(measured, key=lambda name: len(measured[name]))
    return (title, measured[title]) if measured[title] else None


def _config(row: ResultRow, key: str) -> Any:
    return _option(row.records[0], key)


def _option(record: Record, key: str) -> Any:
    return record.config[key] if key in record.config else default_of("declutr", key)


def _by_level(rows: Sequence[tuple[ResultRow, float]], level: Callable[[ResultRow], Any]) -> list[_LEVELS]:
    found: dict[Any, list[tuple[ResultRow, float]]] = {}
    for row, score in rows:
        found.setdefault(level(row), []).append((row, score))
    return sorted(found.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _strip(axes: Any, levels: Sequence[_LEVELS], title: str, name: str) -> None:
    """Every configuration as a dot, the mean of each level as a bar."""
    for i, (_, members) in enumerate(levels):
        values = [score for _, score in members]
        for k, value in enumerate(values):
            shift = 0.0 if len(values) == 1 else 0.24 * (k / (len(values) - 1) - 0.5)
            axes.plot([i + shift], [value], color=COLOURS[0], marker="o", markersize=4.5, linestyle="", alpha=0.75)
        mean = mean_sd(values)[0]
        axes.plot([i - 0.28, i + 0.28], [mean, mean], color=INK, linewidth=1.6, solid_capstyle="butt")
    axes.set_xticks(range(len(levels)), [str(level) for level, _ in levels], fontsize=7.5)
    axes.set_xlim(-0.6, len(levels) - 0.4)
    axes.set_title(title)
    axes.set_xlabel(name)
    axes.grid(axis="x", visible=False)


def sampling(matching: Matching) -> Figure | None:
    """DeCLUTR's Figure 2: the score by anchors, positives, temperature and where positives lie."""
    found = _ablation(matching, lambda r: _plain(r) and r.config.get("objective") == "both")
    factors = (
        ("anchors", "Anchors", "anchors per document"),
        ("positives", "Positives", "positives per anchor"),
        ("temperature", "Temperature", "temperature"),
        ("strategy", "Sampling", "where positives lie"),
    )
    return _factors(
        found, factors, "declutr-sampling", "Anchors, positives, temperature and sampling (DeCLUTR, Figure 2)"
    )


def _plain(r: Record) -> bool:
    return not r.config.get("memory") and r.config.get("projection") is None


def _factors(
    found: tuple[str, list[tuple[ResultRow, float]]] | None,
    factors: Sequence[tuple[str, str, str]],
    key: str,
    title: str,
) -> Figure | None:
    if found is None:
        return None
    measure, rows = found
    panels = [(levels, head, name) for field, head, name in factors
              if len(levels := _by_level(rows, lambda r, f=field: _config(r, f))) > 1]  # type: ignore[misc]  # fmt: skip
    if not panels:
        return None
    with style():
        plot = new(7.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (levels, head, name) in zip(grid, panels, strict=True):
            _strip(axes, levels, head, name)
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        base = base_name(rows[0][0].base_model)
        return finish(
            plot, key, title,
            f"{measure}, from {base}. A dot: one configuration, mean over its seeds; a bar: the mean of a level over "
            "whatever else differs between its runs.",
            f"Dots by level of each factor. {_means(panels)}.",
        )  # fmt: skip


def _line(level: Any) -> str:
    return str(level).replace("\n", " ")


def _means(panels: Sequence[tuple[Sequence[_LEVELS], str, str]]) -> str:
    return "; ".join(
        f"{head}: " + ", ".join(f"{_line(level)}: {mean_sd([s for _, s in m])[0]:.2f}" for level, m in levels)
        for levels, head, _ in panels
    )


_OBJECTIVES = {"contrastive": "contrastive", "mlm": "masked LM", "both": "both"}


def objective(matching: Matching) -> Figure | None:
    """DeCLUTR's Figure 3: what the objectives contribute, and the score by the amount of text."""
    found = _ablation(matching, lambda r: _plain(r) and _has(r, _defaults(matching)), amounts=True)
    if found is None:
        return None
    measure, rows = found
    amounts = sorted({_documents(row) for row, _ in rows})
    objectives = [o for o in _OBJECTIVES if any(_config(row, "objective") == o for row, _ in rows)]
    if len(objectives) < 2 and len(amounts) < 2:
        return None
    with style():
        plot = new(7.2 if len(amounts) > 1 else 4.6, 2.9)
        grid = plot.subplots(1, 2 if len(amounts) > 1 else 1, sharey=True, squeeze=False)[0]
        most = amounts[-1]
        values = {
            o: [s for row, s in rows if _config(row, "objective") == o and _documents(row) == most] for o in objectives
        }
        for i, members in enumerate(values.values()):
            if members:
                grid[0].bar([i], [mean_sd(members)[0]], width=0.62, color=COLOURS[i], edgecolor=INK, linewidth=0.6)
                grid[0].plot([i] * len(members), members, "o", color=INK, markersize=3.5)
        lowest = min(s for _, s in rows)
        grid[0].set_ylim(bottom=max(0, lowest - 0.25 * lowest))
        grid[0].set_xticks(range(len(objectives)), [_OBJECTIVES[o] for o in objectives])
        grid[0].set_title(f"Objective, {most:,} documents")
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        grid[0].grid(axis="x", visible=False)
        if len(amounts) > 1:
            for i, kind in enumerate(objectives):
                own = [(row, s) for row, s in rows if _config(row, "objective") == kind]
                line = [(amount, mean_sd([s for _, s in same])[0]) for amount, same in _by_level(own, _documents)]
                grid[1].plot([x for x, _ in line], [y for _, y in line], label=_OBJECTIVES[kind], **look(i))
            grid[1].set_title("Amount of text")
            grid[1].set_xlabel("documents")
            updates = {_documents(row): _updates(row) for row, _ in rows}
            grid[1].set_xticks(
                amounts, [f"{amount:,}\n({updates[amount]:,} updates)" for amount in amounts], fontsize=7.5
            )
            plot.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{_OBJECTIVES[o]} {mean_sd(v)[0]:.2f}" for o, v in values.items() if v)
        return finish(
            plot, "declutr-objective", "Objectives and amount of text (DeCLUTR, Figure 3)",
            f"{measure}, from {base_name(rows[0][0].base_model)}. Bars: mean of the runs (dots). The axis does not "
            "begin at 0.",
            f"Bars by objective: {said}.",
        )  # fmt: skip


def _documents(row: ResultRow) -> int:
    return int((row.finished[0].corpus or {}).get("count") or 0)


def _updates(row: ResultRow) -> int:
    return int(row.finished[0].training.get("planned_steps") or 0)


def _has(record: Record, settings: dict[str, Any]) -> bool:
    return all(_option(record, key) == value for key, value in settings.items())


def _defaults(matching: Matching) -> dict[str, Any]:
    """The sampling that most DeCLUTR rows share, so that its factors do not mix with the objective."""
    rows = [row for row in matching.library.find("declutr") if row.finished]
    shared: dict[str, Any] = {}
    for key in ("anchors", "positives", "temperature", "strategy", "anchor_grid"):
        values = [_config(row, key) for row in rows]
        if values:
            shared[key] = max(sorted(set(values), key=str), key=values.count)
    return shared


def _head(row: ResultRow) -> tuple[int, str]:
    width = _config(row, "projection") or 0
    return width, str(_config(row, "projection_activation") or "relu") if width else ""


def _head_name(width: int, activation: str) -> str:
    return f"{width}\n{'ReLU' if activation == 'relu' else activation}" if width else "none"


def extensions(matching: Matching) -> Figure | None:
    """DeCLUTR's Figure S1: projection heads and memory banks, which did not help."""
    usual = _defaults(matching)
    found = _ablation(
        matching,
        lambda r: r.config.get("objective") == "both" and _has(r, usual),
        needs=lambda row: not _plain(row.records[0]),
    )
    if found is None:
        return None
    measure, rows = found
    plain = [(row, s) for row, s in rows if _plain(row.records[0])]
    heads = [(row, s) for row, s in rows if _config(row, "projection") and not _config(row, "memory")]
    banks = [(row, s) for row, s in rows if _config(row, "memory") and not _config(row, "projection")]
    panels = []
    if heads:
        levels = _by_level([*heads, *plain], _head)
        panels.append(
            ([(_head_name(*k), v) for k, v in levels], "Projection head", "width, function between its layers")
        )
    if banks:
        levels = _by_level([*banks, *plain], lambda r: _config(r, "memory") or 0)
        panels.append(([("none" if k == 0 else k, v) for k, v in levels], "Memory bank", "embeddings kept"))
    if not panels:
        return None
    with style():
        plot = new(7.2 if len(panels) > 1 else 4.2, 2.9)
        grid = plot.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (shown, head, name) in zip(grid, panels, strict=True):
            _strip(axes, shown, head, name)
        grid[0].set_ylabel(measure.replace(" (", "\n("), fontsize=8)
        return finish(
            plot, "declutr-extensions", "Projection head and memory bank (DeCLUTR, Figure S1)",
            f"{measure}, from {base_name(rows[0][0].base_model)}. A dot: one configuration, mean over its seeds; "
            "a bar: the mean of a level. All made the same number of updates.",
            f"Dots by width of the projection head and size of the memory bank. {_means(panels)}.",
        )  # fmt: skip
