"""Invented records of single runs, made field by field: what a test of libraries and verdicts
needs, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness import registry
from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.record import Record, Score
from harness.results.spec import RunSpec
from harness.results.store import RunFolder, read_records, write_comparison_file
from reports.papers import definition
from reports.records.run_library import RunLibrary, read_library

WIKI = {"uri": "wiki1m", "kind": "sentences", "count": 1_000_000, "sha256": "ab" * 32}
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def score(
    task: str,
    percent: float,
    metric: str = "spearman",
    aggregation: str = "all",
    *,
    source: str = "senteval",
    suite: str = "sts",
    split: str = "test",
    scale: float = 100,
) -> Score:
    name = f"{task}{metric}{aggregation}{source}{split}"
    return Score(
        task=task,
        suite=suite,
        source=source,
        split=split,
        metric=metric,
        aggregation=aggregation,
        value=percent / scale,
        n=10,
        protocol=f"p{name}",
        comparable=f"c{name}",
    )


def sts(percent: float, **rest: Any) -> list[Score]:
    """Return scores with the same value on all seven tasks."""
    return [score(task, percent, **rest) for task in STS]


def recipe(
    method: str, preset: str = "paper", family: str = "bert-base", **values: Any
) -> dict[str, Any]:
    """Return every option of a method as a preset has it for a family of base models, with some of
    them otherwise.
    """
    plugin = registry.load(registry.METHODS, method)
    config = plugin.configure({}, preset=preset, family=family, where=method)
    return {**config.model_dump(mode="json"), **values}


def run(
    workdir: Path,
    method: str,
    config: dict[str, Any] | None = None,
    seed: int = 1,
    *,
    scores: list[Score] | None = None,
    base: str = "google-bert/bert-base-uncased",
    row: str = "",
    corpus: dict[str, Any] | None = None,
    status: str = "finished",
    finished: str = "2025-01-01T11:00:00Z",
    supervision: str = "unsupervised",
    comparison: str = "invented",
    **more: Any,
) -> Record:
    """Write one record; scores carry SentEval's preparation and cosine similarity. Options not
    given are defaults.

    Args:
        more: further fields of the record, or of its specification.
    """
    folder = workdir / "runs"
    count = len(list(folder.glob("*"))) if folder.exists() else 0
    given = scores or []
    about = {"similarity": "cosine", "preparation": "Moses-tokenised and lower-cased"}
    keys_of_spec = [key for key in more if key in RunSpec.model_fields and key != "missing"]
    of_spec = {key: more.pop(key) for key in keys_of_spec}
    if dev := of_spec.get("dev"):
        of_spec["dev"] = {"sha256": "cd" * 32, **dev}

    is_installed = method in registry.names(registry.METHODS)
    options = recipe(method, "default", "") if is_installed else {}
    options |= {**(config or {}), "seed": seed}
    fields = {
        "method": method,
        "held": count + 1,  # for an id of its own
        "config": options,
        "base_model": base,
        "model": base,
        "seed": seed,
        "corpus": corpus,
    }
    spec = RunSpec(**{**fields, **of_spec})

    record = Record(
        id=spec.id,
        spec=spec,
        comparison=comparison,
        status=status,
        row=row or method,
        reason="" if status == "finished" else "invented",
        supervision=supervision,
        scores=given if status == "finished" else [],
        protocols={s.comparable: about for s in given},
        started="2025-01-01T10:00:00Z",
        finished=finished,
        command=f"harness train {method}",
        **more,
    )
    RunFolder(workdir, record.id).write(record)
    return record


def write_paper_comparisons(workdir: Path) -> None:
    """Write the comparison files that the shipped definitions of papers name, each with the runs of
    the comparison "invented".
    """
    runs = []
    for r in read_records(workdir, damaged={}):
        if r.comparison == "invented":
            run = ListedRun(id=r.id, row=r.row, base_model=r.base_model, seed=r.seed)
            runs.append(run)
    for paper in definition.names():
        name = f"paper-{paper}"
        write_comparison_file(workdir, ComparisonFile(name=name, runs=tuple(runs)))


def store_study(workdir: Path, name: str, trials: Iterable[tuple[float, str, str]]) -> None:
    """Store a study on the dev set in the work directory's storage, of (value, state, run) by trial."""
    import json

    import optuna

    from studies.storage import DEFINITION, open_storage
    from studies.trials import SLOT

    stored = optuna.create_study(
        storage=open_storage(workdir), study_name=name, direction="maximize"
    )
    stored.set_user_attr(DEFINITION, json.dumps({"name": name, "method": "simcse"}))
    for slot, (value, state, run_id) in enumerate(trials):
        about = {SLOT: slot, "about": {"runs": [run_id], "seeds": [1], "status": "finished"}}
        ended = optuna.trial.TrialState[state]
        stored.add_trial(optuna.trial.create_trial(value=value, state=ended, user_attrs=about))


def read_papers_library(workdir: Path) -> RunLibrary:
    """Read all runs of a work directory, and the trials of its studies."""
    from reports.studies.study_report import trials_on_dev

    return read_library(workdir, lambda: trials_on_dev(workdir))
