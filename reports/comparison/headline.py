"""The main conclusion of a comparison in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, ResultRow, base_name
from reports.stats.significance import PairedBootstrap, untrained_base
from reports.stats.targets import Target


def headline(comparison: Comparison, bootstrap: PairedBootstrap) -> str:
    """The main conclusion in a few sentences, from the first target that has pairs."""
    sentences = []
    for target in bootstrap.targets[:1]:
        for base in comparison.base_models:
            rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
            sentences += _conclusion(rows, base if len(comparison.base_models) > 1 else "", bootstrap, target)
    if sentences and any(len(row.finished) == 1 and row.supervision == "unsupervised" for row in comparison.rows):
        sentences.append("Rows with one seed: how much another seed would change is not known.")
    ended = [row for row in comparison.rows if not row.finished]
    if ended:
        names = _list([f"{row.label} ({row.status})" for row in ended])
        sentences.append(f"Without a result: {names}.")
    return " ".join(sentences) or "No row of this comparison has finished with stored pairs yet."


def _conclusion(rows: list[ResultRow], base: str, bootstrap: PairedBootstrap, target: Target) -> list[str]:
    leaders = bootstrap.leaders(rows, target)
    where = f"On {base_name(base)}, " if base else ""
    if leaders is None:
        return []
    best, tied = leaders
    runs = bootstrap.by_seed(best, target)
    assert runs is not None
    seeds = f"{len(runs[0])} seed{'s' if len(runs[0]) != 1 else ''}"
    text = f"{where}{best.label} scores highest on {target.title}: {100 * runs[1].mean():.2f} over {seeds}"
    text += f", not separable from {_list([row.label for row in tied])}." if tied else ", ahead of every other row."
    sentences = [text]
    pairs = [(row, b[0]) for row in rows if (b := untrained_base(row, rows, bootstrap, target)) is not None]
    differences = [(row, d) for (row, _), d in zip(pairs, bootstrap.differences(pairs, target), strict=True) if d]
    if differences:
        parts = []
        for verdict, phrase in (("better", "above"), ("worse", "below"), ("not separable", "not separable from")):
            names = [
                f"{row.label} ({number_text(100 * d.estimate.value, 2, signed=True)})"
                for row, d in differences
                if d.verdict == verdict
            ]
            if names:
                parts.append(f"{phrase} it: {_list(names)}")
        sentences.append(f"Trained rows against their untrained base, {'; '.join(parts)}.")
    return sentences


def _list(names: Sequence[str]) -> str:
    if len(names) > 7:  # a sentence of thirty names is not read; the tables have them all
        names = [*names[:5], f"{len(names) - 5} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
