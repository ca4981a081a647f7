"""Scores that others made, as rows with the same statistics as those of a work directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.results.record import Score
from reports.read.score_tables import Source, holds_results, read_scores
from reports.results import ResultRow, Results
from reports.stats.estimate import Floats
from reports.stats.example_scores import (
    ExampleScores,
    Scored,
    is_within_bounds,
    share_at_bounds,
)
from reports.stats.influence import influence, of_mean
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.verdicts import Question
from reports.targets import Measure, Target

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs


Moved = dict[str, list[Scored]]
"""Task -> for each run its score and the influence of each example on it."""


@dataclass(frozen=True)
class ScoredRun:
    """A run of which only the scores are known."""

    id: str
    seed: int
    status: str = "finished"
    scores: tuple[Score, ...] = ()
    missing: Mapping[str, object] = field(default_factory=dict)
    evaluation: Mapping[str, object] = field(default_factory=dict)

    @property
    def random_seed(self) -> int:
        return self.seed


def is_score_table(source: object) -> TypeIs[Source]:
    """True if scores that others made are meant: a frame, a file, a folder of them, or a list."""
    if isinstance(source, list | tuple):
        return True
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_file():
            return True
        is_workdir = any((path / name).is_dir() for name in ("runs", "comparisons"))
        return path.is_dir() and not is_workdir and holds_results(path)
    return hasattr(source, "columns")


def refuse_with_scores(**options: Any) -> None:
    """Check that no option is given that only a comparison has, where scores of others are judged.

    Raises:
        InputError: one is given.
    """
    for name, value in options.items():
        if value:
            key = f"--{name.replace('_', '-')}"
            raise InputError("goes with a comparison, not with scores of others", key=key)


def name_of(source: Source) -> str:
    """Return what a source of scores is called in messages and titles."""
    if isinstance(source, str | Path):
        return str(source)
    if isinstance(source, list | tuple):
        return ", ".join(name_of(one) for one in source)
    return "frame"


def question_of_scores(
    source: Source,
    on: str = "",
    pair: Sequence[str] = (),
    *,
    complete: bool = False,
) -> Question:
    """Return the rows of a table, compared by one task or by the mean of all that every row has.

    Where examples are known, a row with fewer than three runs is the mean of its runs, judged by
    the examples alone; without examples it cannot be judged.

    Args:
        pair: two rows that alone are compared, to which runs may still be added.
        complete: a task that not every row has is an error; without it, such tasks are left out.

    Raises:
        InputError: no such row or task, or a run lacks a task or an example that others have.
    """
    name = name_of(source)
    frame = read_scores(source)
    notes: list[str] = frame.attrs["notes"]
    labels = list(frame["row"].unique())
    _check_labels(pair, labels)
    frame = frame[frame["row"].isin(pair or labels)]
    tasks, left_out = _choose_tasks(frame, on, name)
    if complete:
        _check_all_tasks(frame, [*tasks, *left_out], name)
    frame = frame[frame["task"].isin(tasks)]
    _check_mean(frame, tasks, name)

    by_run = frame.pivot_table(
        index=["row", "seed"],
        columns=["task", "example"],
        values="score",
        sort=False,
    )
    _check_complete(by_run, name)
    moved = _influences(frame, by_run, tasks)
    runs_of: dict[str, list[int]] = {}
    for place, label in enumerate(by_run.index.get_level_values("row")):
        runs_of.setdefault(label, []).append(place)
    if len(runs_of) < 2:
        raise InputError(f'one row ("{labels[0]}"); expected two or more', file=name)

    has_examples = all(len(runs[0].influence) > 1 for runs in moved.values())
    few = [label for label, runs in runs_of.items() if len(runs) < FEWEST_SEEDS]
    joined = set()
    if has_examples:
        joined = {label for label in few if len(runs_of[label]) == 1 or not pair}
    files = {}
    for row, part in frame.groupby("row", sort=False):
        files[str(row)] = tuple(part["file"].unique())
    rows, scored = _make_rows(runs_of, moved, files, joined=joined, has_examples=has_examples)
    unknown = _describe_unknown(few, runs_of, has_examples, left_out)
    results = Results(name, rows, note="; ".join([*unknown, *notes]))
    return _ask(results, tasks, scored)


def _check_labels(pair: Sequence[str], labels: Sequence[str]) -> None:
    """Raises:
    InputError: a row that is named is not there.
    """
    for label in pair:
        if label not in labels:
            other = nearest(label, list(labels))
            raise InputError(f'no row "{label}"{other}; rows: {join_some(labels, 12)}', key=label)


def _ask(
    results: Results,
    tasks: Sequence[str],
    scored: Mapping[Measure, dict[str, Scored]],
) -> Question:
    """Return the question which row is better in the mean of the tasks."""
    if len(tasks) > 1:
        title = f"the mean of {len(tasks)} tasks"
    else:
        title = tasks[0] or "the score"
    target = Target("scores", title, title, tuple(scored))
    by_score = {measure.score: runs for measure, runs in scored.items()}
    given = ExampleScores(results, given=by_score)
    significance = Significance(results, examples=given, targets=[target])
    return Question(results, target, significance)


def _influences(frame: pd.DataFrame, by_run: pd.DataFrame, tasks: list[str]) -> Moved:
    """Return score and influences of each run on each task; runs are the lines of `by_run`."""
    gold = frame.groupby(["task", "example"], sort=False)[["target", "metric"]].first()
    gold = gold.reindex(by_run.columns)
    values = by_run.to_numpy()
    moved: Moved = {}
    for task in tasks:
        here = by_run.columns.get_level_values("task") == task
        metric = gold["metric"][here].iloc[0]
        target = gold["target"][here].to_numpy()
        of_runs = values[:, here]
        moved[task] = [_score_and_influence(scores, target, metric) for scores in of_runs]
    return moved


def _make_rows(
    runs_of: dict[str, list[int]],
    moved: Moved,
    files: Mapping[str, tuple[str, ...]],
    *,
    joined: set[str],
    has_examples: bool,
) -> tuple[list[ResultRow], dict[Measure, dict[str, Scored]]]:
    """Return the rows with their runs, and of each task the score of each run.

    Args:
        runs_of: label -> the places of its runs in `moved`.
        joined: labels of the rows whose runs are one, their mean.
    """
    rows = []
    scored = {}
    for task in moved:
        scored[Measure(task, "scores", "", "")] = dict[str, Scored]()
    for label, places in runs_of.items():
        if label in joined:
            groups = [places]
        else:
            groups = [[place] for place in places]
        made = []
        for seed, group in enumerate(groups, 1):
            run = ScoredRun(f"{label} {seed}", seed)
            made.append(run)
            for measure, by_run in scored.items():
                members = [moved[measure.task][place] for place in group]
                by_run[run.id] = _average(members, has_examples=has_examples)
        row = ResultRow(
            label,
            "",
            tuple(made),
            deterministic=label in joined,
            files=files[label],
        )
        rows.append(row)
    return rows, scored


def _average(members: Sequence[Scored], *, has_examples: bool) -> Scored:
    """Return the mean of some runs as one, without its single score where that is no example."""
    value = float(np.mean([one.value for one in members]))
    by_example = np.mean([one.influence for one in members], axis=0)
    if not has_examples:
        by_example = by_example[:0]
    return Scored(
        value,
        by_example,
        is_share=all(one.is_share for one in members),
        at_bounds=float(np.mean([one.at_bounds for one in members])),
    )


def _check_mean(frame: pd.DataFrame, tasks: list[str], name: str) -> None:
    """Check that the mean of the tasks means something.

    Raises:
        InputError: one of several tasks has scores without bounds, or another direction.
    """
    unbounded = frame[frame["scale"] == "inf"]["task"].unique()
    if len(tasks) > 1 and len(unbounded):
        message = (
            f'scores of task "{unbounded[0]}" have no bounds, so a mean over tasks has no unit'
        )
        raise InputError(message, file=name, remedy="name one task with --on")
    lower = frame["lower_is_better"] == "true"
    if lower.any() and not lower.all():
        one = frame[lower]["task"].iloc[0]
        other = frame[~lower]["task"].iloc[0]
        message = f'lower is better on task "{one}" and higher on "{other}", so they have no mean'
        raise InputError(message, file=name, remedy="name one task with --on")


def _choose_tasks(frame: pd.DataFrame, on: str, name: str) -> tuple[list[str], list[str]]:
    """Return the tasks that the rows are compared by, and those that not every row has."""
    tasks = sorted(frame["task"].unique())
    if on:
        if on not in tasks:
            message = f"not known{nearest(on, tasks)}; tasks: {join_some(tasks, 12)}"
            raise InputError(message, key=f"--on {on}")
        return [on], []
    rows = frame["row"].nunique()
    rows_of = frame.groupby("task")["row"].nunique()
    shared = [task for task in tasks if rows_of[task] == rows]
    if not shared:
        message = f"no task has scores of all {rows} rows"
        raise InputError(message, file=name, remedy="name one with --on")
    return shared, [task for task in tasks if task not in shared]


def _check_all_tasks(frame: pd.DataFrame, tasks: Sequence[str], name: str) -> None:
    """Check that every row has all tasks.

    Raises:
        InputError: a row lacks some.
    """
    for label, part in frame.groupby("row", sort=False):
        scored = set(part["task"])
        lacking = [task for task in tasks if task not in scored]
        if lacking:
            message = f"row {label}: no score of {join_some(lacking, 12)}"
            raise InputError(message, file=name, key=str(label))


def _check_complete(by_run: pd.DataFrame, name: str) -> None:
    """Check that every run has a score of every task and example.

    Raises:
        InputError: one is missing.
    """
    lacking = by_run.isna().to_numpy()
    for place in np.flatnonzero(lacking.any(axis=1)):
        row, seed = by_run.index.to_list()[place]
        task, example = by_run.columns.to_list()[lacking[place].argmax()]
        if seed:
            who = f"row {row}, seed {seed}"
        else:
            who = f"row {row}"
        parts = [("task", task), ("example", example)]
        what = ", ".join(f"{kind} {one}" for kind, one in parts if one)
        raise InputError(f"{who}: no score of {what}", file=name)


def _score_and_influence(scores: Floats, target: Floats, metric: str) -> Scored:
    """Return the score of a run on a task, and what each example does to it.

    It is a mean or, with gold values, a correlation. n / (n - 1) makes the variance of a mean the
    usual one.
    """
    n = len(scores)
    mean = bool(np.isnan(target).any())
    if mean:
        value, moved = of_mean(scores)
    else:
        value, moved = influence(metric or "spearman", target, scores)
    widened = moved * np.sqrt(n / max(n - 1, 1))
    return Scored(
        value,
        widened,
        is_share=mean and is_within_bounds(scores),
        at_bounds=share_at_bounds(scores),
    )


def _describe_unknown(
    few: list[str],
    runs_of: dict[str, list[int]],
    has_examples: bool,
    left_out: list[str],
) -> list[str]:
    """Return what is not known of seeds and examples, a phrase each."""
    parts = []
    if few:
        parts.append(_describe_few(few, runs_of, has_examples=has_examples))
    if not has_examples and len(few) < len(runs_of):
        parts.append(
            "scores of single examples are not known, so this holds for these test sets alone"
        )
    if has_examples:
        parts.append(
            "examples count as independent: where they share texts, intervals are too narrow"
        )
    if left_out:
        parts.append(f"left out, as not every row has them: {join_some(left_out, 4)}")
    return parts


def _describe_few(few: list[str], runs_of: dict[str, list[int]], *, has_examples: bool) -> str:
    """Return which rows have fewer than three runs, and what follows from that."""
    counts = [len(runs_of[label]) for label in few]
    if max(counts) == 1:
        runs = "one run"
    elif min(counts) == 2:
        runs = "two runs"
    else:
        runs = "one run or two"
    if len(few) == len(runs_of):
        who = "all rows have"
    elif len(few) == 1:
        who = f"{few[0]} has"
    else:
        who = f"{join_some(few, 4)} have"
    if not has_examples:
        return f"{who} only {runs}, of which nothing can be concluded without examples"
    if max(counts) > 1:
        runs += ", which are averaged"
    return f"{who} only {runs}, so this holds for these runs and not for other seeds"
