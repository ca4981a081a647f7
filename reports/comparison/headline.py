"""The main conclusion of a comparison, in a few sentences that a referee can quote."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.table import number_text
from reports.results import InterimAnalyses, ResultRow, Results, find_start
from reports.stats.significance import NOT_JUDGED, SAME, Difference, Significance
from reports.stats.verdicts import (
    IN_USE,
    Ranking,
    describe_lost_seeds,
    judge_family,
    own_against_others,
    plan_status,
    planned_family,
    replaces_model,
    starts,
)
from reports.suite_targets import known_targets, name_target, primary_target
from reports.targets import Target

NO_GAIN = "Nothing that was trained is better than its untrained start"
_OF_FILE = "of the rows of the file, "
_MOST = 3  # blocks of rows, or rows that are compared with those made elsewhere, that a sentence has room for
Found = list[tuple[ResultRow, Difference]]


def headline(comparison: Results, significance: Significance) -> list[str]:
    """Sentences, by the first target: which rows may be the best, what the named pairs show, and
    what training gained. What a frozen plan asks comes before the best rows. Where nothing that was
    trained is better than its start, that is the first. A rehearsal compares nothing.
    """
    target = significance.first
    if any(row.rehearsal for row in comparison.rows):
        target = None
    sentences = []
    if target is not None:
        sentences = _conclude(comparison, significance, target)
    if not sentences:
        sentences = [_why_nothing(comparison, significance)]
    if comparison.primary and primary_target(comparison) is None:
        sentences.insert(0, f"The primary score {comparison.primary} has no result")
    if ended := _list_ended(comparison):
        sentences[-1] += f"; without a result: {ended}"
    if lost := _describe_lost(comparison):
        sentences.append(lost)
    return [f"{sentence}." for sentence in sentences]


def _conclude(comparison: Results, significance: Significance, target: Target) -> list[str]:
    """Return the sentences on a target; none where no row is compared by it."""
    best = _best_rows(comparison, significance, target)
    if not best:
        return []
    no_gain = _no_gain(comparison, significance, target)
    named = _describe_named(comparison, significance, target)
    texts = [no_gain, _elsewhere(comparison, significance, target)]
    if comparison.plan is not None or replaces_model(comparison):  # it was asked before
        texts += [named, best]
    else:
        texts += [best, named]
    if not no_gain:
        texts.append(_gains(comparison, significance, target))
    sentences = [text for text in texts if text]
    if comparison.analyses is not None:  # every verdict takes them into account
        sentences[0] += f"; {_describe_analyses(comparison.analyses)}"
    return sentences


def _list_ended(comparison: Results) -> str:
    """List the rows without a finished run, and why; "" where all have some."""
    labels = []
    for row in comparison.rows:
        if row.finished:
            continue
        if row.unavailable:
            labels.append(f"{row.label} (not run)")
        else:
            labels.append(f"{row.label} ({row.status})")
    if not labels:
        return ""
    return _list(labels)


def _describe_lost(comparison: Results) -> str:
    """Say of which rows seeds ended without a score; of the first rows where there are many."""
    said = []
    for row in comparison.rows:
        if row.added:
            continue
        lost = describe_lost_seeds([row])
        if lost:
            said.append(lost)
    more = len(said) - _MOST
    if more > 0:
        said = [*said[:_MOST], f"of {more} more rows too"]
    return "; ".join(said)


def _describe_analyses(analyses: InterimAnalyses) -> str:
    """Say how many interim analyses there were or are so far."""
    count = len(analyses.seeds)
    noun = "interim analysis" if count == 1 else "interim analyses"
    if analyses.ended:
        return f"seeds were added where a decision was open, {count} {noun}"
    return f"seeds are being added until rows are decided, {count} {noun} so far"


def _why_nothing(comparison: Results, significance: Significance) -> str:
    """Say why no row is named: nothing has finished, nothing was scored, or no row has examples."""
    finished = [row for row in comparison.rows if row.finished]
    if not finished:
        return "No row of this comparison has finished yet"
    if any(row.rehearsal for row in finished):
        count = f"{len(finished)} of {len(comparison.rows)} rows"
        return f"The rehearsal worked for {count}; its scores are of cut tasks and compare nothing"
    target = significance.first
    if target is not None and (why := significance.unknown(target)):
        return f"No row is compared with another on {target.title}: {why}"
    missing: dict[str, None] = {}
    for row in finished:
        for task, why in _missing_scores(row):
            missing[f"{task}: {why}"] = None
    others = [other for _, other in known_targets(comparison)]
    if others and not missing:
        why = significance.unknown(others[0])
        return f"No row is compared with another on {others[0].title}: {why}"
    text = "No row has a score by which rows are compared"
    if missing:
        return f"{text} ({_list(list(missing))})"
    return text


def _missing_scores(row: ResultRow) -> list[tuple[str, str]]:
    """Task and reason of each score that a finished run of a row lacks."""
    found = []
    for run in row.finished:
        for task, why in run.missing.items():
            found.append((task, str(why)))
    return found


def _no_gain(comparison: Results, significance: Significance, target: Target) -> str:
    """Say that nothing which was trained is better than its untrained start, and by how much; ""
    where something is better, or may be but has too few seeds to tell.
    """
    found = _differences_to_starts(comparison, significance, target)
    if not found:
        return ""
    for _, d in found:
        may_be_better = not d.judged and d.estimate.value > 0
        if d.verdict == "better" or may_be_better:
            return ""
    texts = []
    for verdict, phrase in (
        ("worse", "training worsened"),
        (SAME, "it made no significant difference to"),
        (NOT_JUDGED, "lower, but not tested with fewer than three seeds:"),
    ):
        names = []
        for row, d in found:
            if d.verdict == verdict:
                names.append(f"{row.label} ({_points(d)})")
        if names:
            texts.append(f"{phrase} {_list(names)}")
    lacking = _rows_without_start(comparison)
    if lacking:
        texts.append(f"not known of {_list(lacking)}, whose untrained start is not stored")
    title = name_target(comparison, target)
    return f"{NO_GAIN} on {title}: {'; '.join(texts)}"


def _rows_without_start(comparison: Results) -> list[str]:
    """Return the labels of the own rows that have an untrained start which is not stored."""
    lacking = []
    for row in comparison.rows:
        _, why = find_start(row, comparison.rows)
        if why and not row.source:
            lacking.append(row.label)
    return lacking


def _differences_to_starts(
    comparison: Results,
    significance: Significance,
    target: Target,
) -> Found:
    """Return each own row with its difference to its untrained start, the largest first."""
    judged = judge_family(starts(comparison), significance, target)
    found = []
    for (row, _), difference in judged:
        if not row.source:
            found.append((row, difference))
    return _largest_first(found)


def _largest_first(found: Found) -> Found:
    def order(one: tuple[ResultRow, Difference]) -> float:
        _, difference = one
        return -abs(difference.estimate.value)

    return sorted(found, key=order)


def _best_rows(comparison: Results, significance: Significance, target: Target) -> str:
    """Which rows may be the best, of each block."""
    blocks = {}
    for name, rows in comparison.blocks.items():
        blocks[name] = Ranking(rows, significance, target)
    texts = {}
    for name, block in blocks.items():
        if len(block.rows) > 1:
            texts[name] = _with_higher_starts(block, _best(block))
        elif block.rows and len(blocks) == 1:
            title = name_target(comparison, target)
            only = _describe_row(significance, target, block.rows[0], block.rows[0].label)
            texts[name] = _with_higher_starts(block, f"{only} is the only row on {title}")
    if len(blocks) == 1:
        text = next(iter(texts.values()), "")
        return text.replace(_OF_FILE, _OF_FILE.capitalize(), 1)
    clauses = [f"on {name}, {text}" for name, text in texts.items()]
    if not clauses:
        return ""
    more = len(clauses) - _MOST
    if more > 0:
        clauses = [*clauses[:_MOST], f"{more} more below"]
    sentence = "; ".join(clauses)
    return sentence.replace("on ", "On ", 1)


def _with_higher_starts(block: Ranking, text: str) -> str:
    """Return a sentence on the rows of a block, with the added untrained starts that score more
    than all of them.
    """
    best = max(map(block.mean, block.rows))
    names = []
    for row in block.left_out:
        mean = block.mean(row)
        if mean > best:
            names.append(f"{block.name(row)} ({mean:.2f})")
    if not names:
        return text
    if len(names) == 1:
        verb = "was"
    else:
        verb = "were"
    return f"{_OF_FILE}{text}; higher is {_list(names)}, which {verb} added as untrained start"


def _best(block: Ranking) -> str:
    title = name_target(block.significance.results, block.target)
    if len(block.contenders) < 2:
        return _describe_few(block, title)
    first, *others = block.candidates or block.contenders[:1]
    named = _describe_row(block.significance, block.target, first, block.name(first))
    count = len(block.contenders) - 1
    labels = list(map(block.name, others))
    if not others and count == 1:
        margin = _margin(block.differences[0, 1])
        loser = block.name(block.contenders[1])
        text = f"{named} beats {loser} by {margin} on {title}"
    elif not others:
        text = f"{named} is the best of {count + 1} rows on {title} (95 % confidence)"
    elif len(others) < count:
        text = f"{named} scores highest on {title}; of {count + 1} rows the best may also be "
        text += f"{_list(labels, 'or')} (95 % confidence)"
    else:
        who = "any other row"
        if count <= 2:
            who = _list(labels, "or")
        text = f"{named} scores highest on {title}, but not significantly better than {who}"
    return text + _describe_unjudged(block)


def _describe_few(block: Ranking, title: str) -> str:
    """Return the same of a block with one contender or none: how it compares with the controls."""
    if not block.contenders or not block.controls:
        row = max(block.rows, key=block.mean)
        text = f"{block.name(row)} has the highest score on {title}, {block.mean(row):.2f}"
        if block.unjudged:
            text += "; with fewer than three seeds a row, it cannot be decided which is better"
        return text
    (only,) = block.contenders
    found = [(control, block.difference(only, control)) for control in block.controls]
    phrases = ("above", "below", "not significantly different from", "not judged against")
    named = _describe_row(block.significance, block.target, only, block.name(only))
    text = f"{named} is {_by_verdict(found, phrases)} on {title}"
    return text + _describe_unjudged(block)


def _describe_unjudged(block: Ranking) -> str:
    """Return which rows have too few seeds, a clause; "" where none has. Those that score more
    than all judged rows have their score.
    """
    if not block.unjudged:
        return ""
    best = max(map(block.mean, block.judged))
    labels = []
    for row in block.unjudged:
        label = block.name(row)
        if block.mean(row) > best:
            label += f" ({block.mean(row):.2f})"
        labels.append(label)
    return f"; not judged, with fewer than three seeds: {_list(labels)}"


def _margin(difference: Difference) -> str:
    """Return a difference with its interval, in points."""
    e = difference.estimate
    value = 100 * e.value
    low = number_text(100 * e.low, 2)
    high = number_text(100 * e.high, 2)
    return f"{value:.2f} points [{low}, {high}]"


def _elsewhere(comparison: Results, significance: Significance, target: Target) -> str:
    """How own rows compare with those that were made elsewhere."""
    own: dict[ResultRow, Found] = {}
    family = own_against_others(comparison)
    for (row, other), d in judge_family(family, significance, target):
        own.setdefault(row, []).append((other, d))
    if not own:
        return ""
    phrases = ("above", "below", "not significantly different from", "not judged against")
    texts = []
    for row, found in own.items():
        described = _describe_row(significance, target, row, row.label)
        texts.append(f"{described} is {_by_verdict(found, phrases)}")
    more = len(own) - _MOST
    if more > 0:
        texts = [*texts[:_MOST], f"{more} more rows below"]
    others = sum(bool(row.source) for row in comparison.rows)
    rows = f"{others} rows"
    if others == 1:
        rows = "1 row"
    title = name_target(comparison, target)
    return f"Against {rows} made elsewhere, on {title}: {'; '.join(texts)}"


def _describe_named(comparison: Results, significance: Significance, target: Target) -> str:
    """Say what the comparisons that the file names show, and whether they were planned."""
    against: dict[str, Found] = {}
    family = planned_family(comparison)
    for (row, other), d in judge_family(family, significance, target):
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
            verb = verbs[d.verdict]
            texts.append(f"{row.label} {verb} {label} ({_points(d)} points)")
        else:
            phrases = ("better:", "worse:", "not significantly different:", "not judged:")
            texts.append(f"against {label}, {_by_verdict(rows, phrases)}")
    if not texts:
        return ""
    said = "; ".join(texts)
    status = plan_status(comparison)
    if status == "as planned":
        start = "As planned"
    elif status == IN_USE:
        start = "Each row against the model in use"
    elif comparison.plan is not None:
        why = status.removeprefix("not as planned: ")
        start = f"Not as planned ({why})"
    else:  # the sentence before it names the target
        return f"Named in the experiment file, without a frozen plan: {said}"
    title = name_target(comparison, target)
    return f"{start}, on {title}: {said}"


def _gains(comparison: Results, significance: Significance, target: Target) -> str:
    """What training gained, of rows that were not made elsewhere."""
    found = _differences_to_starts(comparison, significance, target)
    phrases = ("improved", "worsened", "made no significant difference to", "is not judged for")
    parts = []
    if found:
        parts.append(_by_verdict(found, phrases, ", and "))
    lacking = _rows_without_start(comparison)
    if lacking:
        parts.append(f"cannot be judged for {_list(lacking)}, whose untrained start is not stored")
    if parts:
        return f"Training {', and '.join(parts)}"
    return ""


def _points(d: Difference) -> str:
    return number_text(100 * d.estimate.value, 2, signed=True)


def _by_verdict(found: Found, phrases: tuple[str, str, str, str], between: str = "; ") -> str:
    """Rows with their differences, the largest first; `phrases`: of better, worse, equal and
    unjudged ones.
    """
    names: dict[str, list[str]] = {}
    for row, d in _largest_first(found):
        name = f"{row.label} ({_points(d)})"
        names.setdefault(d.verdict, []).append(name)
    texts = []
    verdicts = ("better", "worse", SAME, NOT_JUDGED)
    for verdict, phrase in zip(verdicts, phrases, strict=True):
        if verdict in names:
            texts.append(f"{phrase} {_list(names[verdict])}")
    return between.join(texts)


def _describe_row(significance: Significance, target: Target, row: ResultRow, name: str) -> str:
    """A row, by a name, with its mean and its number of seeds."""
    runs = significance.by_seed(row, target)
    assert runs is not None
    mean = 100 * runs.scores.mean()
    text = f"{mean:.2f}"
    count = len(runs.ids)
    if row.is_random and count == 1:
        text += ", 1 seed"
    elif row.is_random:
        text += f", {count} seeds"
    return f"{name} ({text})"


def _list(names: Sequence[str], word: str = "and") -> str:
    if len(names) > 7:  # a sentence of thirty names is not read; the tables have them all
        names = [*names[:5], f"{len(names) - 5} more"]
    *first, last = names
    if not first:
        return last
    return f"{', '.join(first)} {word} {last}"
