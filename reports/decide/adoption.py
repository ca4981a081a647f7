"""Whether to keep a model: the answer of a comparison with an `incumbent`.

Row and run are chosen by their scores on the dev set; what is said of them comes from the test
set, with intervals that hold for all rows against the incumbent at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from reports.document.table import number_text
from reports.load import RecordedResults, RecordedRow
from reports.results import Key, name_rows
from reports.stats.power import CHANCE
from reports.stats.significance import Difference
from reports.stats.verdicts import EQUIVALENCE, Family, Question, judge_family

Decision = Literal["adopt", "keep", "undecided"]
MOST_EXAMPLES = 1_000_000  # a larger number is shown as "more than" this one


@dataclass(frozen=True)
class Adoption:
    """A decision with its reason.

    Attributes:
        decision: adopt the row, keep the incumbent, or undecided.
        text: a sentence or two that can be acted on.
        row: label of the row that was chosen on the dev set; "" where there is none.
        run: id of its run with the highest dev score.
        data: the numbers behind the text.
    """

    decision: Decision
    text: str
    row: str
    run: str
    data: Mapping[str, Any]


def decide(
    results: RecordedResults,
    question: Question,
    incumbent: str,
    dev_scores: Mapping[str, float],
) -> Adoption:
    """Decide whether another row replaces the incumbent.

    Args:
        results: the comparison that the question is about.
        incumbent: its label.
        dev_scores: run id -> score on the dev set, of the runs that have one.
    """
    in_use = []
    others = []
    for row in results.rows:
        if row.finished and row.label == incumbent:
            in_use.append(row)
        elif row.finished and not row.added:
            others.append(row)
    if len(in_use) > 1:
        text = f"Not decided: {incumbent} is a row on {len(in_use)} base models, of which one is in use."
        return Adoption("undecided", text, "", "", {})
    if not in_use or not others:
        lost = "every other row" if in_use else incumbent
        text = f"Not decided: {lost} has no result."
        return Adoption("undecided", text, "", "", {})

    (old,) = in_use
    names = name_rows([old, *others])
    found = _judge_against(old, others, question)
    chosen = max(others, key=lambda row: _dev_mean(row, dev_scores))
    runs = [record.id for record in chosen.finished]
    best = max(runs, key=lambda run: dev_scores.get(run, -math.inf))
    data: dict[str, Any] = {
        "incumbent": incumbent,
        "on": question.target.title,
        "dev": {names[row.key]: _as_percent(_dev_mean(row, dev_scores)) for row in (old, *others)},
        "test": {names[key]: _as_points(d) for key, d in found.items()},
        "examples": question.significance.examples(question.target),
    }

    decision: Decision
    name = names[chosen.key]
    difference = found.get(chosen.key)
    if difference is not None and difference.verdict == "better":
        decision = "adopt"
        text = f"{name}: {_in_words(difference)} points on {question.target.title}"
    elif _none_is_better(found, len(others)):
        decision = "keep"
        text = _describe_keep(found, question)
    else:
        decision = "undecided"
        text = _describe_undecided(question, chosen, old, difference, data)
    return Adoption(decision, text, name, best, data)


def _judge_against(
    old: RecordedRow, others: Sequence[RecordedRow], question: Question
) -> dict[Key, Difference]:
    """Return each other row against the incumbent, as one family."""
    pairs = tuple((row, old) for row in others)
    family = Family(f"{len(pairs)} rows against {old.label}", pairs)
    judged = judge_family(family, question.significance, question.target)
    return {row.key: difference for (row, _), difference in judged}


def _none_is_better(found: Mapping[Key, Difference], others: int) -> bool:
    """True if every other row is judged, and none is better by as much as matters."""
    judged = [d for d in found.values() if d.judged]
    return len(judged) == others and _highest(found) < EQUIVALENCE


def _highest(found: Mapping[Key, Difference]) -> float:
    """Return by how many points a row may be better than the incumbent."""
    bounds = []
    for difference in found.values():
        if difference.judged:
            bounds.append(100 * difference.estimate.high)
    return max(bounds)


def _describe_keep(found: Mapping[Key, Difference], question: Question) -> str:
    """Say that nothing is better, and by how much nothing is."""
    text = "Keep your model: nothing tried is better"
    highest = max(_highest(found), 0.0)
    bound = math.ceil(10 * highest) / 10
    if bound > 0:
        text += f" by more than {bound:.1f} points"
    return f"{text} on {question.target.title}."


def _describe_undecided(
    question: Question,
    chosen: RecordedRow,
    old: RecordedRow,
    difference: Difference | None,
    data: dict[str, Any],
) -> str:
    """Say what is not known, and about how many examples would be needed."""
    count = data["examples"]
    start = f"Not decided with {count:,} test examples"
    if difference is None or not difference.judged:
        return f"{start}: fewer than three seeds of {chosen.label} are too few."
    shown = f"{chosen.label}, the best row on the dev set, is at {_in_words(difference)} points"
    if difference.verdict == "worse":
        shown += ", so keep your model; other rows may still be better"
    gains = difference.estimate.value > 0  # a loss is not what is to be found
    needed = examples_needed(question, chosen, old, difference, EQUIVALENCE, shown=gains)
    data["needed"] = needed
    if needed is None:
        seeds = 2 * len(chosen.finished)
        return (
            f"{start}: {shown}. More seeds come first (--seeds {seeds}, which keeps what was trained): "
            "their spread alone leaves it open."
        )
    if needed <= count:  # what matters would have been found
        return (
            f"{start}: {shown}. A gain of {EQUIVALENCE:g} points would be found in 80 % of cases with these, "
            "so one that matters is unlikely."
        )
    return f"{start}: {shown}. {describe_count(needed).capitalize()} would be needed."


def describe_count(examples: int) -> str:
    """Return a number of test examples in words: "about 2,300"."""
    if examples > MOST_EXAMPLES:
        return f"more than {MOST_EXAMPLES:,}"
    return f"about {examples:,}"


def examples_needed(
    question: Question,
    a: Any,
    b: Any,
    difference: Difference,
    least: float,
    *,
    shown: bool = True,
) -> int | None:
    """Return about how many test examples find a difference in 80 % of cases, by the spreads of two
    rows and with as many seeds as now.

    Args:
        least: the difference in points; with `shown` the one that the rows show, if it is larger.

    Returns:
        None where the spread over seeds alone is too large.
    """
    first, second, by_examples = question.significance.parts(a, b, question.target)
    error = math.sqrt(first + second + by_examples)
    count = question.significance.examples(question.target)
    if error == 0:
        return count
    half = (difference.estimate.high - difference.estimate.low) / 2
    wanted = least / 100
    if shown:
        wanted = max(abs(difference.estimate.value), wanted)
    return count_needed(wanted, half / error, first + second, by_examples, count)


def count_needed(
    wanted: float,
    critical: float,
    by_seeds: float,
    by_examples: float,
    count: int,
) -> int | None:
    """Return the number of examples with which a true difference is found in 80 % of cases, rounded
    up to two digits.

    Args:
        wanted: the true difference.
        critical: what a difference must exceed, in standard errors.
        by_seeds, by_examples: variances of the difference; the second one with `count` examples.

    Returns:
        None where no number of examples does.
    """
    most = (wanted / (critical + float(ndtri(CHANCE)))) ** 2  # the variance that is allowed
    if most <= by_seeds:
        return None
    needed = count * by_examples / (most - by_seeds)
    magnitude = int(math.log10(max(needed, 1)))
    digits = 10 ** max(0, magnitude - 1)
    rounded = math.ceil(needed / digits) * digits
    return int(rounded)


def _dev_mean(row: RecordedRow, dev_scores: Mapping[str, float]) -> float:
    """Return the mean over the row's runs; minus infinity where one is unknown."""
    known = [dev_scores.get(record.id, -math.inf) for record in row.finished]
    return float(np.mean(known))


def _as_percent(value: float) -> float | None:
    return 100 * value if math.isfinite(value) else None


def _as_points(d: Difference) -> dict[str, float]:
    e = d.estimate
    return {
        "difference": 100 * e.value,
        "low": 100 * e.low,
        "high": 100 * e.high,
    }


def _in_words(d: Difference) -> str:
    value, low, high = (
        number_text(100 * x, 1, signed=True)
        for x in (d.estimate.value, d.estimate.low, d.estimate.high)
    )
    return f"{value} [{low}, {high}]"
