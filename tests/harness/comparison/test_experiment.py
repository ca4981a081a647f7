"""Experiment files: overrides, precedence, and one clear line for everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.comparison.experiment import presets, read_experiment
from harness.comparison.rows import resolve_rows
from harness.errors import InputError
from tests.support.configurations import know_base_models

GOOD = """
corpus = "embedded:sentences"
seeds = [1, 2]
[dev]
task = "Embedded-STS-natural"
[shared]
learning_rate = 2e-5
[[methods]]
method = "simcse"
[[methods]]
name = "hot"
method = "simcse"
config = { temperature = 0.5, learning_rate = 7e-5 }
[[methods]]
method = "pooling"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    return path


def test_name_sources_and_defaults_are_filled_in(file: Path) -> None:
    experiment = read_experiment(str(file))
    assert experiment.name == "mine"
    assert experiment.corpus.uri == "embedded:sentences"
    assert experiment.dev is not None
    assert experiment.dev.where == "embedded"


def test_a_rows_own_value_beats_the_shared_default(file: Path) -> None:
    rows = {row.label: row.config for row in resolve_rows(read_experiment(str(file)), "f")}
    assert rows["simcse"].learning_rate == 2e-5  # type: ignore[attr-defined]
    assert rows["hot"].learning_rate == 7e-5  # type: ignore[attr-defined]
    assert not hasattr(rows["pooling"], "learning_rate")


def test_overrides_reach_tables_rows_and_lists(file: Path) -> None:
    experiment = read_experiment(
        str(file), ["seeds=[7]", "methods.hot.temperature=0.9", "methods.3.name=plain", "title=A b"]
    )
    rows = {row.label: row.config for row in resolve_rows(experiment, "f")}
    assert experiment.seeds == [7]
    assert experiment.title == "A b"
    assert rows["hot"].temperature == 0.9  # type: ignore[attr-defined]
    assert "plain" in rows


def bad(path: Path, text: str, *overrides: str) -> str:
    path.write_text(text)
    with pytest.raises(InputError) as error:
        resolve_rows(read_experiment(str(path), overrides), str(path))
    message = str(error.value)
    assert "\n" not in message
    return message


def test_what_is_wrong_is_named(file: Path) -> None:
    assert 'unknown method "simsce" (did you mean "simcse"?)' in bad(file, GOOD.replace('"simcse"', '"simsce"', 1))
    assert 'unknown key "seedz" (did you mean "seeds"?)' in bad(file, "seedz = [1]\n" + GOOD)
    typo = GOOD.replace("temperature", "temperatur")
    assert 'unknown key "temperatur" (did you mean "temperature"?)' in bad(file, typo)
    assert 'key "temperature": expected a number above 0, not -1' in bad(file, GOOD.replace("0.5", "-1"))
    assert 'two rows are called "simcse"' in bad(file, GOOD.replace('name = "hot"', ""))
    assert "not a TOML file" in bad(file, "a = = b")
    assert "same entry twice" in bad(file, GOOD.replace("[1, 2]", "[1, 1]"))
    assert 'no method here has the key "lerning_rate" (did you mean "learning_rate"?)' in bad(
        file, GOOD.replace("learning_rate = 2e-5", "lerning_rate = 2e-5")
    )
    assert 'no row "cold"; rows: simcse, hot, pooling' in bad(file, GOOD, "methods.cold.temperature=1")
    assert "expected KEY=VALUE" in bad(file, GOOD, "seeds")
    assert 'unknown preset "huge"' in bad(file, GOOD.replace('name = "hot"', 'name = "hot"\npreset = "huge"'))


def test_an_unknown_file_names_the_presets() -> None:
    with pytest.raises(InputError, match=r'no file and no preset "demoo" \(did you mean "demo"\?\)'):
        read_experiment("demoo")


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_shipped_experiment_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    know_base_models(monkeypatch)
    experiment = read_experiment(name)
    assert resolve_rows(experiment, name)
    assert experiment.title
