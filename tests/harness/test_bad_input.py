"""Input that cannot be used is one line with file and key, and exit code 2."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import registry
from harness.cli import main
from harness.config import Config, option
from harness.errors import InputError, RunError
from harness.results.model_card import write_card
from harness.results.store import DamagedRecord, RunFolder
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from tests.support.errors import raises_input_error
from tests.support.invented_runs import run

GOOD = 'base_models = ["embedded:mini-bert"]\nsuites = ["embedded"]\n{}[[methods]]\nmethod = "pooling"\n'


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a command ends with."""
    assert main(list(words)) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "Traceback" not in line
    assert "Input should" not in line
    return line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.toml"
    path.write_text(GOOD.format(""))
    return path


def compare(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> str:
    return told(
        capsys, "compare", str(file), "--dry-run", "--workdir", str(file.parent / "work"), *words
    )


def test_methods_that_are_no_list(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "methods" in compare(capsys, file, "--set", "methods=3")
    assert "methods[1]" in compare(capsys, file, "--set", "methods=[3]")
    file.write_text("methods = 3\n")
    assert 'key "methods"' in compare(capsys, file)


def test_a_precision_that_a_timing_would_choose_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = compare(capsys, file, "--set", 'precision="auto"')
    assert "precision" in line
    assert '"bf16"' in line


@pytest.mark.parametrize("override", ["methods.pooling=1", "methods.1=1", "methods=[1]"])
def test_a_setting_that_would_be_ignored_is_refused(
    override: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(capsys, file, "--set", override)


def test_a_setting_of_a_row_that_is_no_table(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "methods.1.pooling" in compare(
        capsys, file, "--set", "methods=[3]", "--set", "methods.1.pooling=1"
    )


@pytest.mark.parametrize(
    "line", ['device = "x"', 'base_models = ["\\U0001F642"]', 'dev = {task = "x/x"}']
)
def test_a_value_that_only_the_plan_can_check_is_named_with_its_file(
    line: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = line.partition(" =")[0]
    rows = '[[methods]]\nmethod = "simcse"\ncorpus = "embedded:sentences"\npreset = "mini"\n'
    lines = {
        "base_models": 'base_models = ["embedded:mini-bert"]',
        "suites": 'suites = ["embedded"]',
        key: line,
    }
    file.write_text("\n".join([*lines.values(), rows]))
    assert str(file) in compare(capsys, file)


def test_a_study_names_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text('method = "none"\n')
    assert str(file) in told(capsys, "study", "run", str(file), "--dry-run")


def test_bytes_that_are_no_text_have_a_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"# \xc3\xa9\n\n" + b'title = "\xff"\n')
    assert f"{file}, line 3: not UTF-8" in compare(capsys, file)


def test_keys_are_named_without_what_a_validator_tried(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(GOOD.format("[dev]\nsource = 0\n"))
    assert 'key "dev.source": expected' in compare(capsys, file)
    file.write_text(GOOD.format("[corpora]\npairs = 3\n"))
    assert 'key "corpora.pairs": expected a table, not 3' in compare(capsys, file)


def test_deep_nesting(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = "[" * 5000 + "]" * 5000
    file.write_text(GOOD.format(f"title = {deep}\n"))
    assert str(file) in compare(capsys, file)
    file.write_text(GOOD.format(""))
    assert "--set title" in compare(capsys, file, "--set", f"title={deep}")
    dotted = ".".join("a" * 900)
    file.write_text(GOOD.format(f"{dotted} = 1\n"))
    assert 'unknown key "a"' in compare(capsys, file)


@pytest.mark.parametrize("key", ["corpus", "base_models"])
def test_names_longer_than_any_file_can_have(
    key: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "x" * 300
    value = f'["{long}/y/z"]' if key == "base_models" else f'"{long}"'
    compare(capsys, file, "--set", 'methods=[{method="simcse"}]', "--set", f"{key}={value}")
    told(capsys, "compare", long)
    told(capsys, "study", "run", long)


def test_a_file_that_may_not_be_read(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert f"{file}: " in compare(capsys, file)


def test_a_path_that_may_not_be_used_anywhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/where")

    monkeypatch.setattr("harness.commands.list._list_presets", refused)
    monkeypatch.setitem(
        __import__("harness.commands.list", fromlist=["x"])._LISTS, "presets", refused
    )
    assert "/some/where" in told(capsys, "list", "presets")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"method": 3}',
        b'{"method": "random"}',
        b'{"method": "random", "base_model": "", "config": {}}',
        b"[" * 5000,
    ],
)
def test_a_saved_method_whose_settings_are_damaged(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "harness_method.json").write_bytes(content)
    assert "harness_method.json" in told(capsys, "evaluate", str(tmp_path), "--suite", "embedded")


@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_a_static_model_without_its_files(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 0.1 0.2\nb 0.3 0.4\n")
    static = registry.load(registry.METHODS, "static")
    static(static.Config(vectors=str(vectors)), base_model="").fit().save(tmp_path / "model")
    for file in list((tmp_path / "model").rglob("0_*/*")):
        file.unlink()
        if damage == "empty":
            file.touch()
    with raises_input_error(file=file):
        harness.load_model(tmp_path / "model")
    assert "model" in told(capsys, "evaluate", str(tmp_path / "model"), "--suite", "embedded")


def test_parts_of_a_run_that_are_no_files(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "abc")
    run.record_file.mkdir(parents=True)
    with raises_input_error(kind=DamagedRecord):
        run.read()
    for content in ("[]", "{"):
        run.details_file.write_text(content)
        with raises_input_error(file=run.path / "details.json"):
            run.figures()


def test_a_readme_that_is_not_utf8_gets_its_card(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"caf\xe9\n")
    write_card(tmp_path, run(tmp_path, "SimCSE"))
    assert "caf" in (tmp_path / "README.md").read_text("utf-8")


def test_offline_the_key_that_needs_the_hub_is_named(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    from huggingface_hub import constants

    from harness.sources.remote.hub import hub_file, hub_reachable

    for kept in (hub_file, hub_reachable):  # what other tests of this process have found
        kept.cache_clear()
        request.addfinalizer(kept.cache_clear)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HARNESS_SENTEVAL", raising=False)
    simcse = ["--set", 'methods=[{method="simcse"}]']
    assert "--set dev.task=" in compare(capsys, file, *simcse)
    line = compare(
        capsys, file, *simcse, "--set", 'corpus="wiki1m"', "--set", "dev.task=Embedded-STS-natural"
    )
    assert '"wiki1m"' in line
    assert "--set corpus.uri=" in line
    with raises_input_error(key="dev.task"):
        make_plan(read_experiment(file, ['methods=[{method="simcse"}]']), str(file))


class Example(Config):
    number: float = option(1.0, "", gt=0)
    count: int = option(1, "", ge=1, le=9)
    flag: bool = option(False, "")
    text: str = option("", "")
    names: list[str] = option([], "")
    table: dict[str, int] = option({}, "")
    needed: str


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"number": "abc"}, "number"),
        ({"number": 0}, "number"),
        ({"number": float("nan")}, "number"),
        ({"number": "y" * 100_000}, "number"),
        ({"count": 1.5}, "count"),
        ({"count": 0}, "count"),
        ({"count": 10}, "count"),
        ({"flag": "perhaps"}, "flag"),
        ({"text": 3}, "text"),
        ({"names": "x"}, "names"),
        ({"names": [1]}, "names.0"),
        ({"table": 1}, "table"),
        ({"needed": 1}, "needed"),
        ({"needed": None}, "needed"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_key(
    values: dict[str, object], key: str
) -> None:
    with pytest.raises(InputError) as error:
        Example.parse({"needed": "x", **values}, "here")
    assert str(error.value).startswith(f'here: key "{key}": ')
    assert "Input should" not in str(error.value)
    assert len(str(error.value)) < 200


def test_a_missing_or_empty_key_is_named() -> None:
    with raises_input_error(file="here", key="needed"):
        Example.parse({}, "here")
    with raises_input_error(file="experiment", key="seeds"):
        read_experiment({"name": "x", "seeds": [], "methods": [{"method": "pooling"}]})


def load_source(source: str, file: Path) -> Any:
    """The module of that source."""
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def test_an_error_in_the_code_of_a_method_names_its_line(tmp_path: Path) -> None:
    module = load_source(BUGGY, tmp_path / "buggy.py")
    keys = {
        "methods": [{"method": module.Buggy}],
        "suites": ["Embedded-STS-natural"],
        "max_steps": 2,
    }
    with pytest.raises(
        InputError, match=r"AttributeError: .*no attribute 'nothing' \(.*buggy.py, line 11: "
    ):
        harness.compare(keys, workdir=tmp_path / "work", tracking_uri="none")
    assert not (tmp_path / "work").exists()


def test_an_error_in_a_loss_is_one_line_when_it_is_trained(tmp_path: Path) -> None:
    module = load_source(WRONG_LOSS, tmp_path / "wrong_loss.py")
    with pytest.raises(
        RunError, match=r"^ZeroDivisionError: .* \(.*wrong_loss.py, line 10: "
    ) as error:
        harness.train(module.Wrong, config={"max_steps": 2}, dev=None)
    assert isinstance(error.value.__cause__, ZeroDivisionError)


WRONG_LOSS = """
from harness.training import TrainedMethod

class Wrong(TrainedMethod):
    name = "wrong"
    version = 1

    def loss(self, encoder, heads, batch):
        first, second = encoder.two_views(batch.texts)
        return {"loss": (first - second).sum() * (1 / 0)}
"""
BUGGY = """
from harness.training import TrainedMethod

class Buggy(TrainedMethod):
    name = "buggy"
    version = 1
    def loss(self, encoder, heads, batch):
        return {"loss": batch.nothing}
    @property
    def inputs(self):
        return {"teacher": self.config.nothing}
"""
