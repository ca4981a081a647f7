"""`harness.why`: which settings make the difference between two rows."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings, check_known, executor_settings
from harness.files.locks import comparison_lock
from harness.machine.progress import Reporter
from harness.results.answer import Answer
from harness.results.store import RunFolder, checked_workdir, read_comparison_file
from harness.runs.between import (
    MOST,
    Between,
    Factor,
    choose_factors,
    find_factors,
    join_impossible,
    rows_before_budget,
)
from harness.runs.execute import find_finished
from harness.runs.experiment import Entry, Experiment, read_experiment
from harness.runs.grid import Grid
from harness.runs.plan import Plan, forget_loaded, make_plan
from harness.runs.progress import Progress
from harness.runs.rows import Row, apply_schedule, resolve_rows
from harness.runs.runner import Runner
from harness.tracking import Tracker
from reports.decide.question import comparison_of, question_of
from reports.document.blocks import slug
from reports.live import page
from reports.load import read_comparison
from reports.results import base_name
from reports.stats.significance import Significance
from reports.stats.simultaneous import ALPHA, FEWEST_SEEDS
from reports.targets import Target
from reports.why.document import answer_lines, as_data, document
from reports.why.equal_runs import compare_equal_runs
from reports.why.explanation import DesignRows, Explanation, explain, parts_of, unions
from reports.why.published import compare_with_published
from reports.why.shares import Design, Subset, draw_orders
from reports.with_report import WithReport
from reports.write.report_folder import FORMATS, check_formats, write

COMPLETE = 4  # factors up to which all rows between are made

Parts = frozenset[str]  # the groups of settings that a row has from the first row


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
    factors: Sequence[str] = (),
    join: Sequence[str] = (),
    runs: int | None = None,
    seeds: int | None = None,
    equivalence: float = 0.5,
    executor: str | Mapping[str, Any] | ExecutorSettings | None = None,
    tracked: bool = True,
    tracking_uri: str | None = None,
    formats: Sequence[str] = FORMATS,
    progress: Reporter | None = None,
) -> Answer:
    """Split the difference between row `a` and row `b` into shares of the settings in which they
    differ.

    Rows between the two are trained as an ordinary comparison: each has some settings of `a` and
    the others of `b`. The share of a setting is what its change adds in the mean over all orders of
    changes (its Shapley value); the shares sum to the difference. Runs that exist are reused.

        >>> answer = harness.why(work, "mean", "cls", runs=0, formats=[], tracked=False)
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
        join: names joined by "+", that are changed together.
        runs: how many new runs may be made. Left out, nothing is trained: the answer lists the rows
            between, how many of their runs exist, and what the others cost.
        seeds: of every row; by default those that both rows have.
        equivalence: points; less is no difference that matters.
        executor, tracked, tracking_uri, formats, progress: as `harness.compare` has them.

    Returns:
        In `data`: "difference", "factors" (of each the share with its interval, and what it adds
        when it is changed first and last), "interaction", "smallest_change", "rows".

    Raises:
        InputError: no such row, rows that do not differ, too few seeds, or more new runs than
            `runs` allows.
        RunError: a stop was requested; the same call resumes.
    """
    check_formats(formats)
    if sum(map(bool, (b, against_preset, against))) != 1:
        raise InputError(
            "name two rows, or one row with a preset or another work directory", key="why"
        )
    if equivalence < 0:
        raise InputError(f"{equivalence:g} is no number of points", key="--equivalence")
    read = comparison_of(found, comparison)
    folder, name = read.workdir, read.name
    if against:
        other = comparison_of(Path(against), name)
        lines, data = compare_equal_runs(read, other, a)
        return Answer("\n".join(lines), data, data)
    target = question_of(read, on).target
    forget_loaded()
    between = _find_rows(folder, name, a, b, against_preset, base_model, seeds, executor)
    same_steps = bool(between.plan.experiment.budget.kind)
    differing = find_factors(between.a, between.b, same_steps=same_steps)
    found_factors = choose_factors(differing, factors, join)
    if not found_factors:
        raise InputError(
            f"the rows {between.a.label} and {between.b.label} have the same settings",
            key="why",
            remedy="name another work directory with --against to compare runs of equal settings",
        )
    made = _make_design(between, found_factors, folder, runs)
    command = _command(folder, name, between, on, factors, join, against_preset)
    if runs is None:
        return _describe_plan(made, between, folder, command)
    if made.missing > runs:
        raise InputError(
            f"the design takes {made.missing} new runs, and {runs} are allowed",
            key="--runs",
            remedy=f"give --runs {made.missing}, or fewer factors with --join or --factors",
        )
    reporter = progress or Reporter.of_caller()
    tracking = tracking_uri if tracked else "none"
    _run(made.plan, checked_workdir(folder), reporter, tracking, f"{command} --runs {runs}")
    return _answer(made, between, target, folder, equivalence, command, published, formats)


@dataclass(frozen=True)
class Made:
    """A design before it is run.

    Attributes:
        groups: the settings of each factor, as they were asked for; `factors` as they are after
            those whose rows cannot be made were joined.
        notes: what a reader has to know of how it was made.
        missing: runs that do not exist yet.
    """

    factors: list[Factor]
    design: Design
    rows: dict[Subset, Row]
    plan: Plan
    missing: int
    notes: tuple[str, ...]

    @property
    def labels(self) -> dict[Parts, str]:
        """The settings that a row has from the first row -> its label."""
        groups = [factor.parts for factor in self.factors]
        return {parts_of(groups, subset): row.label for subset, row in self.rows.items()}


def _find_rows(
    folder: Path,
    name: str,
    a: str,
    b: str,
    preset: str,
    base_model: str,
    seeds: int | None,
    executor: str | Mapping[str, Any] | ExecutorSettings | None,
) -> Between:
    """Return the two rows of a comparison, or one and a preset.

    Raises:
        InputError: no such row or preset, rows of different blocks, too few seeds in common.
    """
    file = read_comparison_file(folder, name)
    if file is None:
        raise InputError("no comparison of that name has a file", file=folder, key=name)
    where = f'comparison "{name}"'
    experiment = read_experiment(file.experiment)
    settings = executor_settings(executor, experiment.executor)
    experiment = experiment.model_copy(update={"executor": settings})
    check_known(settings, (entry.method for entry in experiment.methods))
    plan = make_plan(experiment, where)
    rows = rows_before_budget(plan, where)
    first = _find_row(rows, a, base_model)
    second = _preset_row(experiment, preset, first) if preset else _find_row(rows, b, base_model)
    if first.key == second.key and first.corpus == second.corpus:
        raise InputError(f'"{first.label}" and "{second.label}" have the same settings', key="why")
    blocks = [one for one in first.blocks if one in second.blocks] or list(first.blocks)
    if experiment.blocks and not preset and not set(first.blocks) & set(second.blocks):
        raise InputError(
            f'"{first.label}" and "{second.label}" are in different blocks of the file', key="why"
        )
    first = Row(**{**_fields(first), "seeds": dict.fromkeys(first.seeds, tuple(blocks))})
    return Between(plan, first, second, _choose_seeds(first, second, seeds))


def _fields(row: Row) -> dict[str, Any]:
    return {key: getattr(row, key) for key in Row.__dataclass_fields__}


def _find_row(rows: Sequence[Row], label: str, base_model: str) -> Row:
    from harness.config import nearest

    named = [row for row in rows if row.label == label]
    if not named:
        labels = list(dict.fromkeys(row.label for row in rows))
        known = ", ".join(labels)
        raise InputError(f'no row "{label}"{nearest(label, labels)}; rows: {known}', key="why")
    wanted = [row for row in named if base_model in ("", row.base_model, base_name(row.base_model))]
    if len(wanted) != 1:
        bases = ", ".join(base_name(row.base_model) for row in named)
        raise InputError(
            f'row "{label}" has these base models: {bases}',
            key="why",
            remedy="name one with --base-model",
        )
    return wanted[0]


def _preset_row(experiment: Experiment, text: str, a: Row) -> Row:
    """Return the row that a preset would be in the comparison of row `a`.

    Raises:
        InputError: it is not METHOD:PRESET, or there is no such method or preset.
    """
    method, colon, preset = text.partition(":")
    if not colon or not preset:
        raise InputError(f'expected METHOD:PRESET, not "{text}"', key="--against-preset")
    entry = Entry(method=method, preset=preset, name=text, base_models=[a.base_model])
    alone = experiment.model_copy(
        update={"methods": [entry], "shared": {}, "blocks": {}, "baseline": "", "contrasts": []}
    )
    dev = experiment.dev
    every = getattr(a.config, "eval_every", None)
    if dev is not None and every is not None and a.instance.uses_dev:
        dev = dev.model_copy(update={"every": every})  # the comparison's, as all its rows have
    rows, _ = apply_schedule(resolve_rows(alone, "--against-preset"), dev)
    return rows[0]


def _choose_seeds(a: Row, b: Row, number: int | None) -> tuple[int, ...]:
    """Return the seeds of a design.

    Raises:
        InputError: fewer than three.
    """
    shared = tuple(seed for seed in a.seeds if seed in b.seeds)
    if a.instance.deterministic and b.instance.deterministic:
        return shared[:1]
    if number is not None:
        more = range(max(shared, default=0) + 1, max(shared, default=0) + 1 + number)
        shared = (*shared, *more)[:number]
    if len(shared) < FEWEST_SEEDS:
        raise InputError(
            f'"{a.label}" and "{b.label}" have {len(shared)} seeds in common; the spread of a share '
            f"needs {FEWEST_SEEDS}",
            key="why",
            remedy=f"give --seeds {FEWEST_SEEDS}",
        )
    return shared


def _make_design(
    between: Between, factors: Sequence[Factor], folder: Path, runs: int | None
) -> Made:
    """Return the design of some factors: all rows between, or those of so many orders as the new
    runs allow.
    """
    chosen, notes = list(factors), []
    rows, reasons = between.try_rows(chosen, unions([factor.parts for factor in chosen]))
    while reasons:
        some = next(iter(reasons.values()))
        chosen, joined = join_impossible(chosen, reasons)
        notes = [
            f"Changed together, since rows between cannot be made: {'; '.join(joined)} ({some})."
        ]
        rows, reasons = between.try_rows(chosen, unions([factor.parts for factor in chosen]))
    count = len(chosen)
    assert count <= MOST
    complete = _with_design(between, chosen, Design(count), rows, folder, tuple(notes))
    if count <= COMPLETE or (runs is not None and complete.missing <= runs):
        return complete
    best = None
    for pairs in range(1, math.factorial(count) // 2 + 1):
        design = Design(count, draw_orders(count, pairs))
        some_rows = {subset: rows[subset] for subset in design.subsets}
        made = _with_design(between, chosen, design, some_rows, folder, tuple(notes))
        if runs is not None and made.missing > runs and best is not None:
            break
        best = made
        if len(design.subsets) == 2**count or (runs is None and pairs == count):
            break
    assert best is not None
    return best


def _with_design(
    between: Between,
    factors: list[Factor],
    design: Design,
    rows: dict[Subset, Row],
    folder: Path,
    notes: tuple[str, ...],
) -> Made:
    plan = between.plan_of(rows)
    missing = len({job.id for job in plan.jobs if find_finished(job, folder) is None})
    return Made(factors, design, rows, plan, missing, notes)


def _describe_plan(made: Made, between: Between, folder: Path, command: str) -> Answer:
    """Return the rows between, how many runs exist, and what the others cost; nothing is trained."""
    jobs = {job.id: job for job in made.plan.jobs}
    seconds = [
        record.seconds
        for job in jobs.values()
        if (record := RunFolder(folder, job.id).read_if_sound()) is not None and record.seconds > 0
    ]
    cost = made.missing * float(np.mean(seconds)) if seconds else None
    lines = [
        f"{between.a.label} and {between.b.label} differ in {len(made.factors)} factors:",
        *(f"  {factor.describe()}" for factor in made.factors),
        *made.notes,
        f"{len(made.rows)} rows between them, {len(between.seeds)} seeds each: {len(jobs)} runs, of "
        f"which {len(jobs) - made.missing} exist",
        *(f"  {row.label}" for row in made.rows.values()),
    ]
    if made.design.orders:
        lines.append(f"These are the rows of {len(made.design.orders)} orders of the changes.")
    if cost is not None:
        lines.append(f"The {made.missing} new runs take about {_duration(cost)} one after another.")
    lines.append(f"Nothing was trained. To answer: {command} --runs {made.missing}")
    data: dict[str, Any] = {
        "a": between.a.label,
        "b": between.b.label,
        "factors": [
            {"factor": factor.name, "settings": factor.describe()} for factor in made.factors
        ],
        "rows": [row.label for row in made.rows.values()],
        "runs": len(jobs),
        "missing": made.missing,
        "seconds": cost,
    }
    return Answer("\n".join(lines), data, data["factors"])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _run(plan: Plan, folder: Path, reporter: Reporter, tracking: str | None, command: str) -> None:
    """Run the rows of a design as an ordinary comparison."""
    e = plan.experiment
    with comparison_lock(folder, e.name):
        tracker = None if tracking == "none" else Tracker(folder, e.name, tracking)
        executor = registry.load(registry.EXECUTORS, e.executor.name)(e.executor, folder)
        with reporter, closing(tracker) if tracker is not None else nullcontext():
            progress = Progress(folder, e.name, "comparison", e.title, executor, reporter, page)
            grid = Grid(plan, folder, progress, command_of=lambda job: command, tracker=tracker)
            Runner(folder, executor, progress).run(grid)


def _answer(
    made: Made,
    between: Between,
    target: Target,
    folder: Path,
    equivalence: float,
    command: str,
    published: str,
    formats: Sequence[str],
) -> Answer:
    """Return the answer of a design that was run, and write its report."""
    comparison = read_comparison(folder, made.plan.experiment.name)
    significance = Significance(comparison)
    report = folder / "reports" / slug(made.plan.experiment.name)
    level = _level(report, len(between.seeds))
    labels = (between.a.label, between.b.label)
    notes = list(made.notes)

    def explain_with(factors: Sequence[Factor], design: Design) -> Explanation:
        by_parts = made.labels
        groups = [factor.parts for factor in factors]
        names = {subset: by_parts.get(parts_of(groups, subset), "") for subset in design.subsets}
        rows = DesignRows(comparison, significance, target, names)
        if rows.lacking:
            raise _LackingError(rows.lacking)
        described = [(factor.name, factor.describe()) for factor in factors]
        return explain(
            rows, design, described, labels, target, equivalence=equivalence, level=level
        )

    factors, design = made.factors, made.design
    while True:
        try:
            found = explain_with(factors, design)
            break
        except _LackingError as error:
            lost = {subset: why for subset, why in error.lacking.items() if subset}
            lost = {subset: why for subset, why in lost.items() if len(subset) < len(factors)}
            reason = next(iter(error.lacking.values()))
            if not lost:
                raise InputError(
                    f"a row has no score on {target.title}: {reason}", key="why"
                ) from None
            factors, joined = join_impossible(factors, lost)
            design = Design(len(factors), ())
            notes = [
                f"Counted together, since rows between have no score: {'; '.join(joined)} ({reason})."
            ]
    if published:
        notes.append(compare_with_published(published, found, between.b.base_model))
    data = {**as_data(found), "notes": notes, "level": level}
    if formats:
        write(document(found, command, notes), report, formats, extra={}, data={"why": data})
        _remember_seeds(report, len(between.seeds))
    lines = answer_lines(found, notes)
    if formats:
        lines.append(f"report: {report}")
    return Answer("\n".join(lines), data, data["factors"])


class _LackingError(Exception):
    """Rows of a design have no score."""

    def __init__(self, lacking: Mapping[Subset, str]) -> None:
        super().__init__()
        self.lacking = lacking


_SEEDS = "analysed.json"


def _level(report: Path, seeds: int) -> float:
    """Return the level of an analysis: each further one, with more seeds, has a part of 5 % for
    itself, so that all of them together stay below 10 %.
    """
    earlier = [number for number in _analysed(report) if number < seeds]
    return float(ALPHA / 2 ** len(earlier))


def _analysed(report: Path) -> list[int]:
    try:
        numbers = json.loads((report / _SEEDS).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return (
        [number for number in numbers if isinstance(number, int)]
        if isinstance(numbers, list)
        else []
    )


def _remember_seeds(report: Path, seeds: int) -> None:
    numbers = sorted({*_analysed(report), seeds})
    (report / _SEEDS).write_text(json.dumps(numbers) + "\n", encoding="utf-8")


def _command(
    folder: Path,
    name: str,
    between: Between,
    on: str,
    factors: Sequence[str],
    join: Sequence[str],
    preset: str,
) -> str:
    """Return the command of the answer, without --runs."""
    words = ["harness", "why", between.a.label]
    words += ["--against-preset", preset] if preset else [between.b.label]
    words += ["--workdir", str(folder), "--comparison", name]
    words += ["--on", on] if on else []
    words += [word for factor in factors for word in ("--factors", factor)]
    words += [word for text in join for word in ("--join", text)]
    return shlex.join(words)
