"""The report of a study: tables of its trials, and held-out seeds of its best configuration."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from scipy import stats

from harness import api
from harness.results.store import read_records
from harness.runs.conditions import Conditions, DevSettings
from harness.runs.experiment import Experiment
from reports.document.blocks import Document
from reports.document.table import Table, number_text
from reports.studies.findings import (
    Confirmation,
    compare_with_start,
    confirm,
    experiment_file,
    untrained_score,
)
from reports.studies.study_report import document
from reports.studies.study_tables import best_table
from studies.definition.study import Study
from studies.trials import best_trials
from tests.support import short_runs
from tests.support.invented_runs import run
from tests.support.small_studies import TRAINED, search

pytestmark = pytest.mark.usefixtures("few_pairs")
FOUR: dict[str, Any] = {"title": "Dimensions", "space": {"dimension": [2, 3, 4, 8]}}


def table(made: Document, key: str) -> Table:
    return next(t for t in made.tables() if t.key == key)


def describe(work: Path) -> Document:
    made = document(work, "cheap")
    assert made is not None
    return made[0]


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "draws" not in request.node.name:
        short_runs.no_report(monkeypatch)


def test_no_study_of_that_name_is_none_of_ours(tmp_path: Path) -> None:
    assert document(tmp_path, "cheap") is None
    search(tmp_path, space={"dimension": [2]})
    assert document(tmp_path, "cheep") is None
    assert document(tmp_path, "cheap") is not None


def test_tables_hold_what_the_records_say(tmp_path: Path) -> None:
    work = search(tmp_path, **FOUR).workdir
    made = describe(work)
    assert made.title == "Dimensions"
    scores = {
        r.config["dimension"]: 100 * (r.score("Embedded-STS-natural") or 0)
        for r in read_records(work)
    }
    ids = {r.config["dimension"]: r.id for r in read_records(work)}
    best = table(made, "best")
    order = sorted(scores, key=lambda d: -scores[d])
    assert [row.cells[1].value for row in best.rows] == order
    assert [row.cells[2].value for row in best.rows] == pytest.approx([scores[d] for d in order])
    assert [row.cells[2].records for row in best.rows] == [(ids[d],) for d in order]
    summary = table(made, "summary").rows[-1].cells
    quantiles = [np.quantile(list(scores.values()), share) for share in (1, 0.75, 0.5)]
    assert [cell.value for cell in summary[1:4]] == pytest.approx(quantiles)
    assert len(table(made, "trials").rows) == 4
    assert number_text(scores[order[0]], 2) in made.headline
    assert "Not confirmed" in made.headline
    assert set(made.origin["runs"]) == set(ids.values())


def test_held_out_seeds_show_the_optimism_of_the_choice(tmp_path: Path) -> None:
    found = search(tmp_path, **FOUR)
    work = found.workdir
    api.compare(found.experiment(held_out=True), workdir=work, tracking_uri="none", formats=[])
    made = describe(work)
    held = [
        100 * (r.score("Embedded-STS-natural") or 0)
        for r in read_records(work)
        if r.seed in (1, 2, 3)
    ]
    chosen = max(
        100 * (r.score("Embedded-STS-natural") or 0) for r in read_records(work) if r.seed == 101
    )
    rows = table(made, "held-out").rows
    names = ["seed 101", "seed 1", "seed 2", "seed 3", "mean", "chosen − held-out mean"]
    assert [row.cells[0].text for row in rows] == names
    assert rows[-2].cells[1].value == pytest.approx(np.mean(held))
    assert rows[-1].cells[1].value == pytest.approx(chosen - np.mean(held))
    interval = stats.ttest_1samp(held, chosen).confidence_interval(0.95)
    shown = rows[-1].cells[1].spread.replace("\u2212", "-").strip("[]").split(", ")
    assert [float(x) for x in shown] == pytest.approx(
        [chosen - interval.high, chosen - interval.low], abs=0.006
    )
    assert "Held-out seeds 1, 2, 3 reach" in made.headline
    assert set(made.origin["runs"]) == {r.id for r in read_records(work)}


def stored_trial(runs: list[str]) -> optuna.Study:
    """Return a study whose only trial has these runs."""
    stored = optuna.create_study(direction="maximize")
    trial = optuna.trial.create_trial(
        params={"temperature": 0.05},
        distributions={"temperature": optuna.distributions.FloatDistribution(0.01, 1)},
        value=0.6,
        user_attrs={"about": {"runs": runs}},
    )
    stored.add_trial(trial)
    return stored


def test_only_whole_seeds_of_the_same_training_confirm(tmp_path: Path) -> None:
    shared: dict[str, Any] = {
        "version": 1,
        "precision": "fp32",
        "training": {"best_dev": 0.6, "planned_steps": 9},
    }
    unlike: list[dict[str, Any]] = [
        {},
        {"vary": ("init",), "held": 101},
        {"precision": "bf16"},
        {"version": 2},
        {"numerics": 0},
        {"model": "other weights of that name"},
        {"training": {"best_dev": 0.6, "planned_steps": 8}},
    ]
    chosen = run(tmp_path, "simcse", seed=101, **shared)
    for seed, more in enumerate(unlike, 1):
        run(tmp_path, "simcse", seed=seed, **{**shared, **more})
    study = Study(name="s", method="simcse", seeds=[101])
    confirmed = confirm(best_trials(stored_trial([chosen.id]))[0], study, tmp_path)
    assert confirmed is not None
    assert [record.seed for record, _ in confirmed.held_out] == [1]


def test_the_file_of_the_best_configuration_has_all_conditions_of_the_search() -> None:
    study = Study(
        name="s",
        method="simcse",
        preset="paper",
        family="roberta-base",
        source="mteb",
        precision="bf16",
        device="cpu",
        corpus={"uri": "embedded:sentences", "limit": 80},
        corpora={"pairs": {"uri": "embedded:pairs"}},
        dev={"task": "Embedded-STS-natural", "pairs": 20},
    )
    keys = tomllib.loads(experiment_file(stored_trial([]), study, [101]))
    about = {"name", "title", "description"}
    found = Experiment.parse(keys, "best.toml").conditions()
    assert found.keys() == Conditions.model_fields.keys()
    for key in found.keys() - about:
        assert found[key] == getattr(study, key), key


def test_one_held_out_seed_gives_no_interval(tmp_path: Path) -> None:
    record = run(tmp_path, "random")
    one = Confirmation(0, ((record, 60.0), (record, 62.0)), ((record, 58.0),))
    assert one.chosen == 61
    assert one.optimism is None


def test_failed_trials_have_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from methods.random_vectors import RandomVectors

    fit = RandomVectors.fit

    def broken(self: RandomVectors, *args: object, **more: object) -> RandomVectors:
        if self.config.dimension == 3:
            raise RuntimeError("out of <memory>")
        return fit(self, *args, **more)

    monkeypatch.setattr(RandomVectors, "fit", broken)
    search(tmp_path, space={"dimension": [2, 3, 4]})
    made = describe(tmp_path)
    notes = [
        note for row in table(made, "trials").rows for cell in row.cells for note in cell.notes
    ]
    assert any("out of <memory>" in note for note in notes)
    assert ("1", "failed") in made.facts


def test_trials_of_an_earlier_call_that_planned_more_are_planned(tmp_path: Path) -> None:
    random: dict[str, Any] = {"sampler": "random", "space": {"dimension": [2, 4]}}
    search(tmp_path, trials=3, **random)
    search(tmp_path, trials=2, **random)
    assert describe(tmp_path).facts[0] == ("3", "scored of 3 planned trials")


def test_report_build_draws_and_writes_a_study(tmp_path: Path) -> None:
    work = search(tmp_path / "work", title="Dimensions", space={"dimension": [2, 3, 4]}).workdir
    built = []
    for _ in range(2):
        out = tmp_path / "report"
        api.report("cheap", work, formats=["html"], out=out)
        built.append({p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert built[0] == built[1]  # to the byte
    assert {p.stem for p in (out / "figures").glob("*.svg")} >= {
        "history",
        "expected",
        "binned-dimension",
    }
    data = json.loads((out / "data.json").read_text())
    assert set(data["tables"]) >= {"space", "best", "summary", "trials"}
    assert "Dimensions" in (out / "index.html").read_text()


def test_the_score_without_training_is_the_first_line_and_may_be_the_best(tmp_path: Path) -> None:
    """A rate at which nothing is learnt cannot beat the model that it starts from."""
    config = {**TRAINED["config"], "pooling": "cls"}
    del config["learning_rate"]
    keys = {**TRAINED, "config": config, "space": {"learning_rate": [1e-12]}}
    found = search(tmp_path, keys)
    (best,) = best_trials(found.stored)
    start = untrained_score(found.stored, best, found.study, tmp_path)
    assert start is not None
    base = TRAINED["base_model"]
    untrained = api.train("pooling", config={"pooling": "cls"}, base_model=base, dev=None)
    dev = DevSettings(**TRAINED["dev"]).load()
    assert start == pytest.approx(dev.score(untrained.encode), abs=1e-4)
    assert best.value == pytest.approx(start, abs=1e-4)
    shown = best_table(found.study, found.space, [best], start)
    assert shown is not None
    assert [row.cells[0].text for row in shown.rows] == ["untrained", str(best.number)]
    assert "no setting" in compare_with_start(best, best.value)
    assert "no setting" not in compare_with_start(best, best.values[0] - 0.01)
    assert compare_with_start(best, None) == ""


def test_trials_that_a_task_judges_are_shown_beside_its_score_without_training(
    tmp_path: Path,
) -> None:
    task = "Embedded-STS-contrast"
    keys = {**TRAINED, "objective": task, "suites": [task], "space": {"learning_rate": [1e-12]}}
    keys["config"] = {**TRAINED["config"], "pooling": "cls"}
    del keys["config"]["learning_rate"]
    found = search(tmp_path, keys)
    (best,) = best_trials(found.stored)
    start = untrained_score(found.stored, best, found.study, tmp_path)
    scored = api.evaluate(TRAINED["base_model"], [task], pooling="cls")
    (expected, *_) = (s.value for s in scored.result.scores if s.metric == "spearman")
    assert start == pytest.approx(expected, abs=1e-4)
    assert "no setting" in compare_with_start(best, max(start, best.value))
    made = document(tmp_path, "small")
    assert made is not None
    assert table(made[0], "best").rows[0].cells[0].text == "untrained"
    before = {path.name for path in (tmp_path / "runs").iterdir()}
    search(tmp_path, keys)  # nothing is left to do
    assert {path.name for path in (tmp_path / "runs").iterdir()} == before
