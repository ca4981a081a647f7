"""A comparison that ends with whether to keep a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.result import Comparison
from harness.runs.experiment import presets, read_experiment
from harness.runs.plan import make_plan
from harness.runs.selection import select_part
from harness.tasks.own.data import TaskFile
from tests.support import own_files, short_runs
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

MEAN = {"name": "start", "method": "pooling", "config": {"pooling": "cls"}}
WHITE = {"name": "whitening", "method": "whitening", "config": {"pooling": "mean"}}


def adapt(workdir: Path, file: Path, **more: Any) -> Comparison:
    keys: dict[str, Any] = {
        "name": "mine",
        "suites": [str(file)],
        "dev": str(file),
        "corpus": {"uri": "embedded:sentences", "limit": 400},
        "incumbent": "start",
        "baseline": "start",
        "methods": [MEAN, WHITE],
    }
    with pytest.MonkeyPatch.context() as patch:
        short_runs.no_report(patch)
        return harness.compare({**keys, **more}, workdir=workdir, tracking_uri="none", formats=[])


def test_a_better_model_is_saved_and_opens_in_sentence_transformers(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    file = own_files.pairs_file(tmp_path / "pairs.csv", 300)
    found = adapt(tmp_path / "work", file, methods=[{"name": "start", "method": "random"}, WHITE])
    told = json.loads((tmp_path / "work" / "decision.json").read_text())
    assert told["text"] == found.decision
    assert told["decision"] == "adopt"  # any vectors are better than random ones
    assert told["row"] == "whitening"
    best = tmp_path / "work" / "best"
    card = (best / "README.md").read_text()
    assert card.count("\n# ") == 1
    for part in ("license: apache-2.0", 'SentenceTransformer("best"', "pairs.csv", "mini-bert"):
        assert part in card
    model = SentenceTransformer(str(best))
    record = next(r for r in found.records if r.id == told["run"])
    again = harness.evaluate(model, TaskFile(task=str(file), share=0.5))
    by_metric = {s.metric: s.value for s in again.result.scores}
    assert by_metric["spearman"] == pytest.approx(record.score("pairs.csv"), abs=1e-4)
    (length,) = model.encode("A dog runs.").shape
    assert length < 256  # the start's, which the vectors of mini-bert do not span
    assert f"{length} dimensions, not 256" in told["text"]


@pytest.mark.parametrize(
    ("sentences", "further"),
    [(32, ["budget.sentences=320"]), (64, []), (96, [])],
)
def test_more_text_is_offered_only_where_rows_did_not_read_all_of_it(
    tmp_path: Path, sentences: int, further: list[str]
) -> None:
    """The text has 64 sentences."""
    file = own_files.pairs_file(tmp_path / "pairs.csv", 40)
    text = {"uri": "embedded:sentences", "limit": 64}
    rows = [MEAN, {"method": "simcse", "config": {"batch_size": 32, "pooling": "cls"}}]
    found = adapt(
        tmp_path / "work",
        file,
        base_models=[narrow_bert()],
        methods=rows,
        corpus=text,
        seeds=[1],
        budget={"sentences": sentences},
    )
    assert found.decision
    *_, line = found.decision.splitlines()
    assert f" {sentences // 32} training steps" in line
    offered = line.partition("--set ")[2]
    assert offered.split() == further


def test_the_experiment_as_resolved_runs_again_with_the_same_runs(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 100)
    first = adapt(tmp_path / "work", file, base_models=[narrow_bert()])
    written = tmp_path / "work" / "comparisons" / "mine.toml"
    again = make_plan(read_experiment(written), "again")
    assert {job.id for job in again.jobs} == {record.id for record in first.records}
    assert [task.sha256 for task in again.tasks]


def test_a_model_that_is_kept_leaves_no_other_in_best(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 200)
    adapt(tmp_path / "work", file, base_models=[narrow_bert()])
    (tmp_path / "work" / "best").mkdir(exist_ok=True)
    worse = {"name": "random", "method": "random"}
    rows = [{**MEAN, "config": {"pooling": "mean"}}, worse]
    found = adapt(tmp_path / "work", file, base_models=[narrow_bert()], methods=rows)
    told = json.loads((tmp_path / "work" / "decision.json").read_text())
    assert told["decision"] != "adopt"
    assert found.decision
    assert not (tmp_path / "work" / "best").exists()


def test_the_shipped_preset_fits_model_text_and_pairs(tmp_path: Path) -> None:
    file = str(own_files.pairs_file(tmp_path / "pairs.csv", 100))
    overrides = [f'suites=["{file}"]', f'dev="{file}"']
    plan = make_plan(read_experiment(str(presets()["adapt"]), overrides), "adapt")
    rows = {row.label: row for row in plan.rows}
    assert not [row.label for row in plan.rows if row.added]  # the start is every row's own start
    assert {row.instance.start_model for row in plan.rows} == {"embedded:mini-bert"}
    assert len([job for job in plan.jobs if job.row == "SimCSE"]) == 3
    count = len(plan.corpus(rows["SimCSE"]) or ())
    seen = {job.steps * 32 for job in plan.jobs if job.steps}
    assert seen == {-(-min(max(count, 3_200), 6_400) // 32) * 32}
    assert rows["start"].config.pooling == "mean"  # as the card of the model says


@pytest.mark.parametrize(("most", "steps"), [(640, 20), (3_200_000, 222)])
def test_a_budget_by_text_has_another_upper_bound(most: int, steps: int) -> None:
    experiment = read_experiment(str(presets()["adapt"]), [f"budget.sentences={most}"])
    plan = make_plan(experiment, "adapt")
    assert {job.steps for job in plan.jobs if job.steps} == {steps}


def test_a_budget_is_steps_or_sentences() -> None:
    for other in ("by_text=true", "sentences=64"):
        with raises_input_error(key="budget"):
            read_experiment(str(presets()["adapt"]), ["budget.steps=3", f"budget.{other}"])


def test_an_incumbent_is_a_row(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "pairs.csv", 100)
    with raises_input_error(key="incumbent"):
        adapt(tmp_path / "work", file, incumbent="another")


def test_an_option_that_is_none_is_empty_in_the_resolved_experiment(tmp_path: Path) -> None:
    row = {"method": "pooling", "config": {"max_length": None, "pooling": "cls"}}
    made = {"name": "one", "suites": ["Embedded-STS-natural"], "methods": [row]}
    harness.compare(made, workdir=tmp_path, tracking_uri="none", formats=[])
    again = read_experiment(tmp_path / "comparisons" / "one.toml")
    assert again.methods[0].config == {"max_length": "", "pooling": "cls"}


def test_a_part_without_trained_rows_or_without_the_incumbent_is_an_experiment() -> None:
    whole = read_experiment(str(presets()["adapt"]))
    untrained = make_plan(select_part(whole, ["start", "whitening"]), "adapt")
    assert [row.label for row in untrained.rows] == ["start", "whitening"]
    assert untrained.experiment.incumbent == "start"
    assert select_part(whole, ["SimCSE"]).incumbent == ""
