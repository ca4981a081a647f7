"""Options that replace keys of a file, and a number of seeds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from harness.api.experiments import plan_comparison
from harness.api.keywords import as_overrides
from harness.cli import build_parser
from harness.commands import options
from harness.runs.experiment import read_experiment
from harness.tasks.catalogue import resolve_tasks
from studies.definition.study import read_study
from tests.support import own_files
from tests.support.errors import raises_input_error

ROWS: dict[str, Any] = {"name": "mine", "methods": [{"method": "simcse"}]}
STUDY: dict[str, Any] = {"name": "mine", "method": "simcse", "steps": 2, "trials": 1}


def parse(*words: str) -> argparse.Namespace:
    namespace: argparse.Namespace = build_parser().parse_args(list(words))
    return namespace


def test_a_number_of_seeds_is_so_many_seeds_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('seeds = 3\n[[methods]]\nmethod = "simcse"\n')
    assert read_experiment(file).seeds == [1, 2, 3]
    assert read_experiment(file, as_overrides(seeds=2)).seeds == [1, 2]
    assert read_experiment(file, ["seeds=4"]).seeds == [1, 2, 3, 4]
    assert read_experiment(file, as_overrides(seeds=[7])).seeds == [7]
    assert read_experiment({**ROWS, "blocks": {"a": {"seeds": 2}}}).blocks["a"].seeds == [1, 2]
    planned = plan_comparison({**ROWS, "seeds": 2, "dev": {"task": own_files.NATURAL}})
    trained = [job for job in planned.plan.jobs if job.row == "simcse"]
    assert [job.spec.seed for job in trained] == [1, 2]


def test_a_studys_number_of_seeds_leaves_others_to_confirm() -> None:
    study = read_study({**STUDY, "seeds": 2})
    assert (study.seeds, study.held_out_seeds) == ([1, 2], [3, 4, 5])
    assert read_study({**STUDY, "seeds": [8]}).held_out_seeds == [1, 2, 3]


@pytest.mark.parametrize("value", [0, -1, 1111111])
def test_a_number_that_is_no_number_of_seeds_is_refused(value: int) -> None:
    with raises_input_error(key="seeds"):
        read_experiment({**ROWS, "seeds": value})


def test_options_replace_the_keys_of_a_file(tmp_path: Path) -> None:
    pairs = str(own_files.pairs_file(tmp_path / "pairs.csv", 60))
    words = ["--base-model", "embedded:mini-bert", "--corpus", "text.txt", "--suite", pairs]
    words += ["--dev", pairs, "--seeds", "2", "--device", "cpu", "--set", "max_steps=3"]
    found = read_experiment(
        {**ROWS, "seeds": [9]}, options.conditions_of(parse("compare", "x", *words))
    )
    assert (found.base_models, found.corpus.uri) == (["embedded:mini-bert"], "text.txt")
    assert (found.suites, found.seeds, found.device) == ([pairs], [1, 2], "cpu")
    assert found.max_steps == 3
    selection = found.selection()
    assert selection is not None
    assert (selection.task, selection.share) == (pairs, 0.5)

    arguments = parse("study", "run", "x", *words[:-2])
    study = read_study(STUDY, options.conditions_of(arguments, study=True))
    assert (study.base_model, study.suites, study.seeds) == ("embedded:mini-bert", [pairs], [1, 2])


def test_a_file_with_names_of_columns_is_an_option_as_it_is_in_a_file(tmp_path: Path) -> None:
    file = own_files.write_table(
        tmp_path / "mine.csv", ("left", "right", "gold"), own_files.embedded_pairs()[:40]
    )
    names = '{ sentence1 = "left", sentence2 = "right", score = "gold" }'
    table = f'{{ task = "{file}", columns = {names} }}'
    words = ["--suite", table, "--suite", "Embedded-STS-natural", "--dev", table]
    words += ["--corpus", f'{{ uri = "{file}", columns = {{ text = "left" }} }}']
    found = read_experiment(ROWS, options.conditions_of(parse("compare", "x", *words)))
    assert found.corpus.columns == {"text": "left"}
    tasks = resolve_tasks(found.suites_by_block()[""])
    assert [task.name for task in tasks] == ["mine.csv", "Embedded-STS-natural"]
    assert tasks[0].own.counts.keys() == {"dev", "test"}  # type: ignore[attr-defined]
    (score, *_) = resolve_tasks(parse("evaluate", "m", "--suite", table).suite)
    assert score.own.counts == {"test": 40}  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["{ task = mine.csv }", "{", "{}, {}", "{ task"])
def test_a_table_that_is_none_is_no_option(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        options.name_or_table(text)


@pytest.mark.parametrize(("text", "seeds"), [("3", 3), ("[4, 5]", [4, 5]), ("4,5", [4, 5])])
def test_seeds_are_a_number_or_a_list_on_the_command_line(text: str, seeds: Any) -> None:
    assert options.parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "many", "1.5", "[1, true]", "-3x"])
def test_other_texts_are_no_seeds(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        options.parse_seeds(text)


def test_a_key_of_a_table_can_be_set_where_the_file_has_a_text() -> None:
    keys = {**ROWS, "dev": "STS-B", "corpus": "text.txt"}
    found = read_experiment(keys, ["dev.every=5", "corpus.limit=7"])
    assert found.dev is not None
    assert (found.dev.task, found.dev.every) == ("STS-B", 5)
    assert (found.corpus.uri, found.corpus.limit) == ("text.txt", 7)
