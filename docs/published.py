"""Which row of which file makes each published number of the papers, as the tables of
`docs/published.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

from docs.coverage import NOT_YET, PlannedRun, Source, find_sources, plan_record, plan_runs
from harness import registry
from harness.method import Method
from harness.runs.experiment import presets, read_experiment
from reports.load import RecordedRow
from reports.papers import definition
from reports.papers.definition import Definition
from studies.definition.study import PRESETS, Study, read_study

REPOSITORY = Path(__file__).parents[1]
Lines = list[tuple[str, ...]]


@cache
def definitions() -> list[Definition]:
    """Those of the papers, in the order of their names."""
    return [found for name in definition.names() if (found := definition.load(name)) is not None]


@cache
def sources() -> dict[str, list[Source]]:
    """Definition -> each of its published numbers with its source."""
    files = {name: path for name, path in presets().items() if path.is_relative_to(REPOSITORY)}
    read = {name: read_experiment(path) for name, path in files.items()}
    runs = {name: plan_runs(name, experiment, family_of) for name, experiment in read.items()}
    studies = [
        run
        for file in sorted(PRESETS.glob("*.toml"))
        for run in _study_runs(file.stem, read_study(file.stem))
    ]
    found = {}
    for paper in definitions():
        own_first = sorted(runs, key=lambda name: (paper.name not in read[name].reports, name))
        found[paper.name] = find_sources(
            paper, [*(run for name in own_first for run in runs[name]), *studies]
        )
    return found


@cache
def family_of(base_model: str) -> str | None:
    """The family of a base model that a paper has, by its definition: no configuration is read from
    the hub.
    """
    for paper in definitions():
        for base, ours in paper.bases.items():
            if base_model in ours:
                return paper.family(base)
        for row in (
            row for table in paper.tables for row in table.rows if base_model == row.weights
        ):
            bases = {p["base_model"] for p in paper.published_rows() if p["model"] in row.published}
            if len(bases) == 1:
                return paper.family(bases.pop())
    return "mini" if base_model.startswith("embedded:") else None


def _study_runs(file: str, study: Study) -> Iterator[PlannedRun]:
    """A run for each value that a study keeps apart, and for each that it does not vary."""
    family = family_of(study.base_model)
    if family is None:
        return
    method: type[Method] = registry.load(registry.METHODS, study.method)
    lists = {key: values for key, values in study.space.items() if isinstance(values, list)}
    apart = {key: values for key, values in lists.items() if key == study.by or len(values) == 1}
    for values in product(*apart.values()):
        given = {**study.config, **dict(zip(apart, values, strict=True))}
        config = method.configure(given, preset=study.preset, family=family, where=file)
        corpus = study.corpus if method(config).text != "none" else None
        dev = {"task": study.dev.task, "source": study.dev.where}
        record = plan_record(
            file, file, method, config, study.base_model, corpus, study.steps, family, dev=dev
        )
        yield PlannedRun(
            file, RecordedRow.of_records(file, study.base_model, (record,)), {}, study=True
        )


def totals() -> Lines:
    """A line for each paper: its numbers by where they come from; then all papers together."""
    counted = {
        p.title.partition(":")[0]: Counter(map(_kind, sources()[p.name])) for p in definitions()
    }
    counted["all"] = sum(counted.values(), Counter())
    return [
        (name, str(kinds.total()), *(str(kinds[kind]) for kind in _KINDS))
        for name, kinds in counted.items()
    ]


_KINDS = ("comparison", "study", "cannot", "not yet")


def _kind(source: Source) -> str:
    if source.file:
        return "study" if source.study else "comparison"
    return "not yet" if source.reason in NOT_YET else "cannot"


def papers() -> Iterator[tuple[str, Lines]]:
    """Each paper with a line for the numbers of a table on a base model that have one source."""
    for paper in definitions():
        grouped: dict[tuple[str, str, str], dict[str, list[Source]]] = {}
        for source in sources()[paper.name]:
            p = source.published
            table = source.place.table.title.partition(" · ")[0] if source.place else p["table"]
            by_model = grouped.setdefault((table, p["base_model"], _said(source)), {})
            by_model.setdefault(p["model"], []).append(source)
        whole = Counter(
            (table, base, model)
            for (table, base, _), by_model in grouped.items()
            for model in by_model
        )
        lines: Lines = []
        for (table, base, said), by_model in grouped.items():
            parts = [
                _part(model, own, whole[table, base, model] > 1) for model, own in by_model.items()
            ]
            count = sum(map(len, by_model.values()))
            lines.append((table, "; ".join(parts), base, str(count), said))
        yield f"{paper.title} ({len(sources()[paper.name])} numbers)", lines


def _part(model: str, members: Sequence[Source], part: bool) -> str:
    """A published row, with the columns that are meant where it has several sources."""
    titles = [(s.place.column.head if s.place else s.published["task"]) for s in members]
    return f"{model} ({', '.join(titles)})" if part else model


def _said(source: Source) -> str:
    if not source.file:
        return source.reason
    command = f"harness {'study run' if source.study else 'compare'} {source.file}"
    command += f" --only {source.block}" if source.block else ""
    row = "" if source.study else f': "{source.row}"'
    return f"`{command}`{row}" + (f" ({source.remark})" if source.remark else "")
