"""A comparison in the formats of others: the keys that their schemas need, and examples that are
right or wrong.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli import main
from reports.load import read_comparison
from reports.write.exports import every_eval_ever
from tests.support import invented_runs, synthetic
from tests.support.errors import raises_input_error
from tests.support.invented_outcomes import add_transfer

NEEDED = (
    "schema_version",
    "evaluation_id",
    "retrieved_timestamp",
    "source_metadata",
    "model_info",
    "eval_library",
    "evaluation_results",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("work")
    made = synthetic.Invented(work, scale=0.1)
    for seed in (1, 2):
        add_transfer(made, "SimCSE", seed, 0.8)
    formats = ["md", "ro-crate", "every-eval-ever"]
    return harness.report("invented", work, formats=formats)["json"].parent


def test_every_run_is_a_record_of_every_eval_ever(report: Path) -> None:
    records = {
        file: json.loads(file.read_text()) for file in report.glob("data/invented/local/*/*.json")
    }
    assert len(records) == 2
    for file, record in records.items():
        assert all(record[key] for key in NEEDED)
        result = record["evaluation_results"][0]
        assert {"evaluation_name", "source_data", "metric_config", "score_details"} <= result.keys()
        assert 0 < result["score_details"]["score"] < 1
        listed = record["detailed_evaluation_results"]
        samples = (report / listed["file_path"]).read_bytes()
        assert listed["checksum"] == hashlib.sha256(samples).hexdigest()
        assert file.stem == Path(listed["file_path"]).stem.removesuffix("_samples")
        lines = [json.loads(line) for line in samples.splitlines()]
        assert len(lines) == listed["total_rows"]
        assert {line["evaluation_id"] for line in lines} == {record["evaluation_id"]}
        assert {line["evaluation"]["is_correct"] for line in lines} == {True, False}


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("spearman_first_16", -0.2, (-1, 1, False)),
        ("cosine_spearman", 0.3, (-1, 1, False)),
        ("accuracy", 0.9, (0, 1, False)),
        ("cosine_accuracy", 0.9, (0, 1, False)),
        ("mean_cosine", -0.1, (-1, 1, True)),
        ("uniformity", -2.5, ("-Infinity", 0, True)),
        ("effective_rank", 31.0, (0, "Infinity", False)),
        ("encode_seconds", 12.5, (0, "Infinity", True)),
        ("sentences_per_second", 900.0, (0, "Infinity", False)),
        ("cost_of_calls", 17.0, ("-Infinity", "Infinity", False)),
    ],
)
def test_a_score_is_within_the_bounds_of_its_metric(
    metric: str, value: float, expected: tuple[Any, Any, bool], tmp_path: Path
) -> None:
    own = [invented_runs.score("tickets", 100 * value, metric, suite="own")]
    invented_runs.run(tmp_path, "mean", scores=own, comparison="invented")
    (content,) = every_eval_ever(read_comparison(tmp_path, "invented")).values()
    (result,) = json.loads(content)["evaluation_results"]
    stated = result["metric_config"]
    assert (stated["min_score"], stated["max_score"], stated["lower_is_better"]) == expected


def test_the_crate_lists_every_file_and_run(report: Path) -> None:
    graph = {
        one["@id"]: one
        for one in json.loads((report / "ro-crate-metadata.json").read_text())["@graph"]
    }
    parts = {part["@id"] for part in graph["./"]["hasPart"]}
    files = {str(file.relative_to(report)) for file in report.rglob("*") if file.is_file()}
    assert parts == files - {"ro-crate-metadata.json"}
    assert sum(one["@type"] == "CreateAction" for one in graph.values()) == 2
    assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}


def test_a_study_or_paper_has_no_records_of_runs(tmp_path: Path) -> None:
    with raises_input_error(key="--format"):
        harness.report("scd", tmp_path, formats=["every-eval-ever"])


def test_checklist_answers_from_records_and_leaves_the_rest_to_authors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for seed in (1, 2, 3):
        made.add("SimCSE | x", seed, tasks=("STS-B",), curves=False, geometry=False)
    assert main(["report", "checklist", "invented", "--workdir", str(tmp_path)]) == 0
    rows = [
        line.split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| NeurIPS")
    ]
    answers = {where.removeprefix("| "): answer.removesuffix(" |") for where, _, answer in rows}
    assert "3 seeds a trained row" in answers["NeurIPS 7; ARR C3"]
    assert "3 runs" in answers["NeurIPS 4; ARR C2"]
    assert answers["NeurIPS 3"] == "**author**"


def test_checklist_of_untrained_rows_speaks_of_no_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.Invented(tmp_path, scale=0.1)
    made.add("mean", 1, supervision="untrained", tasks=("STS-B",), curves=False, geometry=False)
    assert main(["report", "checklist", "invented", "--workdir", str(tmp_path)]) == 0
    assert "No row is trained, so no seed enters" in capsys.readouterr().out
