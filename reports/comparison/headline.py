"""The main conclusion of a comparison, in a few sentences that a referee can quote."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, InterimAnalyses, ResultRow, seeded
from reports.stats.significance import NOT_JUDGED, SAME, Difference, Significance, untrained_base
from reports.stats.targets import Target
from reports.stats.verdicts import Block, Pair, judge_family, own_against_others, planned, starts

_MOST_BLOCKS = 3  # blocks of rows that a sentence has room for
_MOST_OWN = 3  # rows that are each compared with those made elsewhere


def headline(comparison: Comparison, significance: Significance) -> list[str]:
    """Sentences, by the first target: what was planned, which rows may be the best, and what training gained."""
    target = significance.first
    sentences = []
    if target is not None and (best := _best_rows(comparison, significance, target)):
        sentences = [
            _elsewhere(comparison, significance, target),
            _planned(comparison, significance, target),
            best,
            _gains(comparison, significance, target),
        ]
        sentences = [
            text[0].upper() + text[1:] if text.startswith(("on ", "training ")) else text for text in sentences if text
        ]
        if comparison.analyses is not None:
            sentences[0] += f"; {_analysed(comparison.analyses)}"
    ended = [row for row in comparison.rows if not row.finished]
    if not sentences:
        nothing = (
            "has finished yet" if len(ended) == len(comparison.rows) else "has stored the examples that a verdict needs"
        )
        sentences = [f"No row of this comparison {nothing}"]
    if ended:
        lost = [f"{row.label} ({'not run' if row.unavailable else row.status})" for row in ended]
        sentences[-1] += f"; without a result: {_list(lost)}"
    return [f"{sentence}." for sentence in sentences]


def _best_rows(comparison: Comparison, significance: Significance, target: Target) -> str:
    """Which rows may be the best, of each block."""
    texts = []
    for name, rows in comparison.blocks.items():
        block = Block(rows, significance, target)
        if len(block.rows) > 1:
            text = _best(block)
            texts.append(f"on {name}, {text}" if len(comparison.blocks) > 1 else text)
    more = len(texts) - _MOST_BLOCKS
    return "; ".join(
        [*texts[:_MOST_BLOCKS], *([f"{more} more block{'s' if more > 1 else ''} below"] if more > 0 else [])]
    )


def _best(block: Block) -> str:
    title = block.target.title
    if len(block.contenders) < 2:
        row = max(block.rows, key=block.mean)
        text = f"{row.label} has the highest score on {title}, {block.mean(row):.2f}"
        return f"{text}; with fewer than three seeds a row, it cannot be decided which is better"
    first, *others = block.candidates or block.contenders[:1]
    named, count = _measured(block.significance, block.target, first), len(block.contenders) - 1
    if not others and count == 1:
        e = block.differences[0, 1].estimate
        margin = f"{100 * e.value:.1f} points [{number_text(100 * e.low, 1)}, {number_text(100 * e.high, 1)}]"
        text = f"{named} beats {block.contenders[1].label} by {margin} on {title}"
    elif not others:
        text = f"{named} is the best of {count + 1} rows on {title} (95 % confidence)"
    elif len(others) < count:
        text = f"{named} scores highest on {title}; of {count + 1} rows the best may also be "
        text += f"{_list([row.label for row in others], 'or')} (95 % confidence)"
    else:
        who = "any other row" if count > 2 else _list([row.label for row in others], "or")
        text = f"{named} scores highest on {title}, but not significantly better than {who}"
    if block.unjudged:
        text += f"; {NOT_JUDGED}: {_list([row.label for row in block.unjudged])}"
    return text


def _analysed(analyses: InterimAnalyses) -> str:
    """How seeds were added, which every verdict takes into account."""
    count = f"{len(analyses.seeds)} interim analys{'is' if len(analyses.seeds) == 1 else 'es'}"
    if not analyses.ended:
        return f"seeds are being added, {count} so far"
    return f"seeds were added where a decision was open, {count}"


def _elsewhere(comparison: Comparison, significance: Significance, target: Target) -> str:
    """How own rows compare with those that were made elsewhere."""
    family = own_against_others(comparison)
    found = judge_family(family, significance, target)
    own: dict[tuple[str, str], list[tuple[Pair, Difference]]] = {}
    for pair, d in found:
        own.setdefault(pair[0].key, []).append((pair, d))
    texts = []
    for mine in list(own.values())[:_MOST_OWN]:
        row = _measured(significance, target, mine[0][0][0])
        phrases = {
            "better": "above",
            "worse": "below",
            SAME: "not significantly different from",
            NOT_JUDGED: "not judged against",
        }
        texts.append(f"{row} is {_by_verdict([(other, d) for (_, other), d in mine], phrases)}")
    if not texts:
        return ""
    more = f"; {len(own) - _MOST_OWN} more rows below" if len(own) > _MOST_OWN else ""
    others = sum(bool(row.elsewhere) for row in comparison.rows)
    return (
        f"Against {others} row{'s' if others > 1 else ''} made elsewhere, on {target.title}: {'; '.join(texts)}{more}"
    )


def _planned(comparison: Comparison, significance: Significance, target: Target) -> str:
    """What the planned comparisons of the file say."""
    found = judge_family(planned(comparison), significance, target)
    against: dict[str, list[tuple[ResultRow, Difference]]] = {}
    for (row, other), d in found:
        against.setdefault(other.label, []).append((row, d))
    phrases = {"better": "better:", "worse": "worse:", SAME: "not significantly different:", NOT_JUDGED: "not judged:"}
    verbs = {"better": "is better than", "worse": "is worse than", SAME: "is not significantly different from"}
    texts = []
    for label, rows in against.items():
        row, d = rows[0]
        if len(rows) == 1 and d.verdict in verbs:
            points = number_text(100 * d.estimate.value, 2, signed=True)
            texts.append(f"{row.label} {verbs[d.verdict]} {label} ({points} points)")
        else:
            texts.append(f"against {label}, {_by_verdict(rows, phrases)}")
    return f"As planned, on {target.title}: {'; '.join(texts)}" if texts else ""


def _gains(comparison: Comparison, significance: Significance, target: Target) -> str:
    """What training gained, of rows that were not made elsewhere."""
    found = [(row, d) for (row, _), d in judge_family(starts(comparison), significance, target) if not row.elsewhere]
    phrases = {"better": "improved", "worse": "worsened", SAME: "made no significant difference to"}
    phrases[NOT_JUDGED] = "is not judged for"
    parts = [_by_verdict(found, phrases)] if found else []
    own = [row for row in comparison.rows if not row.elsewhere]
    if lacking := [row.label for row in own if untrained_base(row, comparison.rows)[1]]:
        parts.append(f"cannot be judged for {_list(lacking)}, whose untrained start is not stored")
    return f"training {'; '.join(parts)}" if parts else ""


def _by_verdict(found: Sequence[tuple[ResultRow, Difference]], phrases: dict[str, str]) -> str:
    """Rows with their differences, the largest first, under what is said of each verdict."""
    ordered = sorted(found, key=lambda one: -abs(one[1].estimate.value))
    by_verdict = {
        phrase: [
            f"{row.label} ({number_text(100 * d.estimate.value, 2, signed=True)})"
            for row, d in ordered
            if d.verdict == verdict
        ]
        for verdict, phrase in phrases.items()
    }
    return "; ".join(f"{phrase} {_list(names)}" for phrase, names in by_verdict.items() if names)


def _measured(significance: Significance, target: Target, row: ResultRow) -> str:
    """A row with its mean and its number of seeds."""
    runs = significance.by_seed(row, target)
    assert runs is not None
    count = f", {len(runs.ids)} seed{'' if len(runs.ids) == 1 else 's'}" if seeded(row) else ""
    return f"{row.label} ({100 * runs.scores.mean():.2f}{count})"


def _list(names: Sequence[str], word: str = "and") -> str:
    if len(names) > 7:  # a sentence of thirty names is not read; the tables have them all
        names = [*names[:5], f"{len(names) - 5} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
