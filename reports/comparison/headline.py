"""The main conclusion of a comparison: at most two sentences for a base model, which a referee can quote."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.bootstrap import Estimate
from reports.stats.significance import NOT_JUDGED, Leaders, PairedBootstrap, untrained_base
from reports.stats.targets import Target
from reports.stats.training_gain import remark
from reports.stats.verdicts import Block


def headline(comparison: Comparison, bootstrap: PairedBootstrap) -> str:
    """The main conclusion, from the first target that has pairs."""
    sentences = []
    several = len(comparison.base_models) > 1
    for target in bootstrap.targets[:1]:
        for base in comparison.base_models:
            rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
            sentences += _conclusion(rows, f"On {base_name(base)}, " if several else "", bootstrap, target)
    ended = [row for row in comparison.rows if not row.finished]
    lost = f"without a result: {_list([f'{row.label} ({_ending(row)})' for row in ended])}" if ended else ""
    if not sentences:
        none = "No row of this comparison has finished yet"
        if len(ended) < len(comparison.rows):
            none = "No row of this comparison has stored the examples that a verdict needs"
        sentences = [none]
    if lost:
        sentences[-1] += f"; {lost}"
    return " ".join(f"{sentence}." for sentence in sentences)


def _ending(row: ResultRow) -> str:
    return "not run" if row.lacking else row.status


def _conclusion(rows: list[ResultRow], where: str, bootstrap: PairedBootstrap, target: Target) -> list[str]:
    scored = [(float(runs[1].mean()), row) for row in rows if (runs := bootstrap.by_seed(row, target)) is not None]
    if len(scored) < 2:
        return []
    leaders = bootstrap.leaders(rows, target)
    if leaders is None:
        value, row = max(scored, key=lambda item: item[0])
        text = f"{where}{row.label} has the highest score on {target.title}, {100 * value:.2f}"
        return [f"{text}; with one seed a row, nobody can tell which is better"]
    sentences = [where + _best(leaders, bootstrap, rows, target)]
    pairs = [(row, base) for row in rows if (base := untrained_base(row, rows)[0]) is not None]
    found = [(row, d) for (row, _), d in zip(pairs, bootstrap.differences(pairs, target), strict=True) if d]
    parts = []
    for verdict, phrase in (
        ("better", "above it"),
        ("worse", "below it"),
        ("not separable", "not separable from it"),
        (NOT_JUDGED, "not judged (one seed)"),
    ):
        alike = [(row, d.estimate) for row, d in found if d.verdict == verdict]
        if alike:
            names = [f"{row.label} ({number_text(100 * e.value, 2, signed=True)})" for row, e in alike]
            parts.append(f"{phrase}: {_list(names)}")
    if lacking := [row.label for row in rows if untrained_base(row, rows)[1]]:
        parts.append(f"without a stored one: {_list(lacking)}")
    if never := [row.label for row in rows if remark(row)]:
        parts.append(f"training never beat the start on the dev set: {_list(never)}")
    if parts:
        sentences.append(f"Trained rows against their untrained base, {'; '.join(parts)}")
    return sentences


def _best(leaders: Leaders, bootstrap: PairedBootstrap, rows: list[ResultRow], target: Target) -> str:
    """Which row is ahead of which, by how much, and what it would take to see more."""
    best, tied = leaders.best, {row.key for row in leaders.tied}
    runs = bootstrap.by_seed(best, target)
    assert runs is not None
    count = f"{len(runs[0])} seed{'' if len(runs[0]) == 1 else 's'}"
    said = f"{100 * runs[1].mean():.2f} over {count}"
    behind = [(row, d) for row, d in leaders.others if row.key not in tied]
    if not tied and len(leaders.others) == 1:
        row, d = leaders.others[0]
        text = f"{best.label} ({said}) beats {row.label} by {_points(d.estimate)} on {target.title}"
    elif not tied:
        row, d = behind[0]
        text = f"{best.label} ({said}) beats every other row on {target.title}, {row.label} by {_points(d.estimate)}"
    else:
        text = f"{best.label} scores highest on {target.title}, {said}, not separable from "
        text += _list([row.label for row in leaders.tied])
        block = Block(rows, bootstrap, target)
        needed = block.needed(best, leaders.tied[0])
        if needed:
            text += f" (for a difference like that to {leaders.tied[0].label}, about {needed} seeds are needed)"
        if behind:
            row, d = behind[0]
            text += f"; it beats {row.label} by {_points(d.estimate)}"
            more = len(behind) - 1
            text += f", and {more} more row{'s' if more > 1 else ''}" if more else ""
    if leaders.unjudged:
        text += f"; {NOT_JUDGED}: {_list([row.label for row in leaders.unjudged])}"
    return text


def _points(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} ± {50 * (estimate.high - estimate.low):.1f} points"


def _list(names: Sequence[str]) -> str:
    if len(names) > 7:  # a sentence of thirty names is not read; the tables have them all
        names = [*names[:5], f"{len(names) - 5} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
