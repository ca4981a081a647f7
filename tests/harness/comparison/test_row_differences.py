"""What differs between rows: the same of a plan and of the records that it became; what matters is marked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import api, registry
from harness.cli import main
from harness.comparison.experiment import read_experiment
from harness.comparison.fact_texts import FACTS, spaced
from harness.comparison.plan import make_plan
from harness.comparison.row_differences import differences, planned, told
from harness.comparison.row_facts import NOT_RECORDED, RowFacts, of_plan, of_run, rate_from
from harness.results.manifest import read_manifest
from harness.results.run_folder import RunFolder

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs", "no_report")]

FILE = """
seeds = [1]
max_steps = 4
suites = ["Embedded-STS-natural"]
precision = "fp32"
corpus = { uri = "embedded:sentences", limit = 64 }
dev = { task = "Embedded-STS-natural", every = "own" }
[[methods]]
name = "mean"
method = "pooling"
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = { batch_size = 8, eval_every = 2, train_length = 8 }
[[methods]]
name = "own"
method = "simcse"
config = { pooling = "mean", batch_size = 32, learning_rate = 1e-4, train_length = 8 }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return str(path)


def texts(facts: RowFacts) -> dict[str, str | None]:
    return {fact.key: fact.of(facts) for fact in FACTS}


def test_a_plan_says_in_what_its_rows_differ_and_what_of_it_matters(file: str) -> None:
    found = planned(make_plan(read_experiment(file), file))
    assert found.rows == tuple((label, "embedded:mini-bert") for label in ("mean", "SimCSE", "own"))
    assert dict(found.cells) == {
        "pooling": ("mean", "cls", "mean"),
        "updates": ("", "4", "2"),  # 64 / 32: one epoch
        "seen": ("", "32", "64"),
        "batch": ("", "8", "32"),
        "rate": ("", "3e-4", "1e-4"),
        "rate_from": ("", "searched on the embedded dev part", "given in the file"),
        "evaluations": ("", "3, every 2", "2, before and after"),
    }
    assert found.marked == ("pooling", "updates", "rate_from", "evaluations")  # 32 items more are one batch of 32
    assert all(fact.why.startswith(fact.title) for fact in FACTS if fact.why)


def test_records_say_what_their_plan_said(file: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    said: list[str] = []
    api.compare(file, workdir=work, tracked=False, formats=[], say=said.append)
    assert said[0].startswith("rows differ in pooling, updates, rate's origin, dev evaluations: ")
    plan = make_plan(read_experiment(file), file, work)
    manifest = read_manifest(work, "mine")
    for cell in plan.cells:
        folder = RunFolder(work, cell.id)
        record = folder.read()
        assert record is not None
        run = replace(of_run(record, folder.curves(), manifest), device=None)  # which no plan knows
        assert texts(run) == texts(of_plan(plan, cell)), cell.label


def test_the_dry_run_shows_it_before_anything_is_trained(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.comparison.estimate.estimate_seconds", lambda *_: 1.0)
    work = str(tmp_path / "work")
    budget = 'budget={kind="sentences", sentences=64}'
    assert main(["compare", file, "--workdir", work, "--dry-run", "--set", budget]) == 0
    out = capsys.readouterr().out
    assert "budget: 64 sentences seen a row" in out
    assert "What differs between rows" in out
    assert "Pooling*" in out
    assert "Batch " in out
    assert "* Updates: who trains longer" in out
    assert not (tmp_path / "work").exists()


def test_rows_that_differ_in_nothing_but_options_are_not_told(tmp_path: Path) -> None:
    path = tmp_path / "same.toml"
    row = '[[methods]]\nname = "{0}"\nmethod = "simcse"\nconfig = {{ temperature = {0} }}\n'
    path.write_text('corpus = "embedded:sentences"\nmax_steps = 2\n[dev]\ntask = "Embedded-STS-natural"\n'
                    + row.format("0.1") + row.format("0.2"))  # fmt: skip
    plan = make_plan(read_experiment(str(path)), str(path))
    assert planned(plan).columns == ()
    assert told(plan, tmp_path) == ""


@pytest.mark.parametrize(
    ("entry", "shared", "rate", "base_model", "said"),
    [
        ({"config": {"learning_rate": 1.0}}, {"learning_rate": 2.0}, 1.0, None, "given in the file"),
        ({}, {"learning_rate": 2.0}, 2.0, None, "given for all rows"),
        ({}, {}, 3e-5, None, "default of the method"),
        ({}, {}, 4e-5, None, NOT_RECORDED),  # the default was another one then
        ({"preset": "paper", "family": "bert-large"}, {}, 1e-5, None, "Gao et al. 2021, appendix A"),
        ({"preset": "mini"}, {}, 3e-4, "embedded:mini-bert", "searched on the embedded dev part"),
        ({"preset": "paper"}, {}, 3e-4, None, "searched on the embedded dev part"),  # only the mini model has this rate
        ({"preset": "paper"}, {}, 3e-5, None, "preset paper"),  # BERT's, from the paper, and ours for other models
        ({"preset": "paper"}, {}, 7e-5, None, NOT_RECORDED),
        ({"preset": "gone"}, {}, 3e-5, None, NOT_RECORDED),
    ],
)
def test_a_learning_rate_has_an_origin(
    entry: dict[str, Any], shared: dict[str, Any], rate: float, base_model: str | None, said: str
) -> None:
    method = registry.load(registry.METHODS, "simcse")
    assert rate_from({"method": "simcse", **entry}, {"shared": shared}, method, rate, base_model) == said


def test_a_tuned_rate_is_searched() -> None:
    method = registry.load(registry.METHODS, "simcse")
    entry = {"method": "simcse", "name": "SimCSE · tuned", "config": {"learning_rate": 5e-5}}
    tuned = {"rows": [{"label": "SimCSE · tuned", "trials": 8, "values": {"learning_rate": 5e-5}}]}
    assert rate_from(entry, {}, method, 5e-5, tuned=tuned) == "searched: 8 trials on the dev set"


def facts(label: str, **given: Any) -> dict[tuple[str, str], list[RowFacts]]:
    base = given.pop("base_model", "bert")
    config = {"learning_rate": 1e-5, **given.pop("config", {})}
    return {(label, base): [RowFacts(label, base, "simcse", config, True, **given)]}


def test_whole_batches_and_rates_of_several_papers_are_no_difference_that_matters() -> None:
    found = differences(
        facts("a", seen=1024, batch=64, rate_from="Gao et al. 2021")
        | facts("b", seen=1152, batch=192, rate_from="Ours 2022")
    )
    assert [fact.key for fact in found.columns] == ["seen", "batch", "rate_from"]
    assert found.marked == ()
    found = differences(
        facts("a", seen=1024, batch=64, rate_from="Gao et al. 2021")
        | facts("b", seen=1300, batch=192, rate_from="ours: as BERT")
    )
    assert found.marked == ("seen", "rate_from")
    assert [fact.key for fact in found.columns] == ["seen", "rate_from", "batch"]  # what matters stands first


def test_what_differs_between_base_models_only_is_shown_and_not_marked() -> None:
    found = differences(facts("a", base_model="bert", updates=10) | facts("a", base_model="large", updates=20))
    assert [fact.key for fact in found.columns] == ["base", "updates"]
    assert found.marked == ("base",)


def test_what_records_lack_is_said() -> None:
    both = differences(facts("a", rate_from=NOT_RECORDED) | facts("b", rate_from=NOT_RECORDED))
    assert "Rate's origin" in both.unrecorded
    assert not both.columns
    one = differences(facts("a", rate_from=NOT_RECORDED) | facts("b", rate_from="default of the method"))
    assert one.cells["rate_from"] == (NOT_RECORDED, "default of the method")
    assert one.marked == ("rate_from",)


def test_seeds_of_a_row_that_differ_stand_side_by_side() -> None:
    early = RowFacts("a", "bert", "simcse", {}, True, updates=60, planned=100)
    whole = RowFacts("a", "bert", "simcse", {}, True, updates=100, planned=100)
    found = differences({("a", "bert"): [early, whole], ("b", "bert"): [whole]})
    assert found.cells["updates"] == ("60 of 100 / 100", "100")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((0, 10, 20, 24), "4, every 10"),
        ((0, 4), "2, before and after"),
        ((4,), "1"),
        ((0, 125, 250, 300), "4, every 125"),
    ],
)
def test_evaluations_are_counted_with_their_distance(steps: tuple[int, ...], said: str) -> None:
    assert spaced(steps) == said
