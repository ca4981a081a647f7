"""`harness list methods NAME`: what a card promises is printed, with the published numbers
that it names.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from docs import method_pages
from harness import registry
from harness.cli import main
from harness.commands.list import list_methods
from harness.errors import InputError
from harness.results import published
from methods.simcse import SimCSE
from tests.support.errors import raises_input_error

COLUMNS = (
    "paper",
    "table",
    "model",
    "base_model",
    "task",
    "metric",
    "value",
    "source_mark",
    "notes",
)


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One package that carries published numbers: two tables of one model, and a row of another."""
    rows = [
        ("Paper A", "Table 1", "My-BERT", "bert-base", "STS12", "Spearman x100", "66.94", "", ""),
        ("Paper A", "Table 1", "My-BERT", "bert-base", "STS13", "Spearman x100", "78.03", "", ""),
        ("Paper A", "Table 2", "My-BERT", "bert-base", "MR", "accuracy x100", "73.21", "", ""),
        ("Paper A", "Table 1", "Other", "bert-base", "STS12", "Spearman x100", "1.00", "", ""),
    ]
    with (tmp_path / "mine.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    monkeypatch.setattr(published, "folders", lambda: [tmp_path])


def test_published_rows_by_key(numbers: None) -> None:
    rows = published.published_rows("mine.csv:My-BERT")
    assert [row["value"] for row in rows] == ["66.94", "78.03", "73.21"]
    assert published.summary(rows) == [
        "Paper A · Table 1 · bert-base · Spearman x100: STS12 66.94, STS13 78.03",
        "Paper A · Table 2 · bert-base · accuracy x100: MR 73.21",
    ]


@pytest.mark.parametrize(
    "key",
    [
        "mine.csv",  # no model
        "mein.csv:My-BERT",  # no such file
        "mine.csv:MyBERT",  # no such model
    ],
)
def test_a_key_without_rows_is_one_clear_line(numbers: None, key: str) -> None:
    with raises_input_error(key=key):
        published.published_rows(key)


def test_the_published_tables_of_the_reports_have_the_columns_that_are_read() -> None:
    from reports import PUBLISHED

    files = sorted(PUBLISHED.glob("*.csv"))
    assert files
    for file in files:
        with file.open(newline="") as stream:
            assert set(csv.DictReader(stream).fieldnames or ()) >= set(COLUMNS[:7]), file


def only(monkeypatch: pytest.MonkeyPatch, **card: Any) -> None:
    """Make a method with such a card the only one that is installed."""
    method = type("Only", (SimCSE,), {"card": replace(SimCSE.card, **card)})
    monkeypatch.setattr(registry, "names", lambda group: ["only"])
    monkeypatch.setattr(registry, "load", lambda group, name: method)


def test_a_card_is_printed_whole(
    numbers: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = "a remark that is longer than a line of the terminal, " * 3 + "and ends here"
    only(monkeypatch, notes=notes, published=("mine.csv:My-BERT", "mine.csv:None"), kept="a layer")
    assert main(["list", "methods", "only"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "Gao, Yao & Chen, EMNLP 2021",
        "Eq. 4",
        "and ends here",
        "kept: a layer",
        "default: 0.05",
    ):
        assert part in text
    assert "mine.csv:My-BERT" in text
    assert "STS12 66.94, STS13 78.03" in text
    assert 'no model "None"' in text  # a key without rows does not take the list down
    assert "Gao et al. 2021, appendix A" in text


def test_an_unknown_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "simce"]) == 2
    assert 'did you mean "simcse"?' in capsys.readouterr().err


def test_a_method_that_cannot_be_imported_is_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = registry.load

    def load_all_but_one(group: registry.Group, name: str) -> Any:
        if name == "scd":
            raise InputError("module colleague_losses has no Gone")
        return load(group, name)

    monkeypatch.setattr(registry, "load", load_all_but_one)
    assert main(["list", "methods"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("simcse ") for line in lines)
    (broken,) = [line for line in lines if "UNUSABLE" in line]
    assert broken.startswith("scd ")
    assert "colleague_losses has no Gone" in broken


def test_the_machine_readable_list_has_the_same(
    numbers: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, published=("mine.csv:My-BERT",))
    assert main(["list", "methods", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)["only"]
    assert about["published"]["mine.csv:My-BERT"][0].endswith("STS12 66.94, STS13 78.03")
    paper = about["presets"]["paper"]
    assert paper["aliases"]["paper-roberta"] == "roberta-base"
    assert paper["families"]["roberta-base"]["values"]["batch_size"] == 512
    assert paper["families"]["bert-base"]["source"].startswith("Gao et al. 2021")
    assert about["options"]["temperature"]["range"] == "above 0"
    assert about["options"]["temperature"]["sweep"] == {"low": 0.001, "high": 1.0, "log": True}
    assert about["options"]["warmup"]["shared"] is True


class _Exits:
    def __get__(self, *_: object) -> None:
        sys.exit(0)


ODD: dict[str, dict[str, Any]] = {
    "no card": {"card": None},
    "a card that is a text": {"card": "mean"},
    "presets of another kind": {"presets": ["a"]},
    "no config": {"Config": None},
    "a card that exits": {"card": _Exits()},
}


@pytest.mark.parametrize("name", ODD)
def test_a_method_that_cannot_be_described_is_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sound = {"card": SimCSE.card, "Config": SimCSE.Config, "presets": SimCSE.presets}
    odd = type("Odd", (), {**sound, **ODD[name]})
    monkeypatch.setitem(registry._added, registry.METHODS.entry_points, {"odd": odd})
    assert main(["list", "methods"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("simcse ") for line in lines)
    (broken,) = [line for line in lines if line.startswith("odd ")]
    assert "UNUSABLE" in broken
    pages, without = method_pages.pages()
    assert "simcse.md" in pages
    assert "odd.md" not in pages
    assert list(without) == ["odd"]


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit(0)", "1 / 0", "def (", "raise KeyError", "raise GeneratorExit"]
)
def test_a_module_that_fails_when_it_is_imported_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    (tmp_path / "odd_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("odd", "odd_module:Odd", registry.METHODS.entry_points)
    with raises_input_error(key="odd"):
        registry.open_plugin(registry.METHODS, point)


def test_a_training_script_is_listed_as_a_method() -> None:
    about = list_methods()["command"]
    assert {"run", "folder", "hours"} <= about["options"].keys()
