"""The command line and Python take the same: by the same names, with the same defaults."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import harness
from harness.cli import build_parser, main
from harness.runs.experiment import read_experiment
from tests.support.errors import raises_input_error

RESULT = ["workdir", "scores"]  # together they are what Python calls `found`
SHOWN = ["help", "json", "quiet"]  # how an answer is shown
BY_SET = "reached by --set"


@dataclass(frozen=True)
class Pair:
    """A command and its function.

    Attributes:
        called: option -> the keyword that it is.
        shell: options of the shell alone.
        python: keywords of Python alone -> why.
    """

    command: str
    function: Callable[..., Any]
    called: Mapping[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = ()
    python: Mapping[str, str] = field(default_factory=dict)


RUNS = {"executor": "executor", "workers": "executor", "suite": "suites"}
FOUND = dict.fromkeys(RESULT, "found")
PAIRS = [
    Pair("verdict", harness.verdict, {**FOUND, "rows": "a"}, python={"b": "the second of rows"}),
    Pair("power", harness.power, {**FOUND, "pair": "a"}, python={"b": "the second of pair"}),
    Pair("gate", harness.gate, FOUND),
    Pair("examples", harness.examples, {**FOUND, "rows": "a"}, python={"b": "the second of rows"}),
    Pair("why", harness.why, {**FOUND, "workers": "executor", "format": "formats"}),
    Pair(
        "pack",
        harness.pack,
        {"workdir": "found", "name": "comparison", "no_data": "data"},
    ),
    Pair("report build", harness.report, {"format": "formats"}),
    Pair(
        "evaluate",
        harness.evaluate,
        {"suite": "suites", "no_cache": "cached"},
        shell=("sensitivity", "vary"),
    ),
    Pair(
        "evaluate",
        harness.sensitivity,
        {"suite": "suites"},
        shell=(
            "sensitivity",
            "backend",
            "mteb_results",
            "model_name",
            "no_cache",
            "revision",
            "trust_remote_code",
            "vary",
            "version",
        ),
        python={"vary": "with values, as KEY=V,V"},
    ),
    Pair("train", harness.train, python={"columns": "in the table of --corpus"}),
    Pair(
        "compare",
        harness.compare,
        {
            **RUNS,
            "base_model": "base_models",
            "format": "formats",
            "max_seeds": "until",
            "equivalence": "until",
        },
        shell=("dry_run", "measure", "freeze"),
        python=dict.fromkeys(
            ("name", "columns", "limit", "max_steps", "preset", "shared", "precision"), BY_SET
        )
        | {"base_model": "the only one of base_models"},
    ),
    Pair(
        "study run",
        harness.study,
        {**RUNS, "study": "source"},
        shell=("dry_run",),
        python=dict.fromkeys(
            (
                "name",
                "space",
                "trials",
                "sampler",
                "columns",
                "limit",
                "max_steps",
                "preset",
                "config",
                "precision",
            ),
            BY_SET,
        ),
    ),
]


def parser_of(command: str) -> argparse.ArgumentParser:
    parser = build_parser()
    for word in command.split():
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parser = action.choices[word]
    return parser


def is_nothing(value: Any) -> bool:
    return value is None or value == "" or value == () or value == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.function.__name__)
def test_a_command_and_its_function_take_the_same(pair: Pair) -> None:
    ignored = {*SHOWN, *pair.shell}
    options = {}
    for action in parser_of(pair.command)._actions:
        if action.dest not in ignored:
            options[action.dest] = action.default
    keywords = {}
    for name, parameter in signature(pair.function).parameters.items():
        if name != "progress" and parameter.kind is not Parameter.VAR_KEYWORD:
            keywords[name] = parameter.default
    named = {option: pair.called.get(option, option) for option in options}
    assert set(named.values()) == set(keywords) - set(pair.python)
    for option, keyword in named.items():
        if keyword != option:
            continue  # several words of the shell, or the opposite of a keyword
        default, other = options[option], keywords[keyword]
        if other is Parameter.empty or (is_nothing(default) and is_nothing(other)):
            continue
        if isinstance(default, Path):
            other = Path(other)
        if keyword == "dev":
            other = other.task
        assert default == other, keyword


def test_one_value_needs_no_list(tmp_path: Path) -> None:
    """A letter of a text is never taken for one of several values."""
    file = tmp_path / "scores.csv"
    file.write_text(
        "row,seed,score\n" + "".join(f"{r},{s},{s}.5\n" for r in "ab" for s in (1, 2, 3))
    )
    with raises_input_error(key="format"):
        harness.report(str(file), tmp_path, formats="htm")
    written = harness.report(str(file), tmp_path, formats="md")
    assert sorted(written) == ["json", "md"]
    with raises_input_error(key="--only"):
        harness.compare(["pooling"], workdir=tmp_path / "w", only="simcse", formats="md")
    with raises_input_error(key="name"):
        harness.compare(["pooling"], workdir=tmp_path / "w", overrides="name=a/b")


@pytest.mark.parametrize(
    ("keywords", "key"),
    [
        ({"until": "yes"}, "until"),
        ({"tune": "4"}, "tune"),
        ({"base_model": "a", "base_models": ["b"]}, "base_model"),
        ({"columns": ["text"]}, "columns"),
        ({"shared": ["pooling"]}, "shared"),
    ],
)
def test_odd_keywords_are_refused(keywords: dict[str, Any], key: str, tmp_path: Path) -> None:
    with raises_input_error(key=key):
        harness.compare(["pooling"], workdir=tmp_path, **keywords)
    assert not list(tmp_path.iterdir())


def test_no_dev_set_has_one_name_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('suites = ["embedded"]\ndev = "none"\n[[methods]]\nmethod = "simcse"\n')
    assert read_experiment(str(file)).dev is None
    assert (
        read_experiment({"methods": [{"method": "simcse"}], "name": "a"}, ["dev=none"]).dev is None
    )
    again = read_experiment(read_experiment(str(file)).model_dump(mode="json", exclude_unset=True))
    assert again.dev is None
    method = harness.train(
        "simcse", corpus=["A dog runs.", "It rains."], batch_size=2, max_steps=1, dev="none"
    )
    assert method.fit_report.training["best_dev"] is None


def test_an_experiment_without_a_dev_set_is_written_as_such(tmp_path: Path) -> None:
    """Left out of the file, the key would be STS-B."""
    from harness.runs.own_data import experiment_text

    given = {"name": "a", "dev": None, "methods": [{"method": "simcse"}]}
    experiment = read_experiment(given)
    text = experiment_text(experiment.model_dump(mode="json", exclude_defaults=True))
    file = tmp_path / "a.toml"
    file.write_text(text)
    assert read_experiment(str(file)).dev is None


def test_a_decision_needs_a_dev_set() -> None:
    with raises_input_error(key="incumbent"):
        read_experiment("adapt", ["dev=none"])


def test_prompts_may_be_a_file_in_python_too(tmp_path: Path) -> None:
    file = tmp_path / "prompts.json"
    pairs = pd.DataFrame({"sentence1": ["a b", "c d", "e f"], "sentence2": ["a", "x", "e g"]})
    pairs["score"] = [3, 1, 2]
    file.write_text(json.dumps({"STS": "query: "}))
    scored = [
        harness.evaluate("embedded:mini-bert", pairs, prompts=prompts, cached=False).scores()
        for prompts in (file, {"STS": "query: "}, None)
    ]
    protocols = [one["protocol"].tolist() for one in scored]
    assert protocols[0] == protocols[1] != protocols[2]
    file.write_text('{"STS": 3}')
    with raises_input_error(file=file, key="prompts"):
        harness.evaluate("embedded:mini-bert", pairs, prompts=str(file))
    with raises_input_error(key="prompts"):
        harness.evaluate("embedded:mini-bert", pairs, prompts={"STS": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "option", [["--backend", "onnx"], ["--mteb-results", "r"], ["--model-version", "2"]]
)
def test_sensitivity_refuses_what_it_would_ignore(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "embedded:mini-bert", "--sensitivity", *option]) == 2
    assert option[0] in capsys.readouterr().err


def test_scores_of_others_refuse_what_only_a_comparison_has() -> None:
    frame = pd.DataFrame(
        {"row": list("aaabbb"), "seed": [1, 2, 3] * 2, "score": [63.0, 64, 65, 61, 62, 63]}
    )
    with raises_input_error(key="--block"):
        harness.verdict(frame, block="table-1")
    with raises_input_error(key="--without-overlap"):
        harness.verdict(frame, "a", "b", without_overlap=True)
    with raises_input_error(key="--comparison"):
        harness.power(frame, comparison="mine")
    with raises_input_error(key="--with-texts"):
        harness.report(frame, with_texts=True)


def test_a_frame_of_scores_has_a_report(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"row": list("aaabbb"), "seed": [1, 2, 3] * 2, "score": [63.0, 64, 65, 61, 62, 63]}
    )
    written = harness.report(frame, tmp_path, formats=["md"])
    assert written["md"] == tmp_path / "reports" / "scores" / "report.md"
    with raises_input_error(key="name"):
        harness.report(3, tmp_path)  # type: ignore[arg-type]


def test_power_of_scores_without_examples_speaks_of_none() -> None:
    frame = pd.DataFrame(
        {"row": list("aaabbb"), "seed": [1, 2, 3] * 2, "score": [63.0, 64, 65, 61, 62, 63]}
    )
    answer = harness.power(frame, a="a", b="b")
    assert answer.data[0]["examples"] == 0
    assert "0 test examples" not in str(answer)
    assert "with these examples" not in str(answer)


def test_a_dry_run_takes_the_executor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["compare", "demo", "--dry-run", "--workdir", str(tmp_path)]
    assert main([*words, "--executor", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main([*words, "--workers", "0"]) == 2
