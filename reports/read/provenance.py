"""What a report keeps of the runs behind its cells, so that each can be repeated without the work directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.results.record import Record
from harness.results.store import read_comparison_file
from harness.seeds import seed_fields
from harness.tasks.catalogue import tasks_of

# How a comparison was run, beyond what each record says by itself.
_CONDITIONS = ("suites", "source", "max_steps", "device", "precision")


def provenance_of(records: Iterable[Record], workdir: Path) -> dict[str, Any]:
    """Plain data for `Document.origin`; what several runs share is written once.

    Returns:
        "runs": id -> row, comparison, seed, status, command, bound on its training steps, and indices into
        "setups" (method, whole config, base model, corpus, selection set and inputs with their fingerprints) and
        "environments" (machine and versions); "experiments": comparison -> suites, budget, device and precision.
    """
    records = sorted(records, key=lambda r: (r.comparison, r.id))
    setups, environments = _Numbered(), _Numbered()
    experiments_ = {name: _experiment(workdir, name) for name in dict.fromkeys(r.comparison for r in records)}
    runs: dict[str, dict[str, Any]] = {}
    for r in records:
        entry: dict[str, Any] = {
            "row": r.row,
            "comparison": r.comparison,
            **seed_fields(r.random_seed),
            "status": r.status,
            "reason": r.reason,
            "command": r.command,
            "trained": bool(r.training.get("precision")),
            "max_steps": r.spec.max_steps or "",
            "setup": setups.index(_setup(r, experiments_[r.comparison])),
            "environment": environments.index(r.environment),
        }
        runs[r.id] = {key: value for key, value in entry.items() if value is not False and value != ""}
    experiments = {
        name: _conditions(experiment, [r for r in records if r.comparison == name])
        for name, experiment in experiments_.items()
    }
    return {"runs": runs, "setups": setups.items, "environments": environments.items, "experiments": experiments}


class _Numbered:
    """Distinct values in the order met."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def index(self, value: Any) -> int:
        if value not in self.items:
            self.items.append(value)
        return self.items.index(value)


def _experiment(workdir: Path, name: str) -> dict[str, Any]:
    try:
        experiment = (read_comparison_file(workdir, name) or {}).get("experiment")
    except (OSError, ValueError):
        experiment = None
    return experiment if isinstance(experiment, dict) else {}


def _setup(r: Record, experiment: dict[str, Any]) -> dict[str, Any]:
    corpus = dict(r.corpus) if r.corpus else None
    if corpus:
        columns = _columns(r, experiment)
        corpus |= {"columns": columns} if columns else {}
    return {
        "method": r.method,
        "config": {key: value for key, value in r.config.items() if key != "seed"},
        "base_model": r.base_model,
        "supervision": r.supervision,
        **{key: value for key, value in (("corpus", corpus), ("dev", r.dev), ("inputs", r.inputs)) if value},
    }


def _columns(r: Record, experiment: dict[str, Any]) -> dict[str, str] | None:
    """Which columns of a file held the text: the one thing that a record does not say about its corpus."""
    entries = [e for e in experiment.get("methods", []) if r.row in (e.get("name"), e.get("method"))]
    own = [e["corpus"] for e in entries if e.get("corpus")]
    shared = [experiment.get("corpus") or {}, *(experiment.get("corpora") or {}).values()]
    uri = (r.corpus or {}).get("uri")
    return next((c["columns"] for c in [*own, *shared] if c.get("uri") == uri and c.get("columns")), None)


def _conditions(experiment: dict[str, Any], records: list[Record]) -> dict[str, Any]:
    """The experiment's settings, and what its runs were scored on beyond them for other comparisons; without a
    comparison file (a study's runs), what the scores show."""
    made = (s.task_key.removeprefix(f"{s.source}:") for r in records for s in r.scores)
    tasks = dict.fromkeys([*made, *(task for r in records for task in r.missing)])
    if experiment:
        conditions = {key: experiment[key] for key in _CONDITIONS if experiment.get(key) is not None}
        suites = conditions.get("suites", [])
        known = {task for suite in suites for task in tasks_of(suite) or (suite,)}
        return conditions | {"suites": [*suites, *(task for task in tasks if task not in known)]}
    sources = [s.source for r in records for s in r.scores if s.source in ("senteval", "mteb")]
    return {"suites": list(tasks), "source": sources[0] if sources else "senteval"}
