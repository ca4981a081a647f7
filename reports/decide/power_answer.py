"""The answer of `harness power`, in Python and on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.adoption import MOST_EXAMPLES, describe_count, examples_needed
from reports.decide.question import comparison_of, question_of
from reports.decide.verdict_answer import has_base_model, judge_two, rank_two
from reports.document.table import number_text
from reports.scores.score_table import is_score_table, question_of_scores, refuse_with_scores
from reports.stats.power import CHANCE, MOST_SEEDS, seeds_needed, smallest_difference
from reports.stats.verdicts import EQUIVALENCE, Question, describe_detectable
from reports.with_report import WithReport

if TYPE_CHECKING:
    from reports.read.score_tables import Source

SEEDS = (3, 4, 5, 6, 8, 10, 15, 20)
EXAMPLES_SD = 0.7  # points: median over six rows of the seven STS sets (docs/statistics.md)
STS_PAIRS = 18_850  # of the seven STS sets
_SD = "--sd (BERT-base has about 0.84 points on STS)"


def power(
    found: WithReport | Source | None = None,
    difference: float | None = None,
    *,
    a: str = "",
    b: str = "",
    on: str = "",
    block: str = "",
    comparison: str = "",
    base_model: str = "",
    sd: float | None = None,
    pairs_sd: float | None = None,
    rows: int | None = None,
) -> Answer:
    """The smallest difference that is found in 80 % of comparisons, by the number of seeds and of
    test examples.

        >>> harness.power(sd=0.84, difference=3, rows=2).data[0]["needed"]
        4

    Args:
        found: a comparison or its work directory, whose spread counts, or scores as
            `harness.verdict` takes them; None where `sd` is given.
        difference: in points: how many seeds does it take?
        a, b: labels of two rows: what can be said of these two by their own spread, and how many
            test examples find their difference (or `difference`).
        on, block, comparison, base_model: as `harness.verdict` has them.
        sd, pairs_sd: standard deviation in points over seeds, and of a difference by the choice of
            test examples.
        rows: how many are compared.

    Returns:
        In `data`, by block of rows: "seeds" (number -> least difference of any two rows, in
        points), "planned" (the same of a planned pair), "examples" (their number -> number of
        seeds -> least difference),
        "needed", and "detectable" (the least and the most that pairs of these rows need).
        `frame()`: one row a number of seeds. Of two rows: "difference", "low", "high",
        "detectable", "examples" and "needed_examples".

    Raises:
        InputError: neither records nor `sd`, a number out of range, or no spread of seeds known.
    """
    _check({"difference": difference, "sd": sd, "pairs-sd": pairs_sd}, rows)
    if bool(a) != bool(b) or (a and found is None):
        raise InputError(
            "power: name two rows of a work directory or of scores, or none", key="power"
        )
    if found is not None:
        if is_score_table(found):
            refuse_with_scores(block=block, comparison=comparison, base_model=base_model)
            question = question_of_scores(found, on)
        else:
            question = question_of(comparison_of(found, comparison, block), on)
        if a:
            return _of_two(question, a, b, base_model, difference)
        designs = _designs_of(question, base_model)
    elif sd is not None:
        designs = [PowerDesign("given numbers", 2, sd, EXAMPLES_SD, STS_PAIRS)]
    else:
        raise InputError(f"power: give a work directory, or {_SD}", key="power")

    answers = []
    for design in designs:
        answers.append(_power_of(design.with_given(rows, sd, pairs_sd), difference))
    table = []
    lines = []
    for one in answers:
        lines += _lines(one)
        for n, least in one["seeds"].items():
            table.append(
                {
                    "what": one["what"],
                    "seeds": int(n),
                    "least": least,
                    "planned": one["planned"][n],
                }
            )
    return Answer("\n".join(lines), answers, table)


def _check(points: dict[str, float | None], rows: int | None) -> None:
    """Raises:
    InputError: a number is out of range.
    """
    for name, value in points.items():
        if value is not None and not 0 < value <= 100:
            raise InputError(
                f"--{name} {value:g}: expected a number above 0 and up to 100", key=f"--{name}"
            )
    if rows is not None and not 2 <= rows <= 200:
        raise InputError(f"--rows {rows}: expected a number from 2 to 200", key="--rows")


@dataclass(frozen=True)
class PowerDesign:
    """Rows whose power is computed.

    Attributes:
        what: the rows and their score, in words.
        rows: how many.
        sd, pairs_sd: standard deviation over seeds, and of a difference by the choice of examples,
            in points.
        count: how many test examples there are; 0 where they are not known.
        detectable: the least and the most points that pairs of rows need that were judged.
    """

    what: str
    rows: int
    sd: float
    pairs_sd: float
    count: int
    detectable: tuple[float, float] | None = None

    def with_given(
        self,
        rows: int | None,
        sd: float | None,
        pairs_sd: float | None,
    ) -> PowerDesign:
        """The same with the numbers that are given instead of those of records."""
        return replace(
            self,
            rows=self.rows if rows is None else rows,
            sd=self.sd if sd is None else sd,
            pairs_sd=self.pairs_sd if pairs_sd is None else pairs_sd,
        )


def _designs_of(question: Question, base_model: str) -> list[PowerDesign]:
    """Return the design of each block of rows whose spread over seeds is known.

    Raises:
        InputError: there is none.
    """
    title = question.target.title
    count = question.significance.examples(question.target)
    designs = []
    for name, judged in question.blocks().items():
        known = judged.design()
        if known is not None and has_base_model(judged, base_model):
            _, sd, pairs_sd = known
            what = f"{name}, {title}" if name else title
            rows = len(judged.contenders)
            designs.append(PowerDesign(what, rows, sd, pairs_sd, count, judged.detectable))
    if not designs:
        raise InputError(
            "no two trained rows have three seeds or more, so the spread of seeds is not known",
            file=question.results.name,
            remedy=f"give {_SD}",
        )
    return designs


def _of_two(
    question: Question,
    first: str,
    second: str,
    base_model: str,
    difference: float | None,
) -> Answer:
    """Return what these two rows allow, by their own spread."""
    block, a, b = rank_two(question, first, second, base_model)
    judged = judge_two(question, block, a, b)
    if not judged.judged:
        raise InputError(
            f"{a.label} and {b.label}: power takes three seeds of each trained row", key=a.label
        )
    e = judged.estimate
    count = question.significance.examples(question.target)
    value = 100 * e.value
    low = 100 * e.low
    high = 100 * e.high
    wanted = difference
    if wanted is None:
        wanted = max(abs(value), EQUIVALENCE)
    needed = examples_needed(question, a, b, judged, wanted, shown=difference is None)
    least = block.detectable_of(a, b, e)
    data = {
        "a": a.label,
        "b": b.label,
        "what": question.target.title,
        "difference": value,
        "low": low,
        "high": high,
        "seeds": list(judged.seeds),
        "examples": count,
        "detectable": least,
        "wanted": wanted,
        "needed_examples": needed,
    }
    pair = f"{a.label} against {b.label} on {question.target.title}"
    shown = [number_text(one, 2, signed=True) for one in (value, low, high)]
    numbers = f"{pair}: {shown[0]} points [{shown[1]}, {shown[2]}]"
    if count:
        lines = [
            f"{numbers}, {count:,} test examples.",
            f"With these, {describe_detectable(least)} between these two rows.",
            _describe_examples_needed(needed, wanted, count),
        ]
    else:
        lines = [
            f"{numbers}; scores of single examples are not known.",
            f"With these seeds, {describe_detectable(least)} between these two rows.",
        ]
    return Answer("\n".join(map(one_line, lines)), [data], [data])


def _describe_examples_needed(needed: int | None, wanted: float, count: int) -> str:
    """Say how many test examples find a difference in points, of a test set of `count`."""
    size = f"{wanted:.1f}"
    if wanted < 0.1:
        size = f"{wanted:.1g}"
    if needed is None:
        return (
            f"No number of test examples alone finds {size} points: the spread over seeds is"
            " too large; add seeds."
        )
    if needed <= count:
        return f"A difference of {size} points is found with these examples."
    text = f"A difference of {size} points takes {describe_count(needed)} test examples"
    if needed > MOST_EXAMPLES:
        return f"{text}."
    return f"{text}: {needed - count:,} more."


def _power_of(design: PowerDesign, difference: float | None) -> dict[str, Any]:
    """Return everything that is known of one design."""
    rows = design.rows
    sd = design.sd
    pairs_sd = design.pairs_sd
    any_two = {}
    planned = {}
    for seeds in SEEDS:
        any_two[str(seeds)] = smallest_difference(seeds, sd, pairs_sd, rows)
        planned[str(seeds)] = smallest_difference(seeds, sd, pairs_sd, rows, planned=True)

    examples = {}
    if design.count:
        for times in (4, 16):
            less = pairs_sd / math.sqrt(times)
            by_seeds = {}
            for seeds in SEEDS:
                by_seeds[str(seeds)] = smallest_difference(seeds, sd, less, rows)
            examples[str(times * design.count)] = by_seeds
    seen: dict[str, Any] = {
        "what": design.what,
        "rows": rows,
        "test_examples": design.count,
        "sd": sd,
        "pairs_sd": pairs_sd,
        "chance": CHANCE,
        "seeds": any_two,
        "planned": planned,
        "examples": examples,
    }
    if difference is not None:
        seen["difference"] = difference
        seen["needed"] = seeds_needed(difference, sd, pairs_sd, rows)
        seen["needed_planned"] = seeds_needed(difference, sd, pairs_sd, rows, planned=True)
    seen["detectable"] = design.detectable
    return seen


def _lines(one: dict[str, Any]) -> list[str]:
    """Return one design in words: a line for each number of seeds."""
    count = one["test_examples"]
    examples = f"{count:,}" if count else "unknown"
    title = f"{one['what']}: {one['rows']} rows, {examples} test examples"
    title += f"; standard deviation {one['sd']:.2f} points over seeds"
    if count:
        title += f", {one['pairs_sd']:.2f} of a difference over examples"
    heads = ["seeds", "any two rows", "a planned pair"]
    columns = [one["seeds"], one["planned"]]
    for many, by_seeds in one["examples"].items():
        heads.append(f"{int(many):,} examples")
        columns.append(by_seeds)
    lines = [
        one_line(title),
        f"Smallest difference in points that is found in {CHANCE:.0%} of comparisons of rows "
        "with these spreads:",
        "  ".join(head.rjust(14) for head in heads),
    ]
    for n in one["seeds"]:
        numbers = [f"{column[n]:.2f}" for column in columns]
        cells = [cell.rjust(14) for cell in (n, *numbers)]
        lines.append("  ".join(cells))
    if one["detectable"] is not None:
        text = describe_detectable(*one["detectable"])
        lines.append(f"By the rows' own spreads, {text} (harness power A B: of two rows).")
    if "difference" in one:
        any_two = _describe_needed(one["needed"])
        planned = _describe_needed(one["needed_planned"])
        points = "1 point" if one["difference"] == 1 else f"{one['difference']:g} points"
        takes = f"A difference of {points} takes {any_two}"
        lines.append(f"{takes}; as a planned pair {planned}.")
    return lines


def _describe_needed(seeds: int | None) -> str:
    if seeds is None:
        return f"more than {MOST_SEEDS} seeds, or more test examples"
    return f"{seeds} seeds of every row"
