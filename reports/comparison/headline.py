"""The main conclusion of a comparison, in a few sentences that a referee can quote."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.read.comparison_runs import Comparison, ResultRow, seeded
from reports.stats.significance import NOT_JUDGED, SAME, Difference, Significance, untrained_base
from reports.stats.suite_targets import name_target, primary_target
from reports.stats.targets import Target
from reports.stats.verdicts import (
    Block,
    judge_family,
    own_against_others,
    plan_status,
    planned,
    starts,
)

_MOST = 3  # blocks of rows, or rows that are compared with those made elsewhere, that a sentence has room for
Found = list[tuple[ResultRow, Difference]]


def headline(comparison: Comparison, significance: Significance) -> list[str]:
    """Sentences, by the first target: what was planned, which rows may be the best, and what
    training gained.
    """
    target = significance.first
    sentences = []
    if target is not None and (best := _best_rows(comparison, significance, target)):
        texts = [
            _elsewhere(comparison, significance, target),
            _planned(comparison, significance, target),
            best,
            _gains(comparison, significance, target),
        ]
        sentences = [text for text in texts if text]
        if (analyses := comparison.analyses) is not None:  # every verdict takes them into account
            count = (
                f"{len(analyses.seeds)} interim analys{'is' if len(analyses.seeds) == 1 else 'es'}"
            )
            how = (
                f"where a decision was open, {count}"
                if analyses.ended
                else f"until rows are decided, {count} so far"
            )
            sentences[0] += f"; seeds {'were' if analyses.ended else 'are being'} added {how}"
    ended = [row for row in comparison.rows if not row.finished]
    if not sentences:
        none = len(ended) == len(comparison.rows)
        nothing = "has finished yet" if none else "has stored the examples that a verdict needs"
        sentences = [f"No row of this comparison {nothing}"]
    if comparison.primary and primary_target(comparison) is None:
        sentences.insert(0, f"The primary score {comparison.primary} has no result")
    if ended:
        lost = [f"{row.label} ({'not run' if row.unavailable else row.status})" for row in ended]
        sentences[-1] += f"; without a result: {_list(lost)}"
    return [f"{sentence}." for sentence in sentences]


def _best_rows(comparison: Comparison, significance: Significance, target: Target) -> str:
    """Which rows may be the best, of each block."""
    blocks = {name: Block(rows, significance, target) for name, rows in comparison.blocks.items()}
    texts = {name: _best(block) for name, block in blocks.items() if len(block.rows) > 1}
    if len(blocks) == 1:
        return next(iter(texts.values()), "")
    more = len(texts) - _MOST
    named = "; on ".join(f"{name}, {text}" for name, text in [*texts.items()][:_MOST])
    return f"On {named}{f'; {more} more below' if more > 0 else ''}" if named else ""


def _best(block: Block) -> str:
    title = name_target(block.significance.comparison, block.target)
    if len(block.contenders) < 2:
        row = max(block.rows, key=block.mean)
        text = f"{row.label} has the highest score on {title}, {block.mean(row):.2f}"
        return f"{text}; with fewer than three seeds a row, it cannot be decided which is better"
    first, *others = block.candidates or block.contenders[:1]
    named, count = _measured(block.significance, block.target, first), len(block.contenders) - 1
    if (
        count == 1 and block.differences[0, 1].verdict == SAME
    ):  # of two rows, the pair's own test decides
        others = block.contenders[1:]
    if not others and count == 1:
        e = block.differences[0, 1].estimate
        margin = f"{100 * e.value:.2f} points [{number_text(100 * e.low, 2)}, {number_text(100 * e.high, 2)}]"
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


def _elsewhere(comparison: Comparison, significance: Significance, target: Target) -> str:
    """How own rows compare with those that were made elsewhere."""
    own: dict[ResultRow, Found] = {}
    for (row, other), d in judge_family(own_against_others(comparison), significance, target):
        own.setdefault(row, []).append((other, d))
    if not own:
        return ""
    phrases = ("above", "below", "not significantly different from", "not judged against")
    texts = [
        f"{_measured(significance, target, row)} is {_by_verdict(found, phrases)}"
        for row, found in own.items()
    ]
    more = f"; {len(own) - _MOST} more rows below" if len(own) > _MOST else ""
    others = sum(bool(row.elsewhere) for row in comparison.rows)
    rows = f"{others} row{'s' if others > 1 else ''} made elsewhere"
    return f"Against {rows}, on {name_target(comparison, target)}: {'; '.join(texts[:_MOST])}{more}"


def _planned(comparison: Comparison, significance: Significance, target: Target) -> str:
    """Say what the comparisons that the file names show, and whether they were planned."""
    against: dict[str, Found] = {}
    for (row, other), d in judge_family(planned(comparison), significance, target):
        against.setdefault(other.label, []).append((row, d))
    verbs = {
        "better": "is better than",
        "worse": "is worse than",
        SAME: "is not significantly different from",
    }
    texts = []
    for label, rows in against.items():
        row, d = rows[0]
        if len(rows) == 1 and d.verdict in verbs:
            texts.append(f"{row.label} {verbs[d.verdict]} {label} ({_points(d)} points)")
        else:
            phrases = ("better:", "worse:", "not significantly different:", "not judged:")
            texts.append(f"against {label}, {_by_verdict(rows, phrases)}")
    if not texts:
        return ""
    status = plan_status(comparison)
    if status == "as planned":
        start = "As planned"
    elif comparison.plan is None:
        start = f"By the {'baseline' if comparison.baseline else 'pairs'} {status}"
    else:
        start = f"Not as planned ({status.removeprefix('not as planned: ')})"
    return f"{start}, on {name_target(comparison, target)}: {'; '.join(texts)}"


def _gains(comparison: Comparison, significance: Significance, target: Target) -> str:
    """What training gained, of rows that were not made elsewhere."""
    found = [
        (row, d)
        for (row, _), d in judge_family(starts(comparison), significance, target)
        if not row.elsewhere
    ]
    phrases = ("improved", "worsened", "made no significant difference to", "is not judged for")
    parts = [_by_verdict(found, phrases, ", and ")] if found else []
    own = [row for row in comparison.rows if not row.elsewhere]
    if lacking := [row.label for row in own if untrained_base(row, comparison.rows)[1]]:
        parts.append(f"cannot be judged for {_list(lacking)}, whose untrained start is not stored")
    return f"Training {', and '.join(parts)}" if parts else ""


def _points(d: Difference) -> str:
    return number_text(100 * d.estimate.value, 2, signed=True)


def _by_verdict(found: Found, phrases: tuple[str, str, str, str], between: str = "; ") -> str:
    """Rows with their differences, the largest first; `phrases`: of better, worse, equal and
    unjudged ones.
    """
    ordered = sorted(found, key=lambda one: -abs(one[1].estimate.value))
    texts = []
    for verdict, phrase in zip(("better", "worse", SAME, NOT_JUDGED), phrases, strict=True):
        if names := [f"{row.label} ({_points(d)})" for row, d in ordered if d.verdict == verdict]:
            texts.append(f"{phrase} {_list(names)}")
    return between.join(texts)


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
