"""Corpora by name and whole data sets of the hub: what comes out, what is kept, and the one line for each wrong URI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.sources import Pair, load_corpus
from harness.sources.corpus import hub_table, taking, uri
from harness.sources.corpus.catalogue import CATALOGUE

COMMIT = "c" * 40
ROWS = [
    {"a": "one two three", "b": "four", "label": 0},
    {"a": "five six", "b": " ", "label": 2},
    {"a": "one two three", "b": "four", "label": -1},
    {"a": None, "b": "seven", "label": 1},
    {"a": "eight nine", "b": "ten", "label": None},
]


class Hub:
    """What `datasets` would stream of a data set with the columns a, b and label, without a hub."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import datasets

        self.asked: list[tuple[Any, ...]] = []
        self.read = 0
        self.commit: str | None = COMMIT
        monkeypatch.setattr(hub_table, "hub_commit", lambda repository, revision: self.commit)
        monkeypatch.setattr(datasets, "load_dataset", self.load)

    def load(self, repository: str, config: str | None, *, split: str, revision: str, streaming: bool) -> Any:
        from datasets import IterableDataset

        assert streaming
        self.asked.append((repository, config, split, revision))

        def rows() -> Any:
            for row in ROWS:
                self.read += 1
                yield row

        return IterableDataset.from_generator(rows)


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    return Hub(monkeypatch)


def refusal(name: str, **kwargs: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_corpus(name, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_data_set_of_the_hub_is_read_by_config_split_and_columns(hub: Hub) -> None:
    address = (
        "hf://datasets/org/set?config=x&split=train+test&columns=anchor:a,positive:b&revision=refs/convert/parquet"
    )
    corpus = load_corpus(address, kind="pairs")
    assert hub.asked == [("org/set", "x", "train", COMMIT), ("org/set", "x", "test", COMMIT)]
    assert list(corpus) == [Pair("one two three", "four"), Pair("one two three", "four"), Pair("eight nine", "ten")] * 2
    assert corpus.skipped == 4
    assert corpus.describe()["revision"] == COMMIT


def test_labels_go_by_name_and_a_row_without_one_has_none(hub: Hub) -> None:
    labelled = load_corpus("nli-labelled", kind="pairs", columns={"anchor": "a", "positive": "b", "label": "label"})
    assert [pair.label for pair in labelled] == ["entailment", None, None]
    assert labelled[0] == Pair("one two three", "four", None, "entailment")


def test_a_column_called_label_in_a_file_changes_nothing_unless_it_is_asked_for(tmp_path: Path) -> None:
    with_label, without = tmp_path / "with.csv", tmp_path / "without.csv"
    with_label.write_text("anchor,positive,label\na,b,neutral\nc,d,entailment\n")
    without.write_text("anchor,positive\na,b\nc,d\n")
    assert load_corpus(str(with_label), kind="pairs").sha256 == load_corpus(str(without), kind="pairs").sha256
    asked = load_corpus(str(with_label), kind="pairs", columns={"label": "label"})
    assert [pair.label for pair in asked] == ["neutral", "entailment"]


def test_sentences_of_two_columns_stand_one_after_another(hub: Hub) -> None:
    corpus = load_corpus("hf://datasets/org/set?columns=text:a+b")
    assert list(corpus) == ["one two three", "four", "five six", "one two three", "four", "seven", "eight nine", "ten"]
    assert corpus.skipped == 2
    once = load_corpus("hf://datasets/org/set?columns=text:a+b&distinct=yes")
    assert list(once) == ["one two three", "four", "five six", "seven", "eight nine", "ten"]
    assert once.describe()["left_out"] == 2


def test_what_was_streamed_is_kept_and_serves_without_the_hub(hub: Hub) -> None:
    first = load_corpus("hf://datasets/org/set?columns=text:a")
    assert hub.read == len(ROWS)
    hub.commit = None  # out of reach
    again = load_corpus("hf://datasets/org/set?columns=text:a")
    assert hub.read == len(ROWS)
    assert list(again) == list(first)
    assert again.describe() == first.describe()
    assert "not in the local cache" in refusal("hf://datasets/org/set?columns=text:b")


def test_another_state_of_the_hub_is_read_anew_and_damage_is_mended(hub: Hub, tmp_path: Path) -> None:
    load_corpus("hf://datasets/org/set?columns=text:a")
    hub.commit = "d" * 40
    assert load_corpus("hf://datasets/org/set?columns=text:a").describe()["revision"] == hub.commit
    assert hub.read == 2 * len(ROWS)
    for file in (tmp_path / "cache" / "corpora").glob("*/texts"):
        file.write_bytes(file.read_bytes()[:5])
    assert load_corpus("hf://datasets/org/set?columns=text:a")[0] == "one two three"
    assert hub.read == 3 * len(ROWS)


def test_a_limit_reads_no_further_than_it_must(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_table, "_ROWS", 1)
    corpus = load_corpus("hf://datasets/org/set?columns=text:a", limit=2)
    assert list(corpus) == ["one two three", "five six"]
    assert hub.read <= 3


def test_documents_are_taken_by_their_length(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "_CHUNK", 2)
    by_words = load_corpus("hf://datasets/org/set?columns=text:a&min_words=3", kind="documents")
    assert list(by_words) == ["one two three"] * 2
    # "unbelievably" is one word and several pieces; "go" is one of each: counted by hand from the vocabulary
    monkeypatch.setitem(ROWS[0], "a", "unbelievably")
    monkeypatch.setitem(ROWS[1], "a", "go go")
    monkeypatch.setitem(ROWS[2], "a", "go go go")
    by_tokens = load_corpus(
        "hf://datasets/org/set?columns=text:a&min_tokens=3&tokenizer=embedded:mini-bert&revision=" + "e" * 40,
        kind="documents",
    )
    assert list(by_tokens) == ["unbelievably", "go go go"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wiki1m?partz=train", 'unknown option "partz"'),
        ("wiki1m?parts=train", 'unknown option "parts"'),
        ("stsb-sentences?parts=train,tset", 'unknown part "tset" (did you mean "test"?)'),
        ("openwebtext?min_tokens=2048", "min_tokens and tokenizer go together"),
        ("openwebtext?min_words=many", "min_words = many; expected a whole number"),
        ("openwebtext?distinct=1", "distinct = 1; expected yes or no"),
        ("hf://datasets/org/set?split=a&split=b", 'option "split" needs one value'),
        ("hf://datasets/org/set?columns=a", "expected role:column"),
        ("hf://datasets/org/set?columns=txt:a", 'unknown key "txt"'),
        ("hf://datasets/org/set/file.txt?split=a", 'unknown option "split"'),
        ("hf://datasets/org/set?columns=text:c", 'no column "c"; its columns are: a, b, label'),
        ("hf://datasets/org/set?columns=text:label", 'column "label" holds no text but'),
        ("embedded:sentences?split=a", 'unknown option "split"'),
    ],
)
def test_a_wrong_uri_is_one_line(hub: Hub, name: str, problem: str) -> None:
    kind = CATALOGUE[name.partition("?")[0]].kind if name.partition("?")[0] in CATALOGUE else "sentences"
    assert problem in refusal(name, kind=kind)


def test_too_little_after_a_selection_says_how_much_was_left_out() -> None:
    assert "after 24 were left out (at least 5,000 words)" in refusal(
        "embedded:documents?min_words=5000", kind="documents"
    )


def test_names_stand_for_addresses_that_are_well_formed() -> None:
    for name, entry in CATALOGUE.items():
        base, _, query = entry.uri.partition("?")
        assert base.startswith("hf://datasets/")
        assert set(uri._options(entry.uri, query, uri._OF_TABLE)) <= {"config", "revision"}, name
        assert set(entry.default_parts) <= set(entry.parts)


@pytest.mark.hub
def test_the_sentences_of_sts_b_are_as_many_as_the_paper_says() -> None:
    assert len(load_corpus("stsb-sentences")) == 17_256
    assert len(load_corpus("stsb-sentences?distinct=yes")) == 15_457
    assert len(load_corpus("stsb-sentences?parts=train")) == 2 * 5749


@pytest.mark.hub
def test_public_names_are_read_from_the_hub() -> None:
    pair = load_corpus("wikiauto?parts=dev", kind="pairs", limit=10)[0]
    assert pair.anchor
    assert pair.negative is None
    assert len(load_corpus("openwebtext?min_words=1000", kind="documents", limit=5)) == 5
    assert len(load_corpus("nli-sentences", limit=7)) == 7
    assert load_corpus("nli", kind="pairs", limit=5).describe()["name"] == "nli"
