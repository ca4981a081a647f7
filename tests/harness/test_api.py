"""The harness from Python: the same records as the commands give, nothing printed, errors raised."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import ModelCard

import harness
from harness.cli import main
from harness.errors import InputError, TrainingStopped
from harness.method import Method, MethodCard, MethodConfig
from harness.results.record import Record
from harness.results.store import read_records
from harness.training import TrainedMethod
from methods.simcse import SimCSE
from tests.support import short_runs
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(240)

BASE = narrow_bert()
SMALL: dict[str, Any] = {
    "name": "small",
    "base_models": [BASE],
    "seeds": [1],
    "suites": ["Embedded-STS-natural"],
    "max_steps": 4,
    "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 80},
    "dev": {"task": "Embedded-STS-natural"},
    "methods": [
        {"method": "pooling", "config": {"pooling": "cls"}},
        {
            "name": "SimCSE",
            "method": "simcse",
            "preset": "mini",
            "config": {
                "pooling": "cls",
                "learning_rate": 3e-4,
                "batch_size": 8,
                "eval_every": 2,
                "train_length": 12,
            },
        },
    ],
}
AS_A_FILE = f"""
base_models = ["{BASE}"]
seeds = [1]
suites = ["Embedded-STS-natural"]
max_steps = 4
precision = "fp32"
corpus = {{ uri = "embedded:sentences", limit = 80 }}
dev = {{ task = "Embedded-STS-natural" }}
[[methods]]
method = "pooling"
config = {{ pooling = "cls" }}
[[methods]]
name = "SimCSE"
method = "simcse"
preset = "mini"
config = {{ pooling = "cls", learning_rate = 3e-4, batch_size = 8, eval_every = 2, train_length = 12 }}
"""


@pytest.fixture(scope="module")
def compared(few_pairs: None, tmp_path_factory: pytest.TempPathFactory) -> harness.Comparison:
    work = tmp_path_factory.mktemp("api") / "work"
    return harness.compare(SMALL, workdir=work, tracking_uri="none", formats=["md"])


def test_the_command_reuses_the_runs_of_a_call(
    compared: harness.Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object, **kwargs: object) -> Record:
        raise AssertionError("a finished run was executed")

    assert [(r.row, r.status) for r in compared.records] == [
        ("pooling", "finished"),
        ("SimCSE", "finished"),
    ]
    assert (compared.status, compared.failed) == ("finished", [])
    short_runs.no_report(monkeypatch)
    file = tmp_path / "small.toml"
    file.write_text(AS_A_FILE)
    monkeypatch.setattr("harness.runs.runner.execute", never)
    options = ["--tracking-uri=none", "--quiet", "--format=md"]
    assert main(["compare", str(file), "--workdir", str(compared.workdir), *options]) == 0
    assert read_records(compared.workdir, "small") == compared.records
    again = harness.compare(
        str(file), workdir=compared.workdir, tracking_uri="none", formats=["md"]
    )
    assert again.records == compared.records


def test_the_command_of_a_run_makes_it_again(
    compared: harness.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        harness,
        "compare",
        lambda experiment, **more: called.append((experiment, more)),
        raising=False,
    )
    exec(compared.records[1].command, {"harness": harness})
    (experiment, more) = called[0]
    assert experiment == SMALL
    assert more["overrides"] == ["seeds=[1]", f'base_models=["{BASE}"]']
    assert more["only"] == ["SimCSE"]  # no other row is trained


def test_a_call_with_an_own_corpus_selects_on_embedded_pairs(tmp_path: Path) -> None:
    from harness.api.experiments import notices, plan_comparison

    (tmp_path / "own.txt").write_text("A dog runs.\nIt rains.\nShe sells maps.\nHe sings.\n")
    keys = {
        "methods": ["simcse"],
        "corpus": str(tmp_path / "own.txt"),
        "suites": ["Embedded-STS-contrast"],
    }
    plan = plan_comparison(keys).plan
    assert plan.dev is not None
    assert plan.dev.name.startswith("Embedded-STS")
    (note,) = [line for line in notices(plan) if "perhaps unlike your text" in line]
    assert note.endswith("to select on another set, which may be a file of pairs: [dev] task = ...")
    embedded = plan_comparison({**keys, "corpus": "embedded:sentences"}).plan
    assert not any("perhaps unlike your text" in line for line in notices(embedded))


def test_progress_goes_to_the_reporter_and_nothing_is_printed(
    compared: harness.Comparison, capfd: pytest.CaptureFixture[str]
) -> None:
    class Lines(harness.Reporter):
        def __init__(self) -> None:
            super().__init__(quiet=True)
            self.lines: list[str] = []

        def finish_run(self, text: str) -> None:
            self.lines.append(f"{self.number} of {self.total}: {text}")

    shown = Lines()
    harness.compare(
        SMALL, workdir=compared.workdir, tracking_uri="none", formats=[], progress=shown
    )
    assert [line[:6] for line in shown.lines] == ["1 of 2", "2 of 2"]
    assert all(line.endswith("(reused)") for line in shown.lines)
    harness.report("small", compared.workdir, formats=["csv"])
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_a_report_is_built_from_records(compared: harness.Comparison, tmp_path: Path) -> None:
    assert compared.report["md"].read_text().startswith("# ")
    written = harness.report("small", compared.workdir, formats=["md"], out=tmp_path / "out")
    assert written["md"].read_bytes() == compared.report["md"].read_bytes()
    with raises_input_error(file=compared.workdir):
        harness.report("smal", compared.workdir)


@pytest.mark.parametrize(
    ("change", "file", "key"),
    [
        ({"seedz": [1]}, "experiment", "seedz"),
        ({"methods": [{"method": "simsce"}]}, 'experiment "small": methods[1]', None),
        (
            {"methods": [{"method": "simcse", "config": {"temperature": -1}}]},
            'experiment "small": methods[1] (simcse)',
            "temperature",
        ),
    ],
)
def test_wrong_input_is_raised_and_writes_nothing(
    tmp_path: Path, change: dict[str, Any], file: str, key: str | None
) -> None:
    with raises_input_error(file=file, key=key):
        harness.compare(SMALL | change, workdir=tmp_path / "work", tracking_uri="none")
    assert not (tmp_path / "work").exists()


def test_a_budget_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    with raises_input_error(key="--tune"):
        harness.compare(SMALL, workdir=tmp_path / "work", tune=harness.Budget(2, seeds=(1,)))
    assert not (tmp_path / "work").exists()


def test_weights_that_are_not_those_of_the_folder_are_refused(tmp_path: Path) -> None:
    texts = ["A dog runs.", "It rains.", "She sells maps.", "He sings."]
    for name, corpus in (("one", texts), ("two", texts[:3])):
        harness.train("whitening", corpus=corpus, dev=None, out=tmp_path / name)
    file, other = (tmp_path / name / "3_Dense" / "model.safetensors" for name in ("one", "two"))
    file.write_bytes(other.read_bytes())
    with raises_input_error(file=file):
        harness.evaluate(tmp_path / "one", "Embedded-STS-natural")
    (words,) = (tmp_path / "two").rglob("tokenizer.json")
    words.write_text(words.read_text().replace('"the"', '"teh"'))
    with raises_input_error(file=words):
        harness.evaluate(tmp_path / "two", "Embedded-STS-natural")


def test_an_evaluation_gives_the_scores_that_a_comparison_gives(
    compared: harness.Comparison, capfd: pytest.CaptureFixture[str]
) -> None:
    run = compared.records[1]
    saved = compared.workdir / "runs" / run.id / "model"
    evaluation = harness.evaluate(saved, ["Embedded-STS-natural"], cached=False)
    assert {s.metric: s.value for s in evaluation.result.scores} == pytest.approx(
        {s.metric: s.value for s in run.scores}
    )
    assert evaluation.as_dict()["pooling"] == evaluation.pooling == "cls"
    assert capfd.readouterr() == ("", "")
    with raises_input_error(file="embedded:mini-bart"):
        harness.evaluate("embedded:mini-bart", ["Embedded-STS-natural"])


def test_a_method_is_trained_saved_and_loaded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = {"batch_size": 8, "eval_every": 2, "epochs": 1}
    out = tmp_path / "model"
    method = harness.train("simcse", preset="mini", config=config, limit=24, out=out)
    texts = ["A dog runs.", "Two children play chess."]
    np.testing.assert_allclose(
        harness.load_model(out).encode(texts), method.encode(texts), atol=1e-6
    )
    assert type(harness.load_model(out)) is type(method)
    read = ModelCard.load(out / "README.md")
    assert (read.data.license, read.data.base_model) == ("apache-2.0", None)
    assert read.text.lstrip().startswith("# simcse, from mini-bert\n")
    assert f"{100 * method.fit_report.training['best_dev']:.2f}" in read.text
    assert f'SentenceTransformer("{out.name}"' in read.text
    assert capfd.readouterr() == ("", "")
    with raises_input_error(key="--out"):
        harness.train("simcse", preset="mini", out=out)
    kept = sorted(tmp_path.rglob("*"))
    with pytest.raises(TrainingStopped, match="rank"):
        harness.train("simcse", preset="mini", config={**config, "min_rank": 1000}, limit=24)
    assert sorted(tmp_path.rglob("*")) == kept


def test_any_other_model_is_loaded_as_an_encoder() -> None:
    vectors = harness.load_model("embedded:mini-bert").encode(["a", "b"])
    assert np.asarray(vectors).shape[0] == 2
    with raises_input_error(file="./no-such-model"):
        harness.load_model("./no-such-model")


def test_importing_the_package_is_free_and_its_names_hide_no_module() -> None:
    ask = "import os, sys, harness; print(sorted(m for m in sys.modules if m.startswith('harness') or m == 'pydantic'))"
    ask += "; print(os.environ['OMP_WAIT_POLICY'])"  # before torch: threads that wait leave the processor to others
    given = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, env=given
    )
    assert done.stdout.split("\n")[:2] == ["['harness']", "PASSIVE"]
    from harness import api

    assert set(api.__all__) <= set(dir(harness))
    assert [name for name in api.__all__ if importlib.util.find_spec(f"harness.{name}")] == []
    with pytest.raises(AttributeError, match="no attribute 'comparer'"):
        _ = harness.comparer


def test_results_are_tidy_frames(compared: harness.Comparison) -> None:
    from harness.results import frames

    scores, pairs, curves, costs = (
        compared.scores(),
        compared.pairs(),
        compared.curves(),
        compared.costs(),
    )
    assert list(scores) == list(frames.SCORES)
    assert list(pairs) == list(frames.PAIRS)
    assert list(curves) == list(frames.CURVES)
    assert len(scores) == sum(len(record.scores) for record in compared.records)
    assert list(scores["row"].cat.categories) == compared.rows == ["pooling", "SimCSE"]
    (kept,) = (
        s.value
        for s in compared.records[1].scores
        if (s.metric, s.aggregation) == ("spearman", "all")
    )
    ours = scores.query("row == 'SimCSE' and metric == 'spearman' and aggregation == 'all'")
    assert ours["value"].tolist() == [kept]
    test = pairs.query("split == 'test'")
    by_row = (
        test.groupby("row", observed=True)[["gold", "score"]]
        .corr(method="spearman")["score"]
        .xs("gold", level=1)
    )
    assert by_row["SimCSE"] == pytest.approx(kept, abs=1e-3)
    assert set(curves["row"]) == {"SimCSE"}
    assert {"loss"} <= set(curves["quantity"])
    assert curves["step"].max() == 4
    assert costs["row"].tolist() == ["pooling", "SimCSE"]
    assert costs["steps"].fillna(0).tolist() == [0, 4]
    assert (costs["evaluate_seconds"] > 0).all()
    assert compared.outcomes().empty


def test_a_new_column_of_costs_is_a_number(
    compared: harness.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in `COSTS` is all that it needs."""
    from harness.results import frames

    monkeypatch.setattr(frames, "COSTS", (*frames.COSTS, "load"))
    costs = compared.costs()
    words = [*frames.RUN, "status"]
    assert set(map(str, costs.drop(columns=words).dtypes)) == {"float64"}
    assert costs["load"].isna().all()
    assert str(costs["seed"].dtype) == "int64"


def test_what_is_loaded_is_what_was_compared(compared: harness.Comparison, tmp_path: Path) -> None:
    again = harness.load(compared.workdir)
    assert (again.name, again.records, again.experiment) == (
        compared.name,
        compared.records,
        compared.experiment,
    )
    assert (
        again.verdict("SimCSE", "pooling").data
        == harness.verdict(compared, "SimCSE", "pooling").data
    )
    with raises_input_error(file=compared.workdir):
        harness.load(compared.workdir, "smal")
    with raises_input_error(file=tmp_path):
        harness.load(tmp_path)
    model = compared.workdir / "runs" / compared.records[1].id / "model"
    assert type(harness.load(model)).__name__ == "SimCSE"
    with raises_input_error(file=compared.workdir):
        harness.load_model(compared.workdir)


def test_tables_and_figures_are_those_of_the_report(compared: harness.Comparison) -> None:
    from matplotlib.figure import Figure

    table = compared.table("embedded")
    assert "SimCSE" in table.to_html()
    assert table.shape[0] == 2
    assert table.attrs["title"]
    file = compared.workdir / "tables.tex"
    file.write_text(table.to_latex())
    assert "\\toprule" in file.read_text()
    plot = compared.plot("losses" if "losses" in compared.plots else next(iter(compared.plots)))
    assert plot._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert isinstance(plot, Figure)
    assert "SimCSE" in compared._repr_html_()
    with raises_input_error(key="nowhere"):
        compared.table("nowhere")
    with raises_input_error(key="nowhere"):
        compared.plot("nowhere")


def test_figures_follow_the_callers_style(compared: harness.Comparison) -> None:
    import matplotlib as mpl

    (axes, *_) = compared.plot("losses").axes
    own = {
        "font.size": 5.0,
        "axes.labelsize": 14.0,
        "axes.prop_cycle": mpl.cycler(color=["#123456", "#654321"]),
        "figure.facecolor": "#eeeeee",
    }
    with mpl.rc_context(own):
        plot = compared.plot("losses")
        assert mpl.colors.to_hex(plot.get_facecolor()) == "#eeeeee"
        (changed, *_) = plot.axes
    assert axes.xaxis.label.get_size() != 14 == changed.xaxis.label.get_size()
    assert {mpl.colors.to_hex(line.get_color()) for line in changed.lines} <= {"#123456", "#654321"}
    assert (
        compared.plot("losses").axes[0] is axes
    )  # and the next call, without it, gives the first one
    assert mpl.colors.to_hex(compared.plot("losses").get_facecolor()) == "#ffffff"


def test_a_verdict_is_what_the_command_prints(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = harness.verdict(compared, "SimCSE", "pooling")
    assert main(["verdict", "--workdir", str(compared.workdir), "SimCSE", "pooling"]) == 0
    assert capsys.readouterr().out.strip() == str(answer)
    assert answer.frame().loc[0, ["a", "b"]].tolist() == ["SimCSE", "pooling"]
    every = harness.verdict(compared.workdir)
    assert main(["verdict", "--workdir", str(compared.workdir)]) == 0
    assert capsys.readouterr().out.rstrip("\n") == every.text
    assert len(every.frame()) == 1
    assert harness.power(sd=0.8).frame()["least"].is_monotonic_decreasing


@pytest.mark.usefixtures("few_pairs")
def test_methods_are_names_classes_and_instances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Mine(Method):
        name = "mine_of_the_tests"
        card = MethodCard("Mean pooling", "none")
        version = 1

        def fit(self, corpus: Any = None, context: Any = None) -> Mine:
            self._encoder = self.load_base()
            return self

    rows = ["pooling", Mine, {"name": "cls", "method": Mine(MethodConfig(pooling="cls"))}]
    found = harness.compare(
        rows,
        name="kinds",
        seeds=[1],
        suites="Embedded-STS-natural",
        corpus="embedded:sentences",
        max_steps=2,
        workdir=tmp_path,
        tracking_uri="none",
        formats=[],
        progress=harness.Reporter(),
    )
    assert found.rows == ["pooling", "mine_of_the_tests", "cls"]
    assert (found.name, found.experiment.seeds, found.experiment.max_steps) == ("kinds", [1], 2)
    assert "note: checkpoints are selected on Embedded-STS-natural; dev=" in capsys.readouterr().err
    assert [record.config["pooling"] for record in found.records] == ["mean", "mean", "cls"]
    assert harness.train(Mine(MethodConfig(pooling="cls"))).config.pooling == "cls"
    (first, *_) = harness.evaluate(Mine, "Embedded-STS-natural").result.scores
    assert first in found.records[1].scores
    with raises_input_error(key="method"):
        harness.evaluate(SimCSE, "Embedded-STS-natural")
    with raises_input_error(key="method"):
        harness.train(3)  # type: ignore[arg-type]


def test_a_trained_method_without_a_card_learns_from_sentences() -> None:
    class Bare(TrainedMethod):
        name = "bare"

    method = Bare  # abstract: it has no loss
    assert (method.card.title, method.card.text, method.card.supervision) == (
        "bare",
        "sentences",
        "unsupervised",
    )
    assert (SimCSE().text, SimCSE().supervision) == ("sentences", "unsupervised")


def test_whatever_makes_vectors_is_evaluated(compared: harness.Comparison) -> None:
    from sentence_transformers import SentenceTransformer

    saved = compared.workdir / "runs" / compared.records[1].id / "model"
    expected = (
        harness.evaluate(saved, "Embedded-STS-natural", cached=False).scores()["value"].tolist()
    )
    method = harness.load_model(saved)
    transformer = SentenceTransformer(str(saved), device="cpu")
    for model in (method, transformer, lambda texts: method.encode(texts)):
        found = harness.evaluate(model, "Embedded-STS-natural")
        assert found.scores()["value"].tolist() == pytest.approx(expected, abs=1e-4)
    assert found.pooling == "unknown"
    assert "Embedded-STS-natural" in found._repr_html_()
    assert len(found.pairs()) > 0
    with raises_input_error(key="model"):
        harness.evaluate(3, "Embedded-STS-natural")  # type: ignore[arg-type]


@pytest.mark.usefixtures("few_pairs", "no_report")
def test_a_study_gives_frames_and_the_experiment_of_its_best(tmp_path: Path) -> None:
    keys = {
        "name": "temperatures",
        "method": "simcse",
        "base_model": BASE,
        "sampler": "grid",
        "steps": 2,
        "seeds": [7],
        "config": {"batch_size": 8, "train_length": 12, "eval_every": 1},
        "space": {"temperature": [0.05, 0.5]},
        "corpus": {"uri": "embedded:sentences", "limit": 40},
        "dev": {"task": "Embedded-STS-natural"},
    }
    found = harness.study(keys, tmp_path, tracking_uri="none")
    assert harness.load(tmp_path).best == found.best
    assert sorted(found.trials()["temperature"]) == [0.05, 0.5]
    assert found.best["temperature"] in (0.05, 0.5)
    assert found.failed == {}
    curves = found.curves()
    assert curves["row"].nunique() == 2
    assert {"loss"} <= set(curves["quantity"])
    assert "temperature" in found._repr_html_()
    assert found.table("best").shape[0] >= 1
    experiment = found.experiment(default=True)
    assert [row["name"] for row in experiment["methods"]] == ["simcse (tuned)", "simcse (default)"]
    assert experiment["methods"][0]["config"]["temperature"] == found.best["temperature"]
    assert experiment["seeds"] == [7]


def test_a_frame_is_training_text_by_its_columns(
    tmp_path: Path,
) -> None:
    import pandas as pd

    frame = pd.DataFrame({"body": ["A dog runs.", "It rains."] * 4, "source": "web"})
    config = {"max_steps": 1, "batch_size": 2}
    trained = [
        harness.train("simcse", corpus=corpus, config=config, dev=None, columns=columns)
        for corpus, columns in ((frame, {"text": "body"}), (frame["body"].tolist(), None))
    ]
    a, b = (method.encode(["A cat sleeps."]) for method in trained)
    assert (a == b).all()
    with pytest.raises(InputError) as caught:
        harness.train("simcse", corpus=frame, config=config, dev=None)
    assert caught.value.key == "columns"


@pytest.mark.parametrize("key", ["corpus", "dev", "suites", "base_models"])
@pytest.mark.parametrize("kind", ["frame", "set", "number"])
def test_what_is_no_key_of_a_comparison_is_refused(tmp_path: Path, key: str, kind: str) -> None:
    frame = pd.DataFrame({"body": ["a b", "c d"]})
    value = {"frame": frame, "set": {"a b"}, "number": 3}[kind]
    with pytest.raises(InputError) as refused:
        harness.compare(
            ["simcse"], workdir=tmp_path, tracking_uri="none", formats=[], **{key: value}
        )
    assert key in (refused.value.key or str(refused.value)) or kind in ("frame", "set")
    assert not list(tmp_path.iterdir())
