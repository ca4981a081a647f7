"""The keywords that `train`, `compare`, `study` and `evaluate` share: options of methods by their
names, and texts, pairs and frames in hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import harness
from harness.api.experiments import _source as _comparison_of
from harness.api.studies import _source as _study_of
from harness.errors import InputError
from harness.method import Method, MethodCard
from harness.runs.experiment import read_experiment
from harness.sources import load_corpus
from harness.sources.corpus.corpus import corpus_in_memory
from methods.simcse import SimCSE
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs", "no_report")]

TEXTS = ["A dog runs.", "It rains.", "She sells maps.", "He sings.", "Rain falls.", "Dogs bark."]
QUIET: dict[str, Any] = {
    "base_models": narrow_bert(),
    "seeds": 1,
    "suites": "Embedded-STS-natural",
    "max_steps": 1,
    "batch_size": 2,
    "tracking_uri": "none",
    "formats": [],
}


def spec_of(found: harness.Comparison, row: str) -> Any:
    return next(record.spec for record in found.records if record.row == row)


def test_the_same_keywords_train_compare_and_search(tmp_path: Path) -> None:
    trained = harness.train(
        "simcse", preset="mini", corpus=TEXTS, dev=None, max_steps=1, batch_size=2, temperature=0.1
    )
    assert trained.config.batch_size == 2
    assert trained.fit_report.training["steps"] == 1
    rows = ["simcse", "pooling"]
    compared = harness.compare(
        rows, workdir=tmp_path, preset="mini", corpus=TEXTS, temperature=0.1, **QUIET
    )
    in_comparison = spec_of(compared, "simcse").config
    search = harness.study(
        "simcse",
        tmp_path / "study",
        space={"learning_rate": [1e-4]},
        sampler="grid",
        preset="mini",
        corpus=TEXTS,
        seeds=1,
        max_steps=1,
        batch_size=2,
        temperature=0.1,
        tracking_uri="none",
    )
    in_study = search.records[0].spec.config
    alone = trained.config.model_dump(mode="json")
    assert alone["temperature"] == 0.1
    different = {"learning_rate", "eval_every", "max_steps"}
    for config in (in_comparison, in_study):
        same = [key for key in alone if key not in different and config[key] == alone[key]]
        assert set(alone) - set(same) == different
    assert {record.spec.max_steps for record in search.records} == {1}
    assert spec_of(compared, "pooling").config.keys().isdisjoint({"batch_size", "temperature"})


def test_a_row_keeps_its_own_options_and_preset(tmp_path: Path) -> None:
    rows = [
        {"name": "own", "method": "simcse", "config": {"temperature": 0.2, "batch_size": 2}},
        {"name": "given", "method": "simcse"},
    ]
    found = harness.compare(
        rows, workdir=tmp_path, corpus=TEXTS, shared={"temperature": 0.1, "pooling": "cls"}, **QUIET
    )
    assert spec_of(found, "own").config["temperature"] == 0.2
    assert spec_of(found, "given").config["temperature"] == 0.1
    assert {spec_of(found, row).config["pooling"] for row in ("own", "given")} == {"cls"}


def test_options_of_an_instance_stay_below_those_of_its_row_or_study(tmp_path: Path) -> None:
    instance = SimCSE(SimCSE.configure({"temperature": 0.2, "batch_size": 8}), base_model="mine")
    row = {"method": instance, "config": {"batch_size": 2}}
    (entry,) = _comparison_of([row]).methods  # type: ignore[union-attr]
    assert entry.config == {"temperature": 0.2, "batch_size": 2}
    assert entry.base_models == ["mine"]
    keys = _study_of({**row, "space": {"learning_rate": [1e-4]}})
    assert keys["config"] == {"temperature": 0.2, "batch_size": 2}  # type: ignore[index]
    assert keys["base_model"] == "mine"  # type: ignore[index]


def test_shared_values_of_a_call_leave_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[shared]\npooling = "cls"\n[[methods]]\nmethod = "pooling"\n')
    given = {"workdir": tmp_path / "work", "tracking_uri": "none", "formats": [], "seeds": 1}
    found = harness.compare(
        file, shared={"max_length": 16}, suites=["Embedded-STS-natural"], **given
    )
    config = found.records[0].spec.config
    assert (config["pooling"], config["max_length"]) == ("cls", 16)


@pytest.mark.parametrize(
    ("call", "keyword", "meant"),
    [
        (lambda **k: harness.train("simcse", corpus=TEXTS, dev=None, **k), "max_step", "max_steps"),
        (lambda **k: harness.train("simcse", corpus=TEXTS, dev=None, **k), "tmperature", "temper"),
        (lambda **k: harness.compare(["simcse"], **k), "seedz", "seeds"),
        (lambda **k: harness.compare(["simcse"], **k), "batchsize", "batch_size"),
        (lambda **k: harness.study("simcse", **k), "trails", "trials"),
        (lambda **k: harness.study("simcse", **k), "temprature", "temperature"),
        (lambda **k: harness.evaluate("embedded:mini-bert", "sts", **k), "poolings", "pooling"),
    ],
)
def test_an_unknown_keyword_is_refused_with_the_nearest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any, keyword: str, meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        call(**{keyword: 1})
    assert refused.value.key == keyword
    assert f'"{meant}' in refused.value.message
    assert not list(tmp_path.iterdir())


def test_options_of_a_class_that_learns_nothing_are_keywords_of_evaluate() -> None:
    class Cut(Method):
        name = "cut_of_the_tests"
        card = MethodCard("Mean pooling of few tokens", "none")
        version = 1

        def fit(self, corpus: Any = None, context: Any = None) -> Cut:
            self._encoder = self.load_base()
            return self

    whole = harness.evaluate(Cut, "Embedded-STS-natural")
    cut = harness.evaluate(Cut, "Embedded-STS-natural", max_length=4)
    assert whole.scores()["value"].iloc[0] != cut.scores()["value"].iloc[0]
    with pytest.raises(InputError) as refused:
        harness.evaluate(Cut, "Embedded-STS-natural", first_layers=0)
    assert refused.value.key == "first_layers"


PAIRS = [("A dog runs.", "A dog is running."), ("It rains.", "Rain falls."), ("Hi.", "Hello.")]
FORMS: dict[str, Any] = {
    "list": (TEXTS, None),
    "tuple": (tuple(TEXTS), None),
    "frame": (pd.DataFrame({"body": TEXTS, "id": range(6)}), {"text": "body"}),
    "corpus": (corpus_in_memory(TEXTS, "sentences", "mine"), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_in_hand_are_the_corpus_of_a_comparison(tmp_path: Path, form: str) -> None:
    corpus, columns = FORMS[form]
    found = harness.compare(
        ["simcse"], workdir=tmp_path / "work", corpus=corpus, columns=columns, **QUIET
    )
    text = spec_of(found, "simcse").corpus
    plain = tmp_path / "plain.txt"
    plain.write_text("".join(f"{line}\n" for line in TEXTS))
    assert text["sha256"] == load_corpus(str(plain)).sha256
    assert (text["count"], text["kind"]) == (6, "sentences")
    # what the experiment file of the work directory says is run again from its own data
    file = tmp_path / "work" / "comparisons" / "comparison.toml"
    again = harness.compare(file, workdir=tmp_path / "work", tracking_uri="none", formats=[])
    assert [record.id for record in again.records] == [record.id for record in found.records]


def test_an_option_that_was_emptied_is_empty_in_the_file_of_the_work_directory(
    tmp_path: Path,
) -> None:
    """Without a word in the file, self_guided would stop after ten worse evaluations."""
    row = {"method": "self_guided", "config": {"patience": None, "head_width": 8}}
    work = tmp_path / "work"
    found = harness.compare([row], workdir=work, corpus=TEXTS, **QUIET)
    assert spec_of(found, "self_guided").config["patience"] is None
    file = work / "comparisons" / "comparison.toml"
    again = harness.compare(file, workdir=work, tracking_uri="none", formats=[])
    assert [record.id for record in again.records] == [record.id for record in found.records]


def test_a_data_set_and_pairs_with_labels_are_a_corpus(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    table = {"a": [a for a, _ in PAIRS], "b": [b for _, b in PAIRS], "label": ["x", "y", "x"]}
    given = datasets.Dataset.from_dict(table)
    for corpus, columns in ((given, {"anchor": "a", "positive": "b"}), (PAIRS, None)):
        found = harness.compare(
            ["simcse_supervised"],
            workdir=tmp_path / str(columns is None),
            corpus=corpus,
            columns=columns,
            **QUIET,
        )
        text = spec_of(found, "simcse_supervised").corpus
        assert (text["kind"], text["count"]) == ("pairs", 3)


def test_frames_are_suites_and_dev_sets_of_comparisons(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "sentence1": [f"A dog runs {n} miles." for n in range(40)],
            "sentence2": [f"A dog walks {n * n} miles." for n in range(40)],
            "score": [n % 5 for n in range(40)],
        }
    )
    settings = {**QUIET, "suites": frame, "dev": frame}
    found = harness.compare(["simcse"], workdir=tmp_path / "work", corpus=TEXTS, **settings)
    alone = harness.evaluate("embedded:mini-bert", frame)
    (tested,) = {score.n for score in found.records[0].scores}
    assert 0 < tested < 40 == alone.result.scores[0].n
    keys = read_experiment(tmp_path / "work" / "comparisons" / "comparison.toml")
    assert keys.dev is not None
    assert keys.dev.file is not None
    assert keys.dev.file.path.is_file()


@pytest.mark.parametrize("key", ["suites", "dev"])
@pytest.mark.parametrize("value", [{"a", "b"}, [1, 2], b"abc"])
def test_what_is_no_table_is_refused_under_the_name_that_it_was_given(
    tmp_path: Path, key: str, value: Any
) -> None:
    settings = {**QUIET, key: value}
    with raises_input_error(key=key) as caught:
        harness.compare(["simcse"], workdir=tmp_path / "work", corpus=TEXTS, **settings)
    assert str(caught.value).startswith(f"{key}: ")


def test_one_method_is_trained_on_the_same_forms(tmp_path: Path) -> None:
    """Text and dev set as file, table and frame: the same training, and the same dev score."""
    pairs = pd.DataFrame({"sentence1": TEXTS, "sentence2": TEXTS[::-1], "score": range(6)})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    table = pd.DataFrame({"body": TEXTS})
    table.to_csv(tmp_path / "text.csv", index=False)
    names = {"text": "body"}
    settings = {"uri": str(tmp_path / "text.csv"), "columns": names}
    calls: list[dict[str, Any]] = [
        {"corpus": table, "columns": names, "dev": pairs},
        {"corpus": settings, "dev": tmp_path / "pairs.csv"},
        {
            "corpus": tmp_path / "text.csv",
            "columns": names,
            "dev": {"task": f"{tmp_path}/pairs.csv"},
        },
    ]
    found = []
    for call in calls:
        method = harness.train("simcse", max_steps=1, batch_size=2, **call)
        dev = method.fit_report.training["best_dev"]
        found.append((dev, method.encode(TEXTS).tobytes()))
    assert len(set(found)) == 1
    with raises_input_error(key="dev"):
        harness.train("simcse", max_steps=1, dev=3)
    with raises_input_error(file="training text"):
        harness.train("simcse", max_steps=1, corpus={"text": TEXTS})


def test_nothing_stays_of_a_call_that_does_not_begin(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with pytest.raises(InputError):
        harness.compare(["simcse"], workdir=work, corpus=TEXTS, preset="no-such", **QUIET)
    assert not work.exists()
    with pytest.raises(InputError):
        harness.compare(["simcse"], workdir=work, corpus=set(TEXTS), **QUIET)
    assert not work.exists()
