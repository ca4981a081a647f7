"""The numbers that sentences are encoded in, and how much scores move with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import harness
from harness.cli import main
from harness.encoder import Encoder
from harness.encoder.foreign import run_by_sentence_transformers
from harness.evaluation.sensitivity import is_causal
from harness.runs.differences import find_planned_differences
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from tests.support.encoder_models import TEXTS, base_model, causal_model
from tests.support.errors import raises_input_error
from tests.support.short_runs import few_pairs, no_report

WORDS = list(filter(None, TEXTS))
TASK = "Embedded-STS-contrast"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_pairs(monkeypatch)
    no_report(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def plain_vectors(name: str, dtype: torch.dtype) -> np.ndarray:
    """Mean states of the texts by transformers alone, one text at a time."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(name, dtype=dtype).eval()
    tokenizer = AutoTokenizer.from_pretrained(name)
    rows = []
    for text in WORDS:
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state
        rows.append(states[0].float().mean(0).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["bert", "causal"])
def test_vectors_are_those_of_transformers_in_the_same_numbers(kind: str, tmp_path: Path) -> None:
    name = causal_model(tmp_path) if kind == "causal" else base_model(tmp_path)
    encoder = Encoder.from_pretrained(name, pooling="mean").eval()
    exact = np.stack([encoder.encode(text) for text in WORDS])
    encoder.set_dtype("bf16")
    rough = np.stack([encoder.encode(text) for text in WORDS])
    assert rough.dtype == np.float32
    np.testing.assert_allclose(exact, plain_vectors(name, torch.float32), atol=1e-5)
    np.testing.assert_allclose(rough, plain_vectors(name, torch.bfloat16), atol=1e-5)
    apart = np.abs(rough - exact).max()
    assert 1e-4 < apart < 0.1


def test_sentence_transformers_runs_a_model_in_the_named_numbers(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    Encoder.from_pretrained(base_model(tmp_path / "base"), pooling="mean").save(tmp_path / "saved")
    foreign = run_by_sentence_transformers(str(tmp_path / "saved"), "a test")
    exact = foreign.encode(TEXTS)
    foreign.set_dtype("bf16")
    options = {"dtype": torch.bfloat16}
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu", model_kwargs=options)
    np.testing.assert_allclose(foreign.encode(TEXTS), theirs.encode(TEXTS).astype("f4"), atol=1e-6)
    assert np.abs(foreign.encode(TEXTS) - exact).max() > 1e-4


def rows(**second: Any) -> Any:
    config = {"pooling": "mean"}
    methods = [
        {"name": "whole", "method": "pooling", "config": config},
        {"name": "half", "method": "pooling", "config": {**config, **second}},
    ]
    keys = {"name": "n", "seeds": 1, "suites": [TASK], "dev": None, "methods": methods}
    return read_experiment(keys)


def test_a_row_in_fewer_digits_is_a_run_of_its_own_and_float32_keeps_its_id() -> None:
    plan = make_plan(rows(dtype="bf16"), "n")
    whole, half = plan.jobs
    assert whole.id != half.id
    assert "dtype" not in whole.spec.config
    assert make_plan(rows(dtype="fp32"), "n").jobs[0].id == whole.id
    texts = find_planned_differences(plan).texts
    assert texts["dtype"] == ("fp32", "bf16")


def test_rows_are_scored_in_their_own_numbers() -> None:
    found = harness.compare(rows(dtype="bf16"), workdir="work", tracking_uri="none")
    scores = found.scores()
    values = set()
    options: Any = {"pooling": "mean", "cached": False}
    for row, dtype in (("whole", "fp32"), ("half", "bf16")):
        one = harness.evaluate("embedded:mini-bert", TASK, dtype=dtype, **options)
        own = scores[scores["row"] == row]["value"].tolist()
        assert own == pytest.approx(one.scores()["value"].tolist(), abs=1e-9)
        values.add(tuple(own))
    assert len(values) == 2


def test_stored_vectors_of_other_numbers_are_not_used() -> None:
    model = "embedded:mini-bert"
    first = harness.evaluate(model, TASK)
    half = harness.evaluate(model, TASK, dtype="bf16")
    again = harness.evaluate(model, TASK, dtype="bf16")
    assert "sentences_cached" not in half.result.cost
    assert again.result.cost["sentences_cached"] > 0
    assert again.scores()["value"].tolist() == half.scores()["value"].tolist()
    assert first.scores()["value"].tolist() != half.scores()["value"].tolist()
    assert half.as_dict()["environment"]["precision"] == "bf16"


def test_a_trained_method_is_evaluated_in_a_copy() -> None:
    method = harness.train("simcse", preset="mini", corpus=TEXTS * 4, max_steps=1, dev=None)
    before = method.encode(TEXTS)
    harness.evaluate(method, TASK, dtype="bf16")
    assert method.dtype == "fp32"
    assert (method.encode(TEXTS) == before).all()


@pytest.mark.parametrize("model", [lambda texts: np.ones((len(texts), 2)), "vectors"])
def test_vectors_that_are_made_elsewhere_have_no_dtype(model: Any) -> None:
    if model == "vectors":
        np.savez("v.npz", text=np.array(["a"]), vector=np.ones((1, 2), dtype="f4"))
        model = "v.npz"
    with raises_input_error(key="dtype"):
        harness.evaluate(model, TASK, dtype="bf16")


def test_a_method_without_a_transformer_cannot_change_its_numbers(tmp_path: Path) -> None:
    keys = {"pooling": "mean", "dtype": "bf16", "model": "v.npz"}
    with raises_input_error():
        read = {
            "name": "n",
            "suites": [TASK],
            "methods": [{"method": "pretrained", "config": keys}],
        }
        make_plan(read_experiment(read), "n")


def test_what_is_causal_is_found_by_a_pass(tmp_path: Path) -> None:
    assert is_causal(Encoder.from_pretrained(causal_model(tmp_path / "causal")))
    assert not is_causal(Encoder.from_pretrained(base_model(tmp_path / "bert")))


def test_scores_under_each_setting_beside_the_reference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = causal_model(tmp_path / "causal")
    found = harness.sensitivity(name, TASK)
    table = found.scores().set_index("setting")
    assert list(table.index) == ["reference", "dtype", *["batch_size"] * 2, "padding", "attention"]
    reference = table["score"]["reference"]
    assert (table["difference"] == table["score"] - reference).all()
    alone = harness.evaluate(name, TASK, dtype="bf16", cached=False)
    assert table["score"]["dtype"] == pytest.approx(alone.scores()["value"][0], abs=1e-9)
    assert abs(table["difference"]["attention"]) < 1e-3
    assert found.largest() == table["difference"].abs().max()
    command = ["evaluate", name, "--suite", TASK, "--sensitivity", "--json"]
    chosen = ["--vary", "batch_size=2", "--vary", "dtype", "--vary", "batch_size=3"]
    assert main([*command, *chosen]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    settings = [(row["setting"], row["value"]) for row in rows[1:]]
    assert settings == [("batch_size", "2"), ("batch_size", "3"), ("dtype", "bf16")]


def test_padding_on_the_left_gives_the_vectors_of_the_right_of_a_causal_model(
    tmp_path: Path,
) -> None:
    encoder = Encoder.from_pretrained(causal_model(tmp_path / "causal"), pooling="last").eval()
    right = encoder.encode(TEXTS)
    encoder.padding_side = "left"
    assert encoder.collate([[5], [5, 6, 7]])["attention_mask"].tolist() == [[0, 0, 1], [1, 1, 1]]
    # Its positions are learnt and count from the left, so alone a text has the same vector.
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=1), right, atol=1e-5)


def test_settings_that_do_not_exist_are_refused() -> None:
    model = "embedded:mini-bert"
    with raises_input_error(key="vary"):
        harness.sensitivity(model, TASK, vary=["batch"])
    with raises_input_error(key="vary"):
        harness.sensitivity(model, TASK, vary={"batch_size": [0]})
    with raises_input_error(key="dtype"):
        harness.sensitivity(model, TASK, vary={"dtype": ["float16"]})
    with raises_input_error(key="attention"):
        harness.sensitivity(model, TASK, vary={"attention": ["quick"]})
    found = harness.sensitivity(model, TASK, vary=["padding"])
    assert len(found.rows) == 1
    assert "not causal" in found.notes[0]


def test_what_an_evaluation_remarks_is_a_note() -> None:
    """A score that moves because vectors overflow is another finding than one that rounding moves."""

    def model(texts: list[str], batch_size: int) -> np.ndarray:
        vectors = np.array([[len(text), text.count("e"), 1.0] for text in texts])
        if batch_size == 8:
            vectors[0] = np.inf
        return vectors

    found = harness.sensitivity(model, [TASK, "embedded-layers"], vary={"batch_size": [8, 16]})
    assert {row.task for row in found.rows} == {TASK}
    layers = [note for note in found.notes if note.startswith("layers:")]
    assert len(layers) == 2
    (overflow,) = set(found.notes) - set(layers)
    assert overflow.startswith("batch_size 8: ")
    assert "NaN or infinity" in overflow
