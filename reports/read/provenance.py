"""What a report stores of the runs behind its cells, so that each can be repeated without the work
directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.results.record import Record
from harness.seeds import seed_fields


def provenance_of(records: Iterable[Record]) -> dict[str, Any]:
    """Plain data for `Document.origin`; what several runs share is written once.

    Returns:
        "runs": id -> row, comparison, seed, status, command, bound on its training steps, and
        indices into "setups" (method, whole config, base model, corpus, selection set and inputs
        with their fingerprints) and "environments" (machine and versions).
    """
    setups: list[Any] = []
    environments: list[Any] = []
    runs: dict[str, dict[str, Any]] = {}
    for r in sorted(records, key=lambda r: (r.comparison, r.id)):
        setup = {
            "method": r.method,
            "config": {key: value for key, value in r.config.items() if key != "seed"},
            "base_model": r.base_model,
            "supervision": r.supervision,
            **{
                key: value
                for key, value in (("corpus", r.corpus), ("dev", r.dev), ("inputs", r.inputs))
                if value
            },
        }
        entry: dict[str, Any] = {
            "row": r.row,
            "comparison": r.comparison,
            **seed_fields(r.random_seed),
            "status": r.status,
            "reason": r.reason,
            "command": r.command,
            "trained": bool(r.training.get("precision")),
            "max_steps": r.spec.max_steps or "",
            "setup": _index(setups, setup),
            "environment": _index(environments, r.environment),
        }
        runs[r.id] = {
            key: value for key, value in entry.items() if value is not False and value != ""
        }
    return {"runs": runs, "setups": setups, "environments": environments}


def _index(items: list[Any], value: Any) -> int:
    """The place of a value in the list, to which it is added if it is new."""
    if value not in items:
        items.append(value)
    return items.index(value)
