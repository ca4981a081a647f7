"""Scores that others made, as rows with the same statistics as those of a work directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.results.record import Record
from harness.results.spec import RunSpec
from reports.read.comparison_runs import Comparison, ResultRow
from reports.read.score_tables import holds_results, read_scores
from reports.stats.estimate import Floats
from reports.stats.example_scores import ExampleScores, Scored
from reports.stats.influence import influence, of_mean
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.targets import Measure, Target
from reports.stats.verdicts import Question

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs


Moved = dict[
    str, list[tuple[float, Floats]]
]  # of each task, of each run: its score and its influences


class ScoreStatistics(Significance):
    """What seeds and examples say, as far as they are known: `note` says what is not, and so is not
    counted.
    """

    def unknown(self, target: Target) -> str:
        return ""


def is_score_table(source: object) -> TypeIs[str | Path | pd.DataFrame]:
    """Whether scores that others made are meant: a frame, a file, or a folder of another tool's
    results.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        is_workdir = any((path / name).is_dir() for name in ("runs", "comparisons"))
        return path.is_file() or (path.is_dir() and not is_workdir and holds_results(path))
    return hasattr(source, "columns")


def question_of_scores(
    source: str | Path | pd.DataFrame, on: str = "", pair: Sequence[str] = ()
) -> Question:
    """The rows of a table, compared by one task or by the mean of all that every row has.

    With fewer than three runs of a row no seed counts: each row is the mean of its runs, judged by
    the examples alone.

    Args:
        pair: two rows that alone are compared, to which runs may still be added.

    Raises:
        InputError: no such row or task, or a run lacks a task or an example that others have.
    """
    name, frame = str(source) if isinstance(source, str | Path) else "frame", read_scores(source)
    labels = list(frame["row"].unique())
    for label in pair:
        if label not in labels:
            raise InputError(
                f'no row "{label}"{nearest(label, labels)}; rows: {join_some(labels, 12)}'
            )
    frame = frame[frame["row"].isin(pair or labels)]
    tasks, left_out = _choose_tasks(frame, on, name)
    frame = frame[frame["task"].isin(tasks)]
    by_run = frame.pivot_table(
        index=["row", "seed"], columns=["task", "example"], values="score", sort=False
    )
    values = by_run.to_numpy()
    _check_complete(by_run, name)
    plain = frame["score"][frame["target"].isna()]
    scale = 1.0 if plain.abs().max() <= 1 else 0.01
    gold = (
        frame.groupby(["task", "example"], sort=False)[["target", "metric"]]
        .first()
        .reindex(by_run.columns)
    )
    moved: Moved = {}
    for task in tasks:
        here = by_run.columns.get_level_values("task") == task
        metric, target = gold["metric"][here].iloc[0], gold["target"][here].to_numpy()
        moved[task] = [_moved(scores, target, metric, scale) for scores in values[:, here]]
    runs_of: dict[str, list[int]] = {}
    for place, label in enumerate(by_run.index.get_level_values("row")):
        runs_of.setdefault(label, []).append(place)
    if len(runs_of) < 2:
        raise InputError(f'{name}: one row ("{labels[0]}"); expected two or more')
    examples = all(len(one[0][1]) > 1 for one in moved.values())
    fewest = min(map(len, runs_of.values()))
    joined = examples and fewest < FEWEST_SEEDS and (fewest == 1 or not pair)
    runs = [[places] if joined else [[place] for place in places] for places in runs_of.values()]
    rows, scored = _as_rows(
        name, dict(zip(runs_of, runs, strict=True)), moved, examples=examples, seeded=not joined
    )
    comparison = Comparison(name, Path(), tuple(rows))
    given = ExampleScores(comparison, {measure.score: runs for measure, runs in scored.items()})
    significance = ScoreStatistics(comparison, examples=given)
    title = f"the mean of {len(tasks)} tasks" if len(tasks) > 1 else tasks[0] or "the score"
    significance.targets = [Target("scores", title, title, tuple(scored))]
    significance.note = _describe_unknown(fewest, examples, left_out)
    return Question(comparison, significance.targets[0], significance)


def _as_rows(
    name: str, runs: dict[str, list[list[int]]], moved: Moved, *, examples: bool, seeded: bool
) -> tuple[list[ResultRow], dict[Measure, dict[str, Scored]]]:
    """The rows with a record for each run, and of each task the score of each record.

    Args:
        runs: label -> of each run the places in `moved` that it is the mean of.
    """
    rows, scored = [], {Measure(task, "scores", "", ""): dict[str, Scored]() for task in moved}
    for label, of_row in runs.items():
        records = []
        for seed, places in enumerate(of_row, 1):
            spec = RunSpec(
                method="", config={"row": label}, base_model="", seed=seed, deterministic=not seeded
            )
            for measure, by_run in scored.items():
                values, influences = zip(
                    *(moved[measure.task][place] for place in places), strict=True
                )
                by_example = np.mean(influences, axis=0)
                by_run[spec.id] = Scored(
                    float(np.mean(values)), by_example if examples else by_example[:0], b""
                )
            records.append(
                Record(
                    id=spec.id,
                    spec=spec,
                    comparison=name,
                    status="finished",
                    row=label,
                    supervision="unsupervised",
                )
            )
        rows.append(ResultRow(label, "", tuple(records)))
    return rows, scored


def _choose_tasks(frame: pd.DataFrame, on: str, name: str) -> tuple[list[str], list[str]]:
    """The tasks that the rows are compared by, and those that not every row has."""
    tasks, rows = sorted(frame["task"].unique()), frame["row"].nunique()
    if on and on not in tasks:
        raise InputError(f"--on {on}: not known{nearest(on, tasks)}; tasks: {join_some(tasks, 12)}")
    known = frame.groupby("task")["row"].nunique()
    some = [on] if on else [task for task in tasks if known[task] == rows]
    if not some:
        raise InputError(f"{name}: no task has scores of all {rows} rows; name one with --on")
    return some, [] if on else [task for task in tasks if task not in some]


def _check_complete(by_run: pd.DataFrame, name: str) -> None:
    lacking = by_run.isna().to_numpy()
    for place in np.flatnonzero(lacking.any(axis=1)):
        (row, seed), (task, example) = (
            list(by_run.index)[place],
            list(by_run.columns)[lacking[place].argmax()],
        )
        who = f"row {row}, seed {seed}" if seed else f"row {row}"
        what = ", ".join(
            f"{kind} {one}" for kind, one in (("task", task), ("example", example)) if one
        )
        raise InputError(f"{name}: {who}: no score of {what}")


def _moved(scores: Floats, target: Floats, metric: str, scale: float) -> tuple[float, Floats]:
    """The score of a run on a task, between -1 and 1, and what each example does to it: of a mean
    or, with gold values, of a correlation. n / (n - 1) makes the variance of a mean the usual one.
    """
    n = len(scores)
    gold = not np.isnan(target).any()
    value, moved = (
        influence(metric or "spearman", target, scores) if gold else of_mean(scale * scores)
    )
    return value, moved * np.sqrt(n / max(n - 1, 1))


def _describe_unknown(fewest: int, examples: bool, left_out: list[str]) -> str:
    said = []
    if fewest < FEWEST_SEEDS:
        runs = "one run" if fewest == 1 else f"{fewest} runs"
        said.append(
            f"some rows have only {runs}, so this holds for these runs and not for other seeds"
        )
    if not examples:
        said.append(
            "scores of single examples are not known, so this holds for these test sets alone"
        )
    if left_out:
        said.append(f"left out, as not every row has them: {join_some(left_out, 4)}")
    return "; ".join(said)
