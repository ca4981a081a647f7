"""The results of records: the runs of one comparison as the rows of a report, grouped by label and
base model, with their examples and curves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from harness.config import nearest
from harness.errors import InputError
from harness.results.comparison import ComparisonFile, ListedBlock
from harness.results.facts import Facts, facts_of
from harness.results.record import Record, Score
from harness.results.store import (
    RunFolder,
    comparison_files,
    read_comparison_file,
    read_records,
    read_sound_comparison_files,
)
from harness.seeds import PartSeed
from harness.tasks.mteb.benchmarks import MTEB_SUITES
from reports.read.examples import ExampleReader, Examples, LeftOut
from reports.read.method_cards import read_card
from reports.read.plan_followed import read_frozen_plan
from reports.results import (
    SUPERVISION,
    Encoding,
    InterimAnalyses,
    Key,
    ResultRow,
    Results,
    group_by_block,
)

ScoreName = tuple[str, str, str, str]  # task, source, metric, aggregation
RunScore = tuple[Record, Score]


@dataclass(frozen=True, eq=False)
class RecordedRow(ResultRow):
    """A row with the records of its runs."""

    runs: tuple[Record, ...]
    partial_seed_runs: tuple[Record, ...] = ()

    @classmethod
    def of_records(
        cls,
        label: str,
        base_model: str,
        records: Sequence[Record],
        partial_seed_runs: Sequence[Record] = (),
    ) -> Self:
        """Return the row of some records, of which the first says what they share."""
        first = records[0]
        finished = [record for record in records if record.status == "finished"]
        return cls(
            label,
            base_model,
            tuple(records),
            partial_seed_runs=tuple(partial_seed_runs),
            supervision=first.supervision,
            deterministic=first.spec.deterministic,
            rehearsal=any(record.rehearsal for record in records),
            encoding=_encoding_of(first),
            read_text=any(record.corpus is not None for record in finished),
        )

    @property
    def records(self) -> tuple[Record, ...]:
        return self.runs

    @property
    def finished(self) -> tuple[Record, ...]:
        return tuple(r for r in self.runs if r.status == "finished")

    @property
    def unfinished(self) -> tuple[Record, ...]:
        return tuple(r for r in self.runs if r.status != "finished")

    @property
    def unavailable(self) -> str:
        """What the row needs and is not available, so that nothing of it was tried; else empty."""
        if all(record.unavailable for record in self.records):
            return self.records[0].reason
        return ""

    @property
    def pooling(self) -> str | None:
        value = self.records[0].config.get("pooling")
        return value if isinstance(value, str) else None

    @cached_property
    def _index(self) -> dict[ScoreName, list[RunScore]]:
        by_score: dict[ScoreName, list[RunScore]] = {}
        for record in self.finished:
            met: set[ScoreName] = set()
            for s in record.scores:
                key = (s.task, s.source, s.metric, s.aggregation)
                if s.split != "dev" and key not in met:
                    met.add(key)
                    by_score.setdefault(key, []).append((record, s))
        return by_score

    def scores(
        self,
        task: str,
        source: str,
        metric: str,
        aggregation: str = "",
    ) -> list[RunScore]:
        """This score of every finished seed that has it, never of the dev split."""
        return list(self._index.get((task, source, metric, aggregation), ()))


def _encoding_of(record: Record) -> Encoding | None:
    """Return what of a configuration says how a text becomes a vector; None where nothing is
    pooled.
    """
    config = record.config
    pooling = config.get("pooling")
    if not isinstance(pooling, str) or pooling == "none":
        return None
    if pooling == "first_last_avg":
        layer = config.get("first_layer", 1)
    else:
        layer = 1
    return Encoding(pooling, layer, config.get("max_length"))


def deterministic(method: str) -> bool | None:
    """What a method's card says; None for a method that is not installed."""
    card = read_card(method)
    return None if card is None else bool(card.deterministic)


def describe_prompts(row: RecordedRow) -> str:
    """What a row did to the texts that it was scored on, for a footnote; empty if each text is read
    once, unchanged.
    """
    training = next((record.training for record in row.finished), {})
    parts = []
    if row.pooling and row.pooling.partition(":")[0] in ("echo", "echo_last"):
        parts.append("reads every text twice, and pools the second copy")
    if training.get("prompts"):
        texts: dict[str, None] = {}
        for record in row.finished:  # a list of prompts has one a seed
            used = []
            for key, prompt in record.training.get("prompts", {}).items():
                used.append(f'{key} "{prompt}"')
            texts[", ".join(used)] = None
        parts.append(f"scored with prompts before its texts: {', or '.join(texts)}")
        return "; ".join(parts)
    if default := training.get("default_prompt"):
        parts.append(f'scored with its default prompt "{default}" before all texts')
    if unused := training.get("unused_prompts"):
        keys = ", ".join(f'"{key}"' for key in unused)
        parts.append(f"its model has prompts of its own that were not used ({keys})")
    return "; ".join(parts)


def _read_interim_analyses(file: ComparisonFile) -> InterimAnalyses | None:
    """Return the interim analyses of a comparison; None if the seeds were fixed beforehand.

    Runs of a round that has not ended count as one more analysis.
    """
    until = file.until
    if until is None:
        return None
    since = {(run.base_model, run.row, run.seed): run.analysis for run in file.runs}
    seeds = [analysis.seeds for analysis in until.analyses]
    rows = [analysis.rows or () for analysis in until.analyses]
    while len(seeds) < max(since.values(), default=1):
        seeds.append(min(until.first + len(seeds), until.most))
        rows.append(())
    return InterimAnalyses(
        first=until.first,
        most=until.most,
        seeds=tuple(seeds),
        since=since,
        rows=tuple(rows),
        rule=until.rule,
        ended=until.ended,
        equivalence=until.equivalence,
    )


@dataclass
class RecordedResults(Results):
    """The results of records, with access to what lies next to these.

    Attributes:
        file: of the comparison; without runs, of rows that no comparison put together.
        title, description: heading and paragraph of the experiment file.
        parts: the blocks of its file, each with its own rows and tasks.
        superseded: runs of an older configuration of the same row, in no table.
        warnings: filled while examples and curves are read.
        left_out: examples that are left out; see `reports.records.overlap`.
        show_texts: its page may hold texts of all data sets, not of the embedded suite alone.
    """

    rows: tuple[RecordedRow, ...]
    workdir: Path = field(kw_only=True)
    file: ComparisonFile = field(default_factory=lambda: ComparisonFile(name="", runs=()))
    title: str = ""
    description: str = ""
    parts: tuple[RecordedResults, ...] = ()
    superseded: tuple[Record, ...] = ()
    warnings: list[str] = field(default_factory=list)
    left_out: Mapping[Key, LeftOut] = field(default_factory=dict)
    show_texts: bool = False

    @property
    def records(self) -> list[Record]:
        return [record for row in self.rows for record in row.records]

    @property
    def benchmarks(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """Those that have a name here, and those that the comparison takes from mteb."""
        return {**MTEB_SUITES, **self.file.benchmarks}

    @property
    def partial_seed_runs(self) -> list[Record]:
        """Runs with another seed in some streams alone."""
        return [record for row in self.rows for record in row.partial_seed_runs]

    @cached_property
    def blocks(self) -> dict[str, list[RecordedRow]]:
        """The rows that are compared with one another, by the name of their block."""
        return group_by_block(self.rows)

    @cached_property
    def training_logs(self) -> dict[tuple[str, str], list[tuple[int, list[dict[str, Any]]]]]:
        """Row key -> (seed, lines of its training log) of every row that has any."""
        logs = {}
        for row in self.rows:
            by_seed = []
            for record in row.records:
                lines = self._read(record, "curves", RunFolder.curves)
                if lines:
                    by_seed.append((record.seed, lines))
            if by_seed:
                logs[row.key] = by_seed
        return logs

    @cached_property
    def figure_data(self) -> dict[tuple[str, str], list[tuple[Record, dict[str, dict[str, Any]]]]]:
        """Row key -> (run, what it stored for figures by task) of every finished run that stored
        any.
        """
        data = {}
        for row in self.rows:
            of_row = []
            for record in row.finished:
                parts = self._read(record, "figures", RunFolder.figures)
                if parts:
                    of_row.append((record, parts))
            if of_row:
                data[row.key] = of_row
        return data

    @cached_property
    def examples(self) -> dict[str, list[Examples]]:
        """Record id -> what a finished run stored of its examples; runs on the same examples share
        all but outcomes.
        """
        found: dict[str, list[Examples]] = {}
        first: dict[tuple[Any, bytes], Examples] = {}
        reader = ExampleReader(self.left_out)
        finished = [record.id for record in self.records if record.status == "finished"]
        for run in dict.fromkeys(finished):
            try:
                every = reader.read(RunFolder(self.workdir, run))
            except (OSError, ValueError, KeyError, InputError) as error:
                self.warnings.append(
                    f"examples of run {run} are unreadable ({type(error).__name__})"
                )
                continue
            found[run] = []
            for one in every:
                same = first.setdefault((one.score, one.digest), one)
                found[run].append(replace(same, outcome=one.outcome))
        return found

    def _read(self, record: Record, what: str, read: Callable[[RunFolder], Any]) -> Any:
        """What a run stored; None (with a warning) when it is damaged."""
        try:
            return read(RunFolder(self.workdir, record.id))
        except InputError:
            self.warnings.append(f"{what} of run {record.id} are unreadable")
            return None

    @cached_property
    def facts(self) -> dict[str, Facts]:
        """What else is known of a task, by name, from the runs that saved it."""
        found: dict[str, Facts] = {}
        for runs in self.figure_data.values():
            for record, kept in runs:
                try:
                    found = {**facts_of(kept), **found}
                except (TypeError, AttributeError):
                    self.warnings.append(f"facts of the tasks of run {record.id} are unreadable")
        for task, _ in self.left_out:  # of the whole test data, of which a part is left
            if task in found:
                found[task] = replace(found[task], majority=None)
        return found


def options_of(record: Record) -> str:
    """Method and options of a run without its seed, as text: equal for the seeds of one row."""
    options = {key: value for key, value in record.config.items() if key != "seed"}
    return f"{record.method} {json.dumps(options, sort_keys=True, default=str)}"


def _data(record: Record) -> list[Any]:
    """Fingerprints of what was trained and selected on; a run that ended early may not know them."""
    return [(part or {}).get("sha256") for part in (record.corpus, record.dev)]


def _row(
    label: str,
    base_model: str,
    records: Iterable[Record],
) -> tuple[RecordedRow, list[Record]]:
    """The newest run of each seed in the newest configuration, and the runs that these replace."""
    newest_first = sorted(records, key=lambda r: (r.finished, r.started, r.id), reverse=True)
    model = next((r for r in newest_first if r.status == "finished"), newest_first[0])
    kept: dict[int, Record] = {}  # a `PartSeed` is another key than a seed of its number
    aside = []
    for record in newest_first:
        same_options = options_of(record) == options_of(model)
        same_data = record.status != "finished" or _data(record) == _data(model)
        if same_options and same_data and record.random_seed not in kept:
            kept[record.random_seed] = record
        else:
            aside.append(record)
    own = []
    held = []
    for seed in sorted(kept):
        if isinstance(seed, PartSeed):
            held.append(kept[seed])
        else:
            own.append(kept[seed])
    return RecordedRow.of_records(label, base_model, own or held[:1], held), aside


def _rows(
    records: Iterable[Record], file: ComparisonFile
) -> tuple[tuple[RecordedRow, ...], list[Record]]:
    """Records by label and base model, and those that a newer configuration replaces."""
    runs = file.runs_by_row
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        grouped.setdefault((record.row, record.base_model), []).append(record)
    rows = []
    aside = []
    for (label, base_model), members in grouped.items():
        row, old = _row(label, base_model, members)
        listed = []
        for record in row.records:
            key = (record.id, label)
            if key in runs:
                listed.append(runs[key])
        added = any(run.added for run in listed)
        start = next((run.start for run in listed if run.start), "")
        source = next((run.source for run in listed if run.source), "")
        rows.append(replace(row, added=added, start=start, source=source))
        aside += old
    rows = _assign_groups(rows)
    # Inside: the order of the experiment.
    rows.sort(key=lambda row: (row.block, SUPERVISION.index(row.supervision)))
    return tuple(rows), aside


def _assign_groups(rows: list[RecordedRow]) -> list[RecordedRow]:
    """Rows are compared within their base model. A model with one row, as a finished one, would
    have nothing to be
    compared with: it joins the rows of the only base model with several, or else the other such
    models.
    """
    count = Counter(row.base_model for row in rows)
    shared = [base for base, number in count.items() if number > 1]
    if len(shared) == len(count):
        return rows
    everywhere = len(shared) < 2
    grouped = []
    for row in rows:
        if everywhere:
            grouped.append(replace(row, group="all models"))
        elif count[row.base_model] == 1:
            grouped.append(replace(row, group="other models"))
        else:
            grouped.append(row)
    return grouped


def _read_block(
    workdir: Path,
    file: ComparisonFile,
    block: ListedBlock,
    records: Iterable[Record],
) -> RecordedResults:
    """Return one block of a comparison: its own runs alone, with the scores that it asks for."""
    listed = file.runs_by_row
    own = []
    for record in records:
        run = listed.get((record.id, record.row))
        if run is not None and block.name in run.blocks:
            own.append(record.limit_to(block.tasks))
    rows, _ = _rows(own, file)
    return RecordedResults(
        block.name,
        rows,
        workdir=workdir,
        file=file,
        title=block.title,
        description=block.description,
        **_read_plan(file),
    )


def _read_plan(file: ComparisonFile) -> dict[str, Any]:
    """Return the comparisons of rows that the experiment file plans."""
    experiment = file.experiment
    contrasts = []
    for one in experiment.get("contrasts") or ():
        contrasts.append((str(one["row"]), str(one["against"])))
    return {
        "baseline": str(experiment.get("baseline") or ""),
        "contrasts": tuple(contrasts),
        "primary": str(experiment.get("primary") or ""),
        "incumbent": str(experiment.get("incumbent") or ""),
    }


def read_comparison(workdir: Path, name: str) -> RecordedResults:
    """Read the records of a comparison. A record that cannot be read is left out, with a warning.

    Raises:
        InputError: the work directory holds no run of that name.
    """
    damaged: dict[str, str] = {}
    file = read_comparison_file(workdir, name)
    records = read_records(workdir, comparison=name, damaged=damaged)
    if not records:
        known = comparisons(workdir)
        if damaged and file is not None:
            if len(damaged) == 1:
                count = "1 record is"
            else:
                count = f"{len(damaged)} records are"
            text = f"{count} damaged, which the next `harness compare` makes again"
        elif known:
            text = f"known: {', '.join(known)}"
        else:
            text = "it holds no runs: run `harness compare` first"
        raise InputError(
            f'no runs of a comparison "{name}"{nearest(name, list(known))}; {text}', file=workdir
        )
    warnings = list(damaged.values())
    if file is None:  # of records that an evaluation made
        file = ComparisonFile(name=name, runs=())
    elif not file.sha256:
        warnings.append("the comparison's file has no hash, so its labels cannot be checked")
    rows, aside = _rows(records, file)
    plan = read_frozen_plan(workdir, file, records)
    blocks = [_read_block(workdir, file, block, records) for block in file.blocks]
    return RecordedResults(
        name,
        rows,
        workdir=workdir,
        file=file,
        title=file.title or name,
        description=file.description.strip(),
        parts=tuple(replace(block, plan=plan) for block in blocks),
        superseded=tuple(aside),
        analyses=_read_interim_analyses(file),
        warnings=warnings,
        plan=plan,
        **_read_plan(file),
    )


def comparisons(workdir: Path) -> dict[str, int]:
    """Name of every comparison in a work directory -> number of its runs.

    Runs made elsewhere that a comparison is compared with are no comparison of their own.
    """
    names = comparison_files(workdir)
    guests: set[str] = set()
    for file in read_sound_comparison_files(workdir).values():
        guests |= {run.id for run in file.runs if run.source}
    records = read_records(workdir, damaged={})
    return dict(
        Counter(r.comparison for r in records if r.id not in guests or r.comparison in names)
    )
