"""Experiment files that would fill what a paper's report lacks: one for each base model of the paper."""

from __future__ import annotations

import json
from typing import Any

from harness.files.toml_text import toml_comment, toml_lines
from reports.papers.agreement import Verdict
from reports.papers.definition import PaperRow
from reports.papers.matching import Matching


def experiments(matching: Matching) -> dict[str, str]:
    """File name -> experiment for `harness compare`: every row of the paper that was not measured on a base model.

    Rows whose text has no name here are left as comments that say which text it is.
    """
    by_file: dict[str, str] = {}
    for base, ours in matching.definition.bases.items():
        if not ours:
            continue
        rows: dict[str, tuple[PaperRow, dict[str, Any]]] = {}
        suites: dict[str, None] = {}
        for j in matching.rows:
            place = j.place
            if place is None or j.published["base_model"] != base:
                continue
            if j.verdict.kind != "not measured" and not _elsewhere(j.verdict):
                continue
            if not place.row.method or place.table.kind not in ("tasks", "layers") or place.column.delta:
                continue
            if place.row.same_weights and ours[0] not in place.row.same_weights:
                continue
            config = {k: v for k, v in place.row.where.items() if _plain(k, v)}
            key = json.dumps([place.row.method, config, place.row.preset, place.row.data], sort_keys=True)
            rows.setdefault(key, (place.row, config))
            suites |= dict.fromkeys(s for s in place.table.suites)
        text = _toml(matching, base, ours[0], list(rows.values()), list(suites))
        if "\n[[methods]]" in text:
            by_file[f"{base}.toml"] = text
    return by_file


def _elsewhere(verdict: Verdict) -> bool:
    """Measured, but not on the paper's base model or text, or by its recipe."""
    return any(obstacle.what in ("base model", "training data", "recipe") for obstacle in verdict.obstacles)


def _plain(key: str, value: Any) -> bool:
    """A condition that is a setting too."""
    return "." not in key and not isinstance(value, list) and not (isinstance(value, str) and "*" in value)


def _toml(
    matching: Matching, base: str, ours: str, rows: list[tuple[PaperRow, dict[str, Any]]], suites: list[str]
) -> str:
    definition = matching.definition
    default = next((d.uris[0] for d in definition.data.values() if d.uris), "wiki1m")
    experiment = {
        "name": f"{definition.name}-{base}",
        "base_models": [ours],
        "seeds": [1, 2, 3, 4, 5],
        "suites": suites,
        "source": "senteval",
        "corpus": default,
    }
    about = f"What the report {definition.name} lacks on {base}. The papers' sizes: meant for a GPU."
    parts = [toml_comment(about) + toml_lines(experiment), f"[dev]\n{toml_lines({'task': 'STS-B'})}"]
    used: dict[str, int] = {}
    for spec, config in rows:
        used[spec.label] = used.get(spec.label, 0) + 1
        label = spec.label if used[spec.label] == 1 else f"{spec.label} ({used[spec.label]})"
        data = definition.data.get(spec.data)
        uri = data.uris[0] if data and data.uris else None
        nameless = data if uri is None else None
        entry: dict[str, Any] = {"name": label, "method": spec.method}
        entry |= {"preset": spec.preset} if spec.preset else {}
        entry |= {"config": config} if config else {}
        if nameless or (uri and uri != default):
            entry["corpus"] = uri or "FILE"
        text = f"[[methods]]\n{toml_lines(entry)}"
        if nameless:
            commented = "# " + text.rstrip("\n").replace("\n", "\n# ") + "\n"
            text = toml_comment(f"trained on {nameless.text}: name that text here") + commented
        parts.append(text)
    return "\n".join(parts)
