"""Rows of several senders in one ranking: a comparison, archives of `harness pack`, and scores of
examples by the contract of `reports.read.score_tables`.

Every row is judged on the examples of the comparison, by its statistics. A row that lacks a task or
the scores of its examples is shown apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.errors import InputError
from harness.files.tables import is_table
from harness.results.elsewhere import MANIFEST, open_workdir
from harness.results.facts import Facts
from harness.results.record import Record
from harness.results.store import RunFolder, comparison_files
from reports.joined.senders import Sender, read_sender, sender_of_lines
from reports.load import RecordedResults, RecordedRow, read_comparison
from reports.read.examples import Examples
from reports.read.score_tables import read_scores
from reports.results import ResultRow, Results, base_name, find_start
from reports.scores.score_table import ScoredRun
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.verdicts import Ranking
from reports.targets import Measure, Target

if TYPE_CHECKING:
    import pandas as pd

_ONE_RANKING = "all"
_GOLD = 1e-6  # gold scores of one test set differ by no more
AS_THE_OTHERS, NOT_KNOWN = "as the comparison", "not known"


@dataclass(frozen=True)
class JoinedRow:
    """A row with its origin.

    Attributes:
        conditions: how it was made, against the rows of the comparison.
        lacks: why it is not ranked; "" where it is.
        score: its mean in points where it is not ranked; None where it has none.
    """

    row: ResultRow
    sender: Sender
    conditions: str = AS_THE_OTHERS
    lacks: str = ""
    score: float | None = None


@dataclass
class JoinedResults(Results):
    """Results whose examples were collected from several sources."""

    collected: Mapping[str, Sequence[Examples]] = field(default_factory=dict)
    known: Mapping[str, Facts] = field(default_factory=dict)

    @property
    def examples(self) -> Mapping[str, Sequence[Examples]]:
        return self.collected

    @property
    def facts(self) -> Mapping[str, Facts]:
        return self.known


@dataclass
class Joined:
    """All rows, what they are compared by, and sentences on what was left out.

    Attributes:
        base_model: that of every row whose label names none.
    """

    target: Target
    rows: list[JoinedRow]
    examples: dict[str, list[Examples]]
    facts: Mapping[str, Facts]
    base_model: str = ""
    notes: list[str] = field(default_factory=list)

    def rank(self) -> Ranking:
        """Return the ranking of the rows that lack nothing."""
        ranked = [one.row for one in self.rows if not one.lacks]
        results = JoinedResults("joined", ranked, collected=self.examples, known=self.facts)
        significance = Significance(results, targets=[self.target])
        return Ranking(ranked, significance, self.target)


class Joiner:
    """Adds what others sent to the rows of a comparison."""

    def __init__(self, base: RecordedResults) -> None:
        """Raises:
        InputError: no run of the comparison saved the scores of its examples, or it is a rehearsal.
        """
        self.base = base
        self.usual_model = _most_common_model(base)
        self.target = _find_target(base)
        self.joined = Joined(self.target, [], dict(base.examples), base.facts, self.usual_model)
        self.specs = [record.spec for record in base.records]
        self.first: dict[Measure, Examples] = {}
        for measure in self.target.measures:
            self.first[measure] = self._find_first(measure)
        self.protocols: dict[tuple[str, ...], set[str]] = {}
        for record in base.records:
            for score in record.scores:
                key = (score.task, score.source, score.split, score.metric)
                self.protocols.setdefault(key, set()).add(score.comparable)
        for row in base.rows:
            if row.rehearsal:
                message = f'row "{row.label}" is of a rehearsal, whose scores are no results'
                raise InputError(message, file=base.name)
            if not row.added and row.finished:
                sender = Sender(date=_last_day(row.finished))
                known = _name_start(row, base.rows)
                self._add_recorded(known, self._label(row), sender, AS_THE_OTHERS)

    def _label(self, row: RecordedRow) -> str:
        """Return the label of a row, with its base model where most rows have another."""
        if row.base_model in ("", self.usual_model):
            return row.label
        return f"{row.label}, {base_name(row.base_model)}"

    def _find_first(self, measure: Measure) -> Examples:
        for every in self.base.examples.values():
            for examples in every:
                if examples.score == measure.score:
                    return examples
        raise InputError(f"no run saved its examples of {measure.task}", file=self.base.name)

    def add(self, source: Path) -> None:
        """Add the rows of an archive, a work directory, or a file or folder of scores.

        Raises:
            InputError: nothing in it can be shown, or it is not what it says.
        """
        before = len(self.joined.rows)
        is_folder_of_runs = source.is_dir() and (source / "runs").is_dir()
        if is_folder_of_runs or (source.is_file() and not is_table(source)):
            self._add_archive(source)
        else:
            self._add_scores(source)
        if len(self.joined.rows) == before:
            raise InputError("holds no row that is not here already", file=source)

    def _add_archive(self, source: Path) -> None:
        with open_workdir(source) as folder:
            sender = read_sender(folder / MANIFEST, source)
            names = list(comparison_files(folder))
            if not names:
                raise InputError("an archive without a comparison", file=source)
            for name in names:
                results = read_comparison(folder, name)
                _check_files(results, source)
                self.joined.examples = {**results.examples, **self.joined.examples}
                self.joined.notes += results.warnings
                for row in results.rows:
                    known = _name_start(row, results.rows)
                    self._add_row_of_archive(known, self._label(row), sender, source)

    def _add_row_of_archive(
        self, row: RecordedRow, label: str, sender: Sender, source: Path
    ) -> None:
        if row.added or row.source or not row.finished:
            return
        if row.rehearsal:
            message = f'row "{label}" is of a rehearsal, whose scores are no results'
            raise InputError(message, file=source)
        if self._are_here(row.finished, source):
            note = f"{label} of {source.name} is left out: its runs are here already."
            self.joined.notes.append(note)
            return
        if not sender.date:
            sender = replace(sender, date=_last_day(row.finished))
        conditions = self._compare_conditions(row.finished)
        self._add_recorded(row, label, sender, conditions, source)

    def _are_here(self, runs: Sequence[Record], source: Path) -> bool:
        """True if all these runs are here already.

        Raises:
            InputError: a run that is here has another score there.
        """
        known = {}
        for one in self.joined.rows:
            for run in one.row.runs:
                known[run.id] = run
        for run in runs:
            if run.id not in known:
                continue
            for measure in self.target.measures:
                if measure.value(run) != measure.value(known[run.id]):
                    raise InputError(
                        f"run {run.id} has another score of {measure.task} than the same run here",
                        file=source,
                        remedy="repeat it by `harness reproduce` to see which one is right",
                    )
        return all(run.id in known for run in runs)

    def _add_recorded(
        self,
        row: RecordedRow,
        label: str,
        sender: Sender,
        conditions: str,
        source: Path | None = None,
    ) -> None:
        shown = self._name(label, sender, source)
        joined = replace(row, label=shown, base_model="", group=_ONE_RANKING)
        lacks = self._find_lacks(row.finished)
        score = None
        if lacks:
            score = self.target.value(row)
        one = JoinedRow(joined, sender, conditions, lacks, score)
        self.joined.rows.append(one)

    def _name(self, label: str, sender: Sender, source: Path | None) -> str:
        """Return a label that no other row has."""
        taken = {one.row.label for one in self.joined.rows}
        origin = sender.name
        if not origin and source is not None:
            origin = source.name
        name = label
        number = 1
        while name in taken:
            number += 1
            if number == 2 and origin:
                name = f"{label} ({origin})"
            else:
                name = f"{label} ({origin} {number})".replace("( ", "(")
        return name

    def _find_lacks(self, runs: Sequence[Record]) -> str:
        """Return why runs cannot be ranked; "" where they can."""
        for measure in self.target.measures:
            first = self.first[measure]
            for run in runs:
                every = self.joined.examples.get(run.id, ())
                own = [one for one in every if one.score == first.score]
                protocols = set()
                for score in run.scores:
                    key = (score.task, score.source, score.split, score.metric)
                    if key == measure.score:
                        protocols.add(score.comparable)
                if not protocols and not own:
                    return f"no score of {measure.task}"
                if not protocols <= self.protocols.get(measure.score, protocols):
                    return f"{measure.task} was scored under another protocol"
                if not own:
                    return f"no scores of the examples of {measure.task}"
                if own[0].digest != first.digest:
                    return f"{measure.task} was scored on other examples"
        return ""

    def _compare_conditions(self, runs: Sequence[Record]) -> str:
        """Return what sets runs apart from the comparison's: base model, text, steps, dev set,
        precision, and the version of the code that all runs share.
        """
        models = set()
        texts = set()
        dev = set()
        precisions: set[str | None] = {None}  # of rows that are not trained
        versions = set()
        for spec in self.specs:
            models.add(spec.model)
            precisions.add(spec.precision)
            versions.add(spec.numerics)
            if spec.corpus:
                texts.add(spec.corpus["sha256"])
            if spec.dev:
                dev.add(spec.dev["sha256"])
        steps = {record.training.get("planned_steps") for record in self.base.records}
        found: dict[str, None] = {}
        for run in runs:
            spec = run.spec
            if spec.model not in models:
                found[f"base model {spec.base_model}"] = None
            if spec.corpus and spec.corpus["sha256"] not in texts:
                found["other training text"] = None
            planned = run.training.get("planned_steps")
            if planned and planned not in steps:
                found[f"{planned:,} training steps"] = None
            if spec.dev and spec.dev["sha256"] not in dev:
                found["another dev set"] = None
            if spec.precision not in precisions:
                found[f"trained in {spec.precision}"] = None
            if spec.numerics not in versions:
                found["another version of the training code"] = None
        return ", ".join(found) or AS_THE_OTHERS

    def _add_scores(self, source: Path) -> None:
        frame = read_scores(source)
        for note in frame.attrs["notes"]:
            self.joined.notes.append(f"{source.name}: {note}.")
        for label, part in frame.groupby("row", sort=False):
            sender = sender_of_lines(part)
            name = self._name(str(label), sender, source)
            self._add_scored(name, part, sender, source)

    def _add_scored(self, label: str, part: pd.DataFrame, sender: Sender, source: Path) -> None:
        runs = []
        seeds = list(part.groupby("seed", sort=False))
        lacks: dict[str, None] = {}
        for number, (_, lines) in enumerate(seeds, 1):
            run = ScoredRun(f"{source}:{label}:{number}", number)
            runs.append(run)
            self.joined.examples[run.id] = []
            for measure in self.target.measures:
                first = self.first[measure]
                own = lines[lines["task"] == measure.task]
                lack = _describe_lacking(own, measure, first)
                if lack:
                    lacks[lack] = None
                    continue
                self.joined.examples[run.id].append(_align(own, first))
        if 1 < len(seeds) < FEWEST_SEEDS:
            lacks[f"{len(seeds)} runs: their spread is not known"] = None
        row = ResultRow(
            label,
            "",
            tuple(runs),
            deterministic=len(seeds) == 1,
            group=_ONE_RANKING,
            files=(str(source),),
        )
        conditions = NOT_KNOWN
        if len(seeds) == 1:
            conditions += "; one run"
        score = None
        if lacks:
            score = _mean_of_tasks(part, self.target)
        joined = JoinedRow(row, sender, conditions, "; ".join(lacks), score)
        self.joined.rows.append(joined)


def _find_target(base: RecordedResults) -> Target:
    """Return what the report of the comparison goes by.

    Raises:
        InputError: its rows have no scores by which they could be compared.
    """
    significance = Significance(base)
    target = significance.first
    if target is None:
        raise InputError("no run has scores by which rows could be compared", file=base.name)
    if why := significance.unknown(target):
        raise InputError(f"on {target.title} nothing can be judged: {why}", file=base.name)
    return target


def join(base: RecordedResults, sources: Sequence[Path]) -> Joined:
    """Return the rows of a comparison and those that others sent.

    Raises:
        InputError: a source that cannot be shown, with its file.
    """
    joiner = Joiner(base)
    for source in sources:
        joiner.add(source)
    return joiner.joined


def _name_start(row: RecordedRow, rows: Sequence[RecordedRow]) -> RecordedRow:
    """Return a row that names the run of its untrained start: rows that are joined have no base
    model by which it would be found.
    """
    start, _ = find_start(row, rows)
    if start is None:
        return replace(row, start="")
    return replace(row, start=start.runs[0].id)


def _last_day(runs: Sequence[Record]) -> str:
    last = max(run.finished for run in runs)
    return last[:10]


def _check_files(results: RecordedResults, source: Path) -> None:
    """Raises:
    InputError: the scores of a run are not as its record says.
    """
    for record in results.records:
        folder = RunFolder(results.workdir, record.id)
        if folder.is_damaged(record):
            message = f"run {record.id}: its scores are not as its record says"
            raise InputError(message, file=source)


def _most_common_model(results: RecordedResults) -> str:
    """Return the base model that most rows of a comparison have."""
    counts = Counter(row.base_model for row in results.rows if not row.added and row.base_model)
    return max(counts, key=counts.__getitem__, default="")


def _describe_lacking(own: pd.DataFrame, measure: Measure, first: Examples) -> str:
    """Return what lines lack to be ranked by a measure; "" where they lack nothing."""
    task = measure.task
    if own.empty:
        return f"no score of {task}"
    metric = measure.metric.removeprefix("cosine_")  # the name that tasks of mteb give it
    if stated := _other_value(own, "metric", metric):
        return f"{task} was scored by {stated}, not by {metric}"
    if stated := _other_value(own, "split", measure.split):
        return f"{task} was scored on the split {stated}, not on {measure.split}"
    if _other_value(own, "lower_is_better", "false"):
        return f"of its scores of {task} lower ones are better"
    given = set(own["example"])
    if given == {""}:
        return f"no scores of the examples of {task}"
    has_gold = bool(own["target"].notna().any())
    needs_none = bool(np.isnan(first.target).all())
    if has_gold == needs_none:
        what = "no gold values"
        if has_gold:
            what = "gold values beside scores that need none"
        return f"{task}: {what}, so these are scores of another kind"
    count = len(first.outcome)
    expected = {str(number) for number in range(1, count + 1)}
    missing = len(expected - given)
    if missing and given <= expected:
        return f"{task}: {missing:,} of {count:,} examples have no score"
    return ""


def _other_value(own: pd.DataFrame, column: str, expected: str) -> str:
    """Return what lines state in a column other than what is expected; "" where they do not."""
    stated = set(own[column].str.lower())
    others = stated - {"", expected}
    return ", ".join(sorted(others))


def _align(own: pd.DataFrame, first: Examples) -> Examples:
    """Return the scores of a run as examples of the comparison.

    Raises:
        InputError: an example is not one of the task, or its gold score is another one.
    """
    count = len(first.outcome)
    outcome = np.empty(count)
    numbers = {}
    for place in range(count):
        numbers[str(place + 1)] = place
    for _, line in own.iterrows():
        example = line["example"]
        if example not in numbers:
            raise InputError(
                f"{line['task']} has the examples 1 to {count:,}, as `harness examples` numbers "
                f"them, not {example!r}",
                file=line["place"],
                key='column "example"',
            )
        place = numbers[example]
        gold = first.target[place]
        given = line["target"]
        margin = _GOLD * max(1.0, abs(gold))
        if not np.isnan(given) and not abs(given - gold) <= margin:
            raise InputError(
                f"{line['task']}, example {example}: the gold value is {gold:g}, not {given:g}",
                file=line["place"],
                key='column "target"',
            )
        outcome[place] = line["score"]
    return replace(first, outcome=outcome)


def _mean_of_tasks(part: pd.DataFrame, target: Target) -> float | None:
    """Return a row's mean in points by its scores of whole tasks; None where one has none."""
    means = []
    for measure in target.measures:
        is_task = part["task"] == measure.task
        is_whole = part["example"] == ""
        own = part[is_task & is_whole]
        metric = measure.metric.removeprefix("cosine_")
        if own.empty or _other_value(own, "metric", metric):
            return None
        means.append(own["score"].mean())
    return 100 * float(np.mean(means))
