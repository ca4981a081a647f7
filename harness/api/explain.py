"""`harness.why`: which settings make the difference between two rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api.between_design import Designer, Made, describe_plan, run_design
from harness.api.between_rows import Ends, find_between
from harness.config import as_list
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.machine.progress import Reporter
from harness.results.answer import Answer
from harness.results.store import checked_workdir, comparison_files
from harness.runs.between import (
    Between,
    Factor,
    choose_factors,
    find_factors,
    join_impossible,
)
from harness.runs.inputs import forget_loaded
from reports.decide.question import comparison_of, question_of
from reports.document.blocks import slug
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.stats.simultaneous import ALPHA
from reports.stats.verdicts import describe_lost_seeds
from reports.targets import Target
from reports.why.document import answer_lines, as_data, document
from reports.why.equal_runs import compare_equal_runs
from reports.why.explanation import DesignRows, Explanation, explain, parts_of
from reports.why.published import compare_with_published, find_published
from reports.why.shares import Design, Subset
from reports.with_report import WithReport
from reports.write.report_folder import FORMATS, check_formats, write

_SEEDS = "analysed.json"  # of a design's report: the numbers of seeds that it was analysed with


def why(
    found: WithReport | str | Path,
    a: str,
    b: str = "",
    *,
    against_preset: str = "",
    against: str | Path = "",
    published: str = "",
    on: str = "",
    comparison: str = "",
    base_model: str = "",
    factors: str | Sequence[str] = (),
    join: str | Sequence[str] = (),
    runs: int | None = None,
    seeds: int | None = None,
    equivalence: float = 0.5,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracking_uri: str | None = None,
    formats: str | Sequence[str] = FORMATS,
    progress: Reporter | None = None,
) -> Answer:
    """Split the difference between row `a` and row `b` into shares of the settings in which they
    differ.

    Rows between the two are trained as an ordinary comparison: each has some settings of `a` and
    the others of `b`. The share of a setting is what its change adds in the mean over all orders of
    changes (its Shapley value); the shares sum to the difference. Runs that exist are reused.

        >>> answer = harness.why(work, "mean", "cls", runs=0, formats=[], tracking_uri="none")
        >>> [share["factor"] for share in answer.data["factors"]]
        ['pooling']

    Args:
        found: a comparison, or the work directory of one.
        a, b: labels of rows.
        against_preset: "METHOD:PRESET" to compare `a` with, in place of a row `b`: a row of the
            comparison's base model, text and budget with the values of that preset.
        against: another work directory with the same comparison: how the runs of `a` in it differ
            from those in this one, in their environment and since which training step.
        published: "FILE.csv:MODEL", the published number that `b` repeats: the answer ends with
            what is left between it and `b`.
        on, comparison, base_model: as `harness.verdict` has them.
        factors: names of factors that are one each; all others are joined.
        join: names joined by "+", which are changed together.
        runs: how many new runs may be made. Left out, nothing is trained: the answer lists the rows
            between, how many of their runs exist, and what the others cost.
        seeds: of every row; by default those that both rows have.
        equivalence: points; less is no difference that matters.
        executor, tracking_uri, formats, progress: as `harness.compare` has them.

    Returns:
        In `data`: "difference", "factors" (of each the share with its interval, and what it adds
        when it is changed first and last), "interaction", "smallest_change", "rows".

    Raises:
        InputError: no such row, rows that do not differ, too few seeds, or more new runs than
            `runs` allows.
        RunError: a stop was requested; the same call resumes.
    """
    formats = as_list(formats)
    check_formats(formats)
    factors = as_list(factors)
    join = as_list(join)
    others = bool(b) + bool(against_preset) + bool(against)
    _check_question(others, equivalence)
    read = comparison_of(found, comparison)
    if against:
        other = Path(against)
        if read.name in comparison_files(other):
            name = read.name
        else:
            name = ""
        lines, data = compare_equal_runs(read, comparison_of(other, name), a)
        return Answer("\n".join(lines), data, data)
    target = question_of(read, on).target
    forget_loaded()
    ends = Ends(a, b, against_preset, base_model)
    between = find_between(read.workdir, read.name, ends, seeds, executor)
    if published:  # before anything is trained
        find_published(published, target, between.b.base_model)
    designer = Designer(between, read.workdir)
    made = designer.make(_find_factors(between, factors, join), runs)
    command = _command(read.workdir, read.name, ends, on, factors, join)
    if runs is None:
        return describe_plan(made, between, read.workdir, command)
    if made.missing > runs:
        raise InputError(
            f"the design takes {made.missing} new runs, and {runs} are allowed",
            key="--runs",
            remedy=f"give --runs {made.missing}, or fewer factors with --join or --factors",
        )
    reporter = progress or Reporter.of_caller()
    folder = checked_workdir(read.workdir)
    run_design(made.plan, folder, reporter, tracking_uri, f"{command} --runs {runs}")
    inquiry = Inquiry(made, between, target, folder, equivalence, published)
    return inquiry.answer(command, formats)


def _check_question(others: int, equivalence: float) -> None:
    """Raises:
    InputError: not one thing to compare a row with, or a margin below 0.
    """
    if others != 1:
        raise InputError(
            "name two rows, or one row with a preset or another work directory", key="why"
        )
    if not 0 <= equivalence <= 100:
        raise InputError(
            f"{equivalence:g} is no number of points from 0 to 100", key="--equivalence"
        )


def _find_factors(between: Between, only: Sequence[str], join: Sequence[str]) -> list[Factor]:
    """Return the factors of a design.

    Raises:
        InputError: the rows do not differ, or a name is none of their factors.
    """
    differing = find_factors(between.a, between.b, same_steps=between.same_steps)
    found = choose_factors(differing, only, join)
    if not found:
        raise InputError(
            f'"{between.a.label}" and "{between.b.label}" have the same settings',
            key="why",
            remedy="name another work directory with --against to compare runs of equal settings",
        )
    return found


@dataclass(frozen=True)
class Inquiry:
    """A design that was run, and what is asked about it.

    Attributes:
        target: what rows are compared by.
        equivalence: points; less is no difference that matters.
        published: "FILE.csv:MODEL", the number that the second row repeats; or empty.
    """

    made: Made
    between: Between
    target: Target
    folder: Path
    equivalence: float
    published: str

    def answer(self, command: str, formats: Sequence[str]) -> Answer:
        """Return the answer, and write its report."""
        report = self.folder / "reports" / slug(self.made.plan.experiment.name)
        seeds = len(self.between.seeds)
        found, notes = self._explain(_level(report, seeds))
        if self.published:
            base_model = self.between.b.base_model
            notes.append(compare_with_published(self.published, found, base_model))
        data = {**as_data(found), "notes": notes, "level": found.level}
        lines = answer_lines(found, notes)
        if formats:
            write(
                document(found, command, notes),
                report,
                formats,
                extra={},
                data={"why": data},
            )
            _remember_seeds(report, seeds)
            lines.append(f"report: {report}")
        return Answer("\n".join(lines), data, data["factors"])

    def _explain(self, level: float) -> tuple[Explanation, list[str]]:
        """Return the shares, of factors that are joined until each row has a score, and notes on
        them.

        Raises:
            InputError: one of the two rows has no score.
        """
        made = self.made
        factors = made.factors
        design = made.design
        notes = list(made.notes)
        comparison = read_comparison(self.folder, made.plan.experiment.name)
        significance = Significance(comparison)
        labels = self._labels(factors, design)
        rows = DesignRows(comparison, significance, self.target, labels)
        while rows.lacking:
            factors, note = self._join_lacking(factors, rows.lacking)
            design = Design(len(factors))
            notes = [note]
            labels = self._labels(factors, design)
            rows = DesignRows(comparison, significance, self.target, labels)
        lost = describe_lost_seeds(rows.rows.values())
        if lost:
            count = len(rows.seeds)
            notes.append(f"{lost}: the shares are of the {count} seeds that all rows have.")
        described = [(factor.name, factor.describe()) for factor in factors]
        ends = (self.between.a.label, self.between.b.label)
        found = explain(
            rows,
            design,
            described,
            ends,
            self.target,
            equivalence=self.equivalence,
            level=level,
        )
        return found, notes

    def _labels(self, factors: Sequence[Factor], design: Design) -> dict[Subset, str]:
        """Return the labels of a design's rows; empty where such a row was not made."""
        labels = self.made.labels
        groups = [factor.parts for factor in factors]
        found = {}
        for subset in design.subsets:
            found[subset] = labels.get(parts_of(groups, subset), "")
        return found

    def _join_lacking(
        self, factors: Sequence[Factor], lacking: Mapping[Subset, str]
    ) -> tuple[list[Factor], str]:
        """Return the factors after those whose rows have no score were joined, and a note on it."""
        reason = next(iter(lacking.values()))
        count = len(factors)
        between = [subset for subset in lacking if 0 < len(subset) < count]
        if not between:
            message = f"a row cannot be judged on {self.target.title}: {reason}"
            raise InputError(message, key="why")
        joined, names = join_impossible(factors, between)
        return joined, (
            f"Counted together, since rows between cannot be judged: {'; '.join(names)} ({reason})."
        )


def _level(report: Path, seeds: int) -> float:
    """Return the level of an analysis: each further one, with more seeds, has a part of 5 % for
    itself, so that all of them together stay below 10 %.
    """
    earlier = [number for number in _read_seeds(report) if number < seeds]
    return float(ALPHA / 2 ** len(earlier))


def _read_seeds(report: Path) -> list[int]:
    """Return the numbers of seeds that a design was analysed with; none where no file says so."""
    try:
        numbers = json.loads((report / _SEEDS).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(numbers, list):
        return []
    return [number for number in numbers if isinstance(number, int)]


def _remember_seeds(report: Path, seeds: int) -> None:
    numbers = sorted({*_read_seeds(report), seeds})
    text = json.dumps(numbers) + "\n"
    (report / _SEEDS).write_text(text, encoding="utf-8")


def _command(
    folder: Path,
    name: str,
    ends: Ends,
    on: str,
    factors: Sequence[str],
    join: Sequence[str],
) -> str:
    """Return the command of the answer, without --runs."""
    words = ["harness", "why", ends.a]
    words += ["--against-preset", ends.preset] if ends.preset else [ends.b]
    words += ["--workdir", str(folder), "--comparison", name]
    words += ["--on", on] if on else []
    words += [word for factor in factors for word in ("--factors", factor)]
    words += [word for text in join for word in ("--join", text)]
    return shlex.join(words)
