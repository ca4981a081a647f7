"""The main conclusion of a comparison: at most two sentences, which a referee can quote; one more, and the first, where
rows that were made elsewhere are compared with its own."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, InterimAnalyses, ResultRow, base_name, seeded
from reports.stats.estimate import Estimate
from reports.stats.significance import NOT_JUDGED, Difference, Leaders, Significance, untrained_base
from reports.stats.targets import Target

_MOST_BASES = 3  # base models that a sentence has room for
_MOST_OWN = 3  # rows that are each compared with those made elsewhere


def headline(comparison: Comparison, significance: Significance) -> str:
    """The main conclusion, from the first target that has pairs: how the comparison's own rows compare with those made
    elsewhere, which row is ahead, and what training gained."""
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    several = len(comparison.base_models) > 1
    for target in significance.targets[:1]:
        for base in comparison.base_models:
            rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
            said = _conclusion(rows, significance, target)
            for place, text in zip(parts, said, strict=True):
                if text:
                    place.append(f"on {base_name(base)}, {text}" if several else text)
    sentences = [_sentence(texts) for texts in parts if texts]
    if sentences and comparison.analyses is not None:
        sentences[0] += f"; {_analysed(comparison.analyses)}"
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


def _sentence(texts: Sequence[str]) -> str:
    """One sentence that joins those of the base models."""
    more = len(texts) - _MOST_BASES
    said = [*texts[:_MOST_BASES], *([f"{more} more base model{'s' if more > 1 else ''} below"] if more > 0 else [])]
    text = "; ".join(said)
    return text[0].upper() + text[1:] if text.startswith(("on ", "training ", "against ")) else text


def _analysed(analyses: InterimAnalyses) -> str:
    """How seeds were added, which every verdict takes into account."""
    count = f"{len(analyses.seeds)} interim analys{'is' if len(analyses.seeds) == 1 else 'es'}"
    if not analyses.ended:
        return f"seeds are being added, {count} so far"
    return f"seeds were added where a decision was open, {count}"


def _ending(row: ResultRow) -> str:
    return "not run" if row.unavailable else row.status


def _conclusion(rows: list[ResultRow], significance: Significance, target: Target) -> tuple[str, str, str]:
    """Of one base model: how own rows compare with those made elsewhere, which row is ahead, and what training gained.

    Each is empty where there is nothing to report.
    """
    scored = [(float(runs[1].mean()), row) for row in rows if (runs := significance.by_seed(row, target)) is not None]
    if len(scored) < 2:
        return "", "", ""
    leaders = significance.leaders(rows, target)
    if leaders is None:
        value, row = max(scored, key=lambda item: item[0])
        text = f"{row.label} has the highest score on {target.title}, {100 * value:.2f}"
        return "", f"{text}; with one seed a row, it cannot be decided which is better", ""
    elsewhere = _elsewhere(rows, significance, target)
    return elsewhere, _best(leaders, significance, rows, target), _gains(rows, significance, target)


def _elsewhere(rows: list[ResultRow], significance: Significance, target: Target) -> str:
    """How the comparison's own rows compare with those that were made elsewhere, corrected for as many differences."""
    own = [row for row in rows if not (row.elsewhere or row.added)]
    others = [row for row in rows if row.elsewhere]
    pairs = [(row, other) for row in own for other in others]
    texts = []
    found = significance.differences(pairs, target)
    for row in own[:_MOST_OWN]:
        mine = [(other, d) for (one, other), d in zip(pairs, found, strict=True) if one.key == row.key and d]
        stands = [
            f"{phrase} {_list([_against(other, d) for other, d in _largest_first(mine) if d.verdict == verdict])}"
            for verdict, phrase in (
                ("better", "above"),
                ("worse", "below"),
                ("not separable", "not significantly different from"),
                (NOT_JUDGED, "not judged (one seed) against"),
            )
            if any(d.verdict == verdict for _, d in mine)
        ]
        if stands:
            texts.append(f"{_measured(row, significance, target)} is {'; '.join(stands)}")
    if not texts:
        return ""
    more = f"; {len(own) - _MOST_OWN} more rows below" if len(own) > _MOST_OWN else ""
    count = f"{len(others)} row{'' if len(others) == 1 else 's'}"
    return f"against {count} made elsewhere, on {target.title}: {'; '.join(texts)}{more}"


def _largest_first(found: list[tuple[ResultRow, Difference]]) -> list[tuple[ResultRow, Difference]]:
    return sorted(found, key=lambda one: -abs(one[1].estimate.value))


def _against(row: ResultRow, d: Difference) -> str:
    return f"{row.label} ({number_text(100 * d.estimate.value, 2, signed=True)})"


def _gains(rows: list[ResultRow], significance: Significance, target: Target) -> str:
    """What training gained, of rows that were not made elsewhere."""
    own = [row for row in rows if not row.elsewhere]
    pairs = [(row, base) for row in own if (base := untrained_base(row, rows)[0]) is not None]
    found = [(row, d) for (row, _), d in zip(pairs, significance.differences(pairs, target), strict=True) if d]
    parts = []
    for verdict, phrase in (
        ("better", "improved"),
        ("worse", "worsened"),
        ("not separable", "made no significant difference to"),
        (NOT_JUDGED, "is not judged (one seed) for"),
    ):
        names = [_against(row, d) for row, d in found if d.verdict == verdict]
        if names:
            parts.append(f"{phrase} {_list(names)}")
    if lacking := [row.label for row in own if untrained_base(row, rows)[1]]:
        parts.append(f"cannot be judged for {_list(lacking)}, whose untrained start is not stored")
    return f"training {'; '.join(parts)}" if parts else ""


def _measured(row: ResultRow, significance: Significance, target: Target) -> str:
    """A row with its mean and its number of seeds."""
    runs = significance.by_seed(row, target)
    assert runs is not None
    count = f", {len(runs[0])} seed{'' if len(runs[0]) == 1 else 's'}" if seeded(row) else ""
    return f"{row.label} ({100 * runs[1].mean():.2f}{count})"


def _best(leaders: Leaders, significance: Significance, rows: list[ResultRow], target: Target) -> str:
    """Which row is ahead, and of how many others it is significantly better."""
    named = _measured(leaders.best, significance, target)
    behind, tied = len(leaders.others) - len(leaders.tied), len(leaders.tied)
    if len(leaders.others) == behind == 1:
        row, d = leaders.others[0]
        text = f"{named} beats {row.label} by {_points(d.estimate)} on {target.title}"
    elif not tied:
        text = f"{named} scores highest on {target.title}, significantly better than the {behind} other rows"
    elif behind:
        others = _list([row.label for row in leaders.tied])
        text = f"{named} scores highest on {target.title}, significantly better than {behind} of {behind + tied} other "
        text += f"rows, but not than {others}"
    else:
        others = "any other row" if tied > 2 else _list([row.label for row in leaders.tied])
        text = f"{named} scores highest on {target.title}, but not significantly better than {others}"
    if leaders.unjudged:
        text += f"; {NOT_JUDGED}: {_list([row.label for row in leaders.unjudged])}"
    return text


def _points(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} ± {50 * (estimate.high - estimate.low):.1f} points (95 %)"


def _list(names: Sequence[str]) -> str:
    if len(names) > 7:  # a sentence of thirty names is not read; the tables have them all
        names = [*names[:5], f"{len(names) - 5} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
