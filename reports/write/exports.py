"""A comparison in formats that other tools read: records of Every Eval Ever, and an RO-Crate of the
report's folder.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Any

from harness.files.printable import one_line
from harness.results.record import Record, Score
from harness.results.store import RunFolder
from reports.document.blocks import Document, slug
from reports.load import RecordedResults
from reports.results import base_name
from reports.suite_targets import find_suite

_SCHEMA = "0.3.0"  # of github.com/evaleval/every_eval_ever
_ANY = ("-Infinity", "Infinity")
# A word of a metric's name -> its bounds, the first one that fits; those of all others are 0 and 1.
_RANGES: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("spearman", "pearson", "kendall", "mcc", "cosine"), (-1, 1)),
    "uniformity": ("-Infinity", 0),
    **dict.fromkeys(("alignment", "rank", "rankme", "std", "seconds", "second"), (0, "Infinity")),
}
_LOWER_IS_BETTER = ("uniformity", "alignment", "mean_cosine", "seconds")
_CRATE = "https://w3id.org/ro/crate/1.1"


def every_eval_ever(comparison: RecordedResults) -> dict[str, str]:
    """Path -> content: a record for each finished run, and its examples where each is right or
    wrong.

    Correlations have no examples there, since the schema needs to know of each whether it is
    correct.
    """
    files: dict[str, str] = {}
    records: dict[str, Record] = {}
    for row in comparison.rows:
        for record in row.finished:
            records[record.id] = record
    for record in records.values():
        digest = hashlib.sha256(record.id.encode()).digest()
        name = uuid.UUID(bytes=digest[:16], version=4)
        parts = (
            slug(comparison.name),
            "local",
            slug(f"{record.row}-{base_name(record.base_model)}"),
        )
        path = PurePath("data", *parts, str(name))
        about = _about(comparison, record)
        lines = [json.dumps(line) for line in _examples(comparison, record, about)]
        if lines:
            content = "\n".join(lines) + "\n"
            files[f"{path}_samples.jsonl"] = content
            about["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{path}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(content.encode()).hexdigest(),
                "total_rows": len(lines),
            }
        files[f"{path}.json"] = json.dumps(about, indent=1) + "\n"
    return files


def _about(comparison: RecordedResults, record: Record) -> dict[str, Any]:
    ended = str(int(datetime.fromisoformat(record.finished).timestamp()))
    versions = record.environment.get("versions", {})
    model = f"local/{slug(record.row)}"
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "unknown",
        "base_model": record.base_model,
        "method": record.method,
        "config": json.dumps(record.config),
        "seed": str(record.seed),
        "run": record.id,
        "supervision": record.supervision,
        "corpus": json.dumps(record.corpus),
        "device": record.environment.get("device_name", "unknown"),
    }
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": f"{slug(comparison.name)}/{model}/{record.id}/{ended}",
        "evaluation_timestamp": ended,
        "retrieved_timestamp": ended,
        "source_metadata": {
            "source_name": one_line(comparison.title or comparison.name),
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "third_party"
            if record.method == "pretrained"
            else "first_party",
        },
        "eval_library": {
            "name": "sentence-harness",
            "version": versions.get("sentence-harness", "unknown"),
        },
        "model_info": {"name": one_line(record.row), "id": model, "additional_details": details},
        "evaluation_results": [
            _result(record, score) for score in record.scores if score.split != "dev"
        ],
    }


def _bounds_of(score: Score) -> tuple[Any, Any]:
    """Return the lowest and the highest value of a score's metric; any number where the score is
    beyond what is known of it.
    """
    words = score.metric.removeprefix("cosine_").split("_")
    low, high = 0, 1
    for word, bounds in _RANGES.items():
        if word in words:
            low, high = bounds
            break
    if float(low) <= score.value <= float(high):
        return low, high
    return _ANY


def _is_lower_better(score: Score) -> bool:
    suite = find_suite(score.suite)
    if suite is not None and not suite.higher_is_better:
        return True
    return score.metric in _LOWER_IS_BETTER or score.metric.endswith("_seconds")


def _result(record: Record, score: Score) -> dict[str, Any]:
    data = (record.protocols.get(score.protocol) or {}).get("data")
    low, high = _bounds_of(score)
    source: dict[str, Any] = {"dataset_name": score.task, "source_type": "other"}
    if score.source == "mteb" and isinstance(data, dict) and len(data) == 1:
        source |= {
            "source_type": "hf_dataset",
            "hf_repo": next(iter(data)),
            "hf_split": score.split,
        }
    source["additional_details"] = {
        "source": score.source,
        "split": score.split,
        "data": json.dumps(data),
    }
    return {
        "evaluation_result_id": _result_id(score.task, score.metric, score.aggregation),
        "evaluation_name": score.task,
        "source_data": source,
        "metric_config": {
            "metric_id": score.metric,
            "metric_name": score.metric,
            "score_type": "continuous",
            "lower_is_better": _is_lower_better(score),
            "min_score": low,
            "max_score": high,
            "metric_parameters": {"aggregation": score.aggregation, "protocol": score.protocol},
        },
        "score_details": {"score": score.value, "uncertainty": {"num_samples": score.n}},
    }


def _result_id(task: str, metric: str, aggregation: str = "") -> str:
    return "/".join(filter(None, (task, metric, aggregation)))


def _examples(
    comparison: RecordedResults,
    record: Record,
    about: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    outcomes = RunFolder(comparison.workdir, record.id).outcomes()
    plain = (
        (outcomes["target"].isna() & outcomes["outcome"].isin([0, 1]))
        .groupby(outcomes["task"])
        .transform("all")
    )
    for one in outcomes[plain].to_dict("records"):
        texts = []
        for key in ("split", "subset", "example"):
            if one[key] != "":
                texts.append(str(one[key]))
        sample = " ".join(texts)
        yield {
            "schema_version": _SCHEMA,
            "evaluation_id": about["evaluation_id"],
            "model_id": about["model_info"]["id"],
            "evaluation_name": one["task"],
            "evaluation_result_id": _result_id(one["task"], one["metric"]),
            "sample_id": sample,
            "interaction_type": "single_turn",
            "answer_attribution": [],
            "input": {"raw": f"{one['task']} {sample} (texts are not stored)", "reference": []},
            "output": {"raw": []},
            "evaluation": {"score": float(one["outcome"]), "is_correct": bool(one["outcome"])},
            "metadata": {"text_id": str(one["unit"])},
        }


def ro_crate(document: Document, files: Iterable[str]) -> str:
    """`ro-crate-metadata.json` of a report's folder: its files, the software, and each run as what
    was done.

    RO-Crate 1.1 (researchobject.org). Runs are named by their ids: their folders stay in the work
    directory.
    """
    # the same on every machine: it reads no file of the system
    names = sorted(files)
    types = mimetypes.MimeTypes()
    runs: dict[str, Any] = document.origin.get("runs", {})
    last = next((text for text, label in document.facts if label == "last run"), "")
    software = {
        "@id": "#sentence-harness",
        "@type": "SoftwareApplication",
        "name": "sentence-harness",
    }
    actions = []
    for name, run in runs.items():
        actions.append(
            {
                "@id": f"#run-{name}",
                "@type": "CreateAction",
                "name": f"{run['row']}, seed {run.get('seed', '')}",
                "instrument": {"@id": software["@id"]},
                "description": run.get("command", ""),
                "result": {"@id": "data.json"},
            }
        )
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": document.title,
        "description": document.headline or document.title,
        "datePublished": last or "1970-01-01",
        "hasPart": [{"@id": name} for name in names],
        "mentions": [{"@id": action["@id"]} for action in actions],
        "license": "The authors of the report decide on its licence.",
    }
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _CRATE},
    }
    parts = [
        {
            "@id": name,
            "@type": "File",
            "name": PurePath(name).name,
            "encodingFormat": types.guess_type(name)[0] or "text/plain",
        }
        for name in names
    ]
    graph = [about, root, software, *parts, *actions]
    return json.dumps({"@context": f"{_CRATE}/context", "@graph": graph}, indent=1) + "\n"
