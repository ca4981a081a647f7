"""`harness verdict --scores` and `power --scores`: the same statistics on scores that others made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some, one_line
from harness.results.answer import Answer
from reports.document.table import number_text
from reports.read.score_tables import holds_results, read_scores
from reports.stats.clusters import Chance, chance
from reports.stats.estimate import Estimate, Floats
from reports.stats.influence import influence, of_mean
from reports.stats.simultaneous import ALPHA, EXPLORED, FEWEST_SEEDS, Rows, all_pairs, judge, may_be_best, moderate

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs


@dataclass(frozen=True)
class ScoreTable:
    """The mean over some tasks of each run of each row, in points, and what is known of its chance.

    Attributes:
        rows: labels, best first.
        tasks: over which the mean goes.
        left_out: tasks that not every row has.
        runs: of each row, (runs,) in points.
        influences: of each task, of each row: what each example adds to the mean, (runs, n); empty without examples.
        by_task: of each task, of each row, (runs,) in points.
    """

    rows: list[str]
    tasks: list[str]
    left_out: list[str]
    runs: list[Floats]
    influences: list[list[Floats]]
    by_task: dict[str, list[Floats]]

    @classmethod
    def of(cls, frame: pd.DataFrame, on: str, where: str) -> ScoreTable:
        """The table of the scores of one task, or of all.

        Raises:
            InputError: no such task, or a run lacks a task or an example that others have.
        """
        tasks, every = sorted(frame["task"].unique()), frame["row"].nunique()
        if on and on not in tasks:
            raise InputError(f"--on {on}: not known{nearest(on, tasks)}; tasks: {join_some(tasks, 12)}")
        known = frame.groupby("task")["row"].nunique()
        some = [on] if on else [task for task in tasks if known[task] == every]
        if not some:
            raise InputError(f"{where}: no task has scores of all {every} rows; name one with --on")
        frame = frame[frame["task"].isin(some)]
        by_run = frame.pivot_table(index=["row", "seed"], columns=["task", "example"], values="score", sort=False)
        values = by_run.to_numpy()
        lacking = np.isnan(values)
        for place in np.flatnonzero(lacking.any(axis=1)):
            (row, seed), (task, example) = list(by_run.index)[place], list(by_run.columns)[lacking[place].argmax()]
            who = f"row {row}, seed {seed}" if seed else f"row {row}"
            what = ", ".join(f"{kind} {name}" for kind, name in (("task", task), ("example", example)) if name)
            raise InputError(f"{where}: {who}: no score of {what}")
        of_column = by_run.columns.get_level_values("task").to_numpy()
        plain = frame["target"].isna()
        scale = 100.0 if frame["score"][plain].abs().max() <= 1 else 1.0
        gold = frame.groupby(["task", "example"], sort=False)[["target", "metric"]].first().reindex(by_run.columns)
        by_task = {}
        for task in some:
            here = of_column == task
            metric, target = gold["metric"][here].iloc[0], gold["target"][here].to_numpy()
            by_task[task] = [_moved(scores, target, metric, scale) for scores in values[:, here]]
        scored = {task: np.array([value for value, _ in runs]) for task, runs in by_task.items()}
        means = np.mean(list(scored.values()), axis=0)
        labels = by_run.index.get_level_values("row").to_numpy()
        rows = sorted(dict.fromkeys(labels), key=lambda row: -means[labels == row].mean())
        if len(rows) < 2:
            raise InputError(f'{where}: one row ("{rows[0]}"); expected two or more')
        moved = {task: np.stack([moved for _, moved in runs]) / len(some) for task, runs in by_task.items()}
        whole = any(of_task.shape[1] == 1 for of_task in moved.values())
        influences = [[of_task[labels == row] for row in rows] for of_task in moved.values() if not whole]
        left_out = [] if on else [task for task in tasks if task not in some]
        of_rows = {task: [value[labels == row] for row in rows] for task, value in scored.items()}
        return cls(rows, some, left_out, [means[labels == row] for row in rows], influences, of_rows)

    @property
    def title(self) -> str:
        """What the scores are of."""
        return f"the mean of {len(self.tasks)} tasks" if len(self.tasks) > 1 else self.tasks[0] or "the score"

    @property
    def seeded(self) -> bool:
        """Whether every row has enough runs to estimate their spread."""
        return min(map(len, self.runs)) >= FEWEST_SEEDS

    @property
    def family(self) -> str:
        count = len(self.rows)
        if count == 2:
            return "the only pair of rows"
        name = f"all {count * (count - 1) // 2:,} pairs of {count} rows"
        return f"{name} (false discovery rate)" if count >= EXPLORED else name

    @property
    def limits(self) -> str:
        """What is not known, and so is not counted."""
        said = []
        if not self.seeded:
            fewest = min(map(len, self.runs))
            runs = "one run" if fewest == 1 else f"{fewest} runs"
            said.append(f"some rows have only {runs}, so this holds for these runs and not for other seeds")
        if not self.influences:
            said.append("scores of single examples are not known, so this holds for these test sets alone")
        if self.left_out:
            said.append(f"left out, as not every row has them: {join_some(self.left_out, 4)}")
        return "; ".join(said)

    @cached_property
    def known(self) -> Rows | None:
        """Means with the variances by seeds and examples; None where neither is known."""
        count = len(self.rows)
        if not self.seeded and not self.influences:
            return None
        variance, freedom = np.zeros(count), np.full(count, np.inf)
        spread = np.array([runs.var(ddof=1) if len(runs) > 1 else 0.0 for runs in self.runs])
        if self.seeded and (some := np.flatnonzero(spread)).size:
            counts = np.array([len(self.runs[i]) for i in some])
            moderated, freedom[some] = moderate(spread[some], counts)
            variance[some] = moderated / counts
        zero = np.zeros((count, count))
        examples = chance([(rows, None) for rows in self.influences]) if self.influences else None
        if examples is not None and not self.seeded:  # nothing else holds what seeds and examples do together
            examples = Chance(examples.by_examples, examples.by_texts, np.zeros(count))
        return Rows(np.array([runs.mean() for runs in self.runs]), variance, freedom,
                    examples or Chance(zero, zero, np.zeros(count)))  # fmt: skip

    @cached_property
    def differences(self) -> dict[tuple[int, int], Estimate]:
        """(i, j) with i < j -> row i minus row j in points, all pairs judged as one family; empty if nothing is."""
        if self.known is None:
            return {}
        pairs = all_pairs(len(self.rows))
        found = judge(self.known, pairs, explore=len(self.rows) >= EXPLORED)
        return {(int(i), int(j)): estimate for (i, j), estimate in zip(pairs, found, strict=True)}

    @property
    def candidates(self) -> list[str]:
        """The rows that may be the best, at 95 %."""
        if self.known is None:
            return self.rows
        return [row for row, p in zip(self.rows, may_be_best(self.known), strict=True) if p > ALPHA]

    def place(self, label: str) -> int:
        """The place of a row.

        Raises:
            InputError: no such row.
        """
        if label not in self.rows:
            raise InputError(f'no row "{label}"{nearest(label, self.rows)}; rows: {join_some(self.rows, 12)}')
        return self.rows.index(label)


def verdict_on_scores(
    source: str | Path | pd.DataFrame, a: str = "", b: str = "", *, on: str = "", equivalence: float = 0.5
) -> Answer:
    """As `reports.decide.verdict_answer.verdict`, on scores that others made (`reports.read.score_tables`).

    >>> import pandas as pd
    >>> scores = {"new": [81.2, 81.9, 81.4, 81.6], "old": [79.9, 80.3, 80.1, 80.2]}
    >>> lines = [(row, n, score) for row, runs in scores.items() for n, score in enumerate(runs)]
    >>> harness.verdict(pd.DataFrame(lines, columns=["row", "seed", "score"]), "new", "old").data["verdict"]
    'better'
    """
    table = ScoreTable.of(read_scores(source), on, _name(source))
    places = [(table.place(a), table.place(b))] if a else list(all_pairs(len(table.rows)).tolist())
    if a == b and a:
        raise InputError(f'"{one_line(a)}" is one row: name two')
    pairs = [_pair(table, i, j, equivalence) for i, j in places]
    text = pairs[0]["text"] if a else "\n".join(_overview(table, pairs))
    return Answer(text, pairs[0] if a else pairs, pairs)


def design_of_scores(source: str | Path | pd.DataFrame, on: str = "") -> tuple[str, int, float, float, int]:
    """What `power` simulates: title, rows, standard deviation over seeds and of a difference over examples, examples.

    Raises:
        InputError: fewer than three runs of a row.
    """
    table = ScoreTable.of(read_scores(source), on, _name(source))
    if not table.seeded or table.known is None:
        raise InputError(f"{_name(source)}: a row has fewer than {FEWEST_SEEDS} runs; give --sd")
    freedom = sum(len(runs) - 1 for runs in table.runs)
    variance = sum(float(runs.var(ddof=1)) * (len(runs) - 1) for runs in table.runs) / freedom
    i, j = all_pairs(len(table.rows)).T
    by_examples = float(np.median(table.known.examples.between(i, j))) ** 0.5
    count = sum(rows[0].shape[1] for rows in table.influences)
    return table.title, len(table.rows), variance**0.5, by_examples, count


def is_score_table(source: object) -> TypeIs[str | Path | pd.DataFrame]:
    """Whether scores that others made are meant: a frame, a file, or a folder of another tool's results."""
    if isinstance(source, str | Path):
        path = Path(source)
        is_workdir = any((path / name).is_dir() for name in ("runs", "comparisons"))
        return path.is_file() or (path.is_dir() and not is_workdir and holds_results(path))
    return hasattr(source, "columns")


def _moved(scores: Floats, target: Floats, metric: str, scale: float) -> tuple[float, Floats]:
    """The score of a run on a task in points, and what each example does to it: of a mean or, with gold values, of a
    correlation. n / (n - 1) makes the variance of a mean the usual one."""
    n = len(scores)
    if np.isnan(target).any():
        value, moved = of_mean(scale * scores)
    else:
        value, moved = influence(metric or "spearman", target, scores)
        value, moved = 100 * value, 100 * moved
    return value, moved * np.sqrt(n / max(n - 1, 1))


def _name(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else "frame"


def _pair(table: ScoreTable, i: int, j: int, equivalence: float) -> dict[str, Any]:
    estimate = table.differences.get((min(i, j), max(i, j)))
    means = [float(table.runs[place].mean()) for place in (i, j)]
    a, b = table.rows[i], table.rows[j]
    data: dict[str, Any] = {"a": a, "b": b, "on": table.title, "mean_a": means[0], "mean_b": means[1],
                            "seeds_a": len(table.runs[i]), "seeds_b": len(table.runs[j]),
                            "difference": means[0] - means[1]}  # fmt: skip
    numbers = f"{number_text(means[0], 2)} against {number_text(means[1], 2)}"
    if estimate is None:
        text = (
            f"{a} and {b} cannot be judged on {table.title}: {numbers}. Neither several runs of each row nor scores "
            "of single examples are known, and a difference says nothing without its chance."
        )
        return {**data, "verdict": "not judged", "low": None, "high": None, "p": None, "family": "", "text": text}
    low, high = (estimate.low, estimate.high) if i < j else (-estimate.high, -estimate.low)
    if -equivalence <= low and high <= equivalence:
        verdict, start = "no difference that matters", f"{a} and {b} differ by less than {equivalence:g} points"
    elif estimate.p > ALPHA:
        verdict, start = "cannot tell yet", f"Whether {a} or {b} is better cannot be decided yet"
    else:
        verdict = "better" if data["difference"] > 0 else "worse"
        start = f"{a} is {verdict} than {b}"
    signed = [number_text(x, 2, signed=True) for x in (data["difference"], low, high)]
    p = "p < 0.001" if estimate.p < 1e-3 else f"p = {estimate.p:.3f}"
    text = (
        f"{start} on {table.title}: {numbers}, {signed[0]} points [{signed[1]}, {signed[2]}] ({data['seeds_a']} and "
        f"{data['seeds_b']} runs); {p}, corrected for {table.family}."
    )
    text += f" Note: {table.limits}." if table.limits else ""
    return {**data, "verdict": verdict, "low": low, "high": high, "p": estimate.p, "family": table.family, "text": text}


def _overview(table: ScoreTable, pairs: list[dict[str, Any]]) -> list[str]:
    lines = [f"{table.title}, in points"]
    wide, left_out = max(map(len, table.rows)), join_some(table.left_out, 4)
    for row, runs in zip(table.rows, table.runs, strict=True):
        spread = f" ± {runs.std(ddof=1):.2f} over {len(runs)} runs" if len(runs) > 1 else ""
        lines.append(one_line(f"  {row.ljust(wide)}  {runs.mean():6.2f}{spread}"))
    for pair in pairs if table.differences else ():
        numbers = [number_text(pair[key], 2, signed=True) for key in ("difference", "low", "high")]
        p = "p < 0.001" if pair["p"] < 1e-3 else f"p = {pair['p']:.3f}"
        what = f"  {pair['a']} against {pair['b']}: {numbers[0]} [{numbers[1]}, {numbers[2]}], {p}: {pair['verdict']}"
        lines.append(one_line(what))
    if not table.differences:
        lines.append("No difference can be judged: neither several runs of a row nor scores of examples are known.")
        return [*lines, *([f"Left out, as not every row has them: {left_out}."] if left_out else [])]
    lines.append(f"corrected for {table.family}; may be the best (95 %): {one_line(', '.join(table.candidates))}")
    return [*lines, f"Note: {table.limits}."] if table.limits else lines
