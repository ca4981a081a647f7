"""`harness compare --until decided`: seeds are added where a decision is open, in an order that is
fixed beforehand.

After each round of runs an interim analysis reads the records and says which rows stay in
contention; these get one more seed each. An analysis depends on the records so far alone, so the
same command after a crash repeats the same analyses and resumes. They are part of the comparison's
file: the verdicts of its report are corrected for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from harness.errors import InputError
from harness.results.comparison import ComparisonFile, ListedAnalysis, SeedsAdded
from harness.runs.experiment import Experiment
from harness.runs.plan import Plan
from harness.runs.rows import Row
from harness.seeds import MOST_SEEDS

FIRST = 3  # seeds at the first analysis: two say next to nothing about their spread

Key = tuple[str, str]  # base model and label of a row


@dataclass(frozen=True)
class Until:
    """When to stop adding seeds.

        >>> Until(most=8).equivalence
        0.5

    Attributes:
        most: seeds of a row, those of the experiment included. The level of every analysis depends
            on it.
        equivalence: points; smaller differences do not matter.
    """

    most: int = 15
    equivalence: float = 0.5


@dataclass(frozen=True)
class Analysis:
    """The result of an interim analysis.

    Attributes:
        contending: the rows that get another seed.
        rows: the state of each row: label, base model, state and why.
        by: what rows were compared by; empty where nothing can be compared.
    """

    contending: frozenset[Key]
    rows: tuple[dict[str, Any], ...] = ()
    by: str = ""


Analyse = Callable[[Path, str], Analysis]
"""(work directory, comparison) -> the analysis of its records so far, under the analyses that its
file names.
"""


def check_until(until: Until, experiment: Experiment) -> None:
    """Raises:
    InputError: it does not suit the experiment.
    """
    first = max(len(experiment.seeds), FIRST)
    by_seed = []
    for entry in experiment.methods:
        if entry.config.get("model_by_seed"):
            by_seed.append(entry.label)
    if by_seed:
        raise InputError(
            f"--until: no model for further seeds of {', '.join(by_seed)}", key="--until"
        )
    if experiment.blocks:
        raise InputError(
            "--until: adds seeds that all rows share; this file has blocks", key="--until"
        )
    if experiment.vary:
        streams = ", ".join(experiment.vary)
        raise InputError(
            f"--until: compares rows by whole seeds; this file varies {streams} alone",
            key="--until",
            remedy="leave out the key vary",
        )
    if not 0 <= until.equivalence <= 100:
        raise InputError(
            f"--equivalence {until.equivalence:g}: expected a number of points from 0 to 100",
            key="--equivalence",
        )
    if until.most > MOST_SEEDS:
        message = f"--max-seeds {until.most}: expected at most {MOST_SEEDS:,}"
        raise InputError(message, key="--max-seeds")
    if until.most < first:
        raise InputError(
            f"--max-seeds {until.most}: the first analysis takes {first}", key="--max-seeds"
        )


@dataclass
class MoreSeeds:
    """The course of a comparison that adds seeds.

    Args:
        own: seeds of the experiment.
        analyse: decides which rows get another seed; `rule` says how.

    Attributes:
        since: place of a job -> the first analysis that includes its run, from 1.
    """

    until: Until
    own: Sequence[int]
    analyse: Analyse
    rule: str
    analyses: list[ListedAnalysis] = field(default_factory=list)
    ended: Literal["", "decided", "seeds"] = ""
    since: dict[tuple[str, str, int], int] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """In the order in which every row gets them: those of the experiment, then the integers
        after the largest.
        """
        largest = max(self.own)
        missing = self.until.most - len(self.own)
        return [*self.own, *range(largest + 1, largest + 1 + missing)]

    @property
    def first(self) -> int:
        """Seeds of a row at the first analysis."""
        return max(FIRST, len(self.own))

    def check_earlier(self, name: str, stored: ComparisonFile | None) -> None:
        """Refuse other seeds than those of an earlier call, which its stored file names.

        Raises:
            InputError: they differ.
        """
        earlier = stored.until if stored is not None else None
        if earlier is None or not earlier.analyses:
            return
        planned = (list(earlier.seeds), earlier.first)
        if planned != (self.seeds, self.first):
            raise InputError(
                f"--until: this comparison was analysed with at most {earlier.most} seeds, "
                f"and not {self.until.most}, or with others",
                key="--until",
                remedy=f'give it another name (--set name="{name}-2"), all runs are reused',
            )

    def begin(self, plan: Plan) -> Plan:
        """The plan of the first analysis."""
        counts = {_key(row): self.first for row in plan.rows}
        return self._with_seeds(plan, counts)

    def describe(self) -> SeedsAdded:
        """Return the state as the comparison's file has it."""
        return SeedsAdded(
            kind="decided",
            rule=self.rule,
            most=self.until.most,
            equivalence=self.until.equivalence,
            first=self.first,
            seeds=tuple(self.seeds),
            analyses=tuple(self.analyses),
            ended=self.ended,
        )

    def open_analysis(self) -> None:
        """All runs of the next analysis have ended: the comparison's file has to name it before it
        is made.
        """
        seeds = self.first + len(self.analyses)
        self.analyses.append(ListedAnalysis(seeds=seeds))

    def close_analysis(self, plan: Plan, workdir: Path) -> Plan | None:
        """Make the analysis; the plan of the next round, None at the end."""
        analysis = self.analyse(workdir, plan.experiment.name)
        made = {"by": analysis.by, "rows": analysis.rows}
        last = self.analyses[-1]
        self.analyses[-1] = last.model_copy(update=made)
        keys = [(job.spec.base_model, job.row) for job in plan.jobs]
        counts = Counter(keys)
        number = self.first + len(self.analyses)
        more = self._with_seeds(
            plan, counts | Counter({key: number for key in counts if key in analysis.contending})
        )
        if len(more.jobs) == len(plan.jobs):  # no row is open, or no seed enters those that are
            reached = number > self.until.most and bool(analysis.contending)
            self.ended = "seeds" if reached else "decided"
        return None if self.ended else more

    def summary(self) -> str:
        """One line about the last analysis."""
        last = self.analyses[-1]
        texts = []
        for row in last.rows or ():
            texts.append(f"{row['row']}: {row['state']}")
        rows = "; ".join(texts) or "nothing to compare"
        number = len(self.analyses)
        line = f"interim analysis {number}, {last.seeds} seeds: {rows}"
        if self.ended:
            return f"{line} ({_ENDINGS[self.ended]})"
        return line

    def _with_seeds(self, plan: Plan, counts: Mapping[Key, int]) -> Plan:
        """The plan in which every row has its first so many seeds of the order."""
        rows = []
        for row in plan.rows:
            rows.append(
                replace(row, seeds=dict.fromkeys(self.seeds[: counts[_key(row)]], row.blocks))
            )
        more = replace(plan, rows=rows)
        for job in more.jobs:
            self.since.setdefault(job.place, len(self.analyses) + 1)
        return more


_ENDINGS = {
    "decided": "no decision is open that more seeds would settle",
    "seeds": "every row has its last seed",
}


def _key(row: Row) -> Key:
    return row.start_model, row.label
