"""A user without a home folder, and folders that cannot be written: what helps is named."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.errors import InputError
from harness.files.reading import expand_user
from harness.sources.corpus.catalogue import locate
from harness.sources.embedded import resolve_model
from harness.sources.remote.cache_folder import cache_root, writing
from harness.sources.remote.hub import _clear_errors
from harness.sources.senteval.labelled import build_labelled, probing_folder
from methods.parts.word_vectors import read_word_vectors
from tests.support.errors import raises_input_error


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user: no HOME, and no entry in the list of users."""
    for name in ("HOME", "XDG_CACHE_HOME", "HARNESS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError("uid")))


PLACES: dict[str, Callable[[], Any]] = {
    "a path": lambda: expand_user("~/a"),
    "a corpus": lambda: locate("~/text.txt"),
    "a model": lambda: resolve_model("~/model"),
    "word vectors": lambda: read_word_vectors("~/vectors.txt"),
    "the cache": cache_root,
}


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize("place", PLACES)
def test_a_home_folder_that_is_not_there_is_one_error(place: str) -> None:
    with raises_input_error():
        PLACES[place]()


@pytest.mark.usefixtures("homeless")
def test_a_folder_of_data_in_a_home_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SENTEVAL", "~/senteval")
    with raises_input_error(file="~/senteval"):
        probing_folder(None)


@pytest.mark.usefixtures("homeless")
def test_a_model_is_scored_without_a_cache(caplog: pytest.LogCaptureFixture) -> None:
    found = harness.evaluate("embedded:mini-bert", "Embedded-STS-contrast")
    assert len(found.scores())
    assert "HARNESS_CACHE" in caplog.text


@pytest.mark.parametrize(("which", "setting"), [("hub", "HF_HOME"), ("own", "HARNESS_CACHE")])
def test_the_setting_that_helps_is_named(tmp_path: Path, which: str, setting: str) -> None:
    refused = PermissionError(errno.EACCES, "Permission denied")
    block = (
        _clear_errors("it", "a/b", None, tmp_path) if which == "hub" else writing("it", tmp_path)
    )
    with raises_input_error(file=tmp_path), block:
        raise refused


def _put_file(place: Path) -> Path:
    place.write_text("no folder")
    return place


def _put_link(place: Path) -> Path:
    place.symlink_to("nowhere")
    return place


def _put_loop(place: Path) -> Path:
    place.symlink_to(place.name)
    return place / "hub"


@pytest.mark.parametrize(
    "put", [_put_file, lambda place: _put_file(place) / "hub", _put_link, _put_loop]
)
def test_the_setting_is_named_too_where_no_folder_can_be(
    tmp_path: Path, put: Callable[[Path], Path]
) -> None:
    folder = put(tmp_path / "home")
    with raises_input_error(file=folder) as refused, _clear_errors("it", "a/b", None, folder):
        folder.mkdir(parents=True, exist_ok=True)
    assert "HF_HOME" in str(refused.value)


@pytest.mark.parametrize(
    "row",
    [{"\ufeffsplit": "test", "label": "a", "text": "b"}, {"split;label;text": "test;a;b"}, {}],
)
def test_rows_of_a_spreadsheet_without_the_columns_are_one_error(row: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        build_labelled([row])
    assert "split" in str(refused.value.key)


def test_a_task_whose_code_fails_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.evaluation.scoring import evaluate

    class Odd:
        name = "tickets"
        suite = "own"
        source = "own"

        def texts(self) -> list[str]:
            raise KeyError("split")

    with pytest.raises(harness.errors.RunError, match=r"task tickets.*KeyError"):
        evaluate(lambda texts: texts, [Odd()], pooling="x")  # type: ignore[list-item,arg-type,return-value]
