"""Corpora by name and whole data sets of the hub: what comes out, what is stored, and one line for
each wrong URI.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.sources import Pair, load_corpus
from harness.sources.corpus import rows, selected_texts
from harness.sources.corpus.catalogue import CATALOGUE
from tests.support.errors import raises_input_error

COMMIT = "c" * 40
ROWS: list[dict[str, Any]] = [
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

        self.requests: list[tuple[Any, ...]] = []
        self.read = 0
        self.commit: str | None = COMMIT
        monkeypatch.setattr(selected_texts, "hub_commit", lambda repository, revision: self.commit)
        monkeypatch.setattr(datasets, "load_dataset", self.load)

    def load(
        self, repository: str, config: str | None, *, split: str, revision: str, streaming: bool
    ) -> Any:
        from datasets import IterableDataset

        assert streaming
        self.requests.append((repository, config, split, revision))

        def stream() -> Any:
            for row in ROWS:
                self.read += 1
                yield row

        return IterableDataset.from_generator(stream)


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    return Hub(monkeypatch)


def refusal(name: str, **kwargs: Any) -> str:
    with raises_input_error() as caught:
        load_corpus(name, **kwargs)
    return str(caught.value)


def test_a_data_set_of_the_hub_is_read_by_config_split_and_columns(hub: Hub) -> None:
    corpus = load_corpus(
        "hf://datasets/org/set?config=x&split=train+test&columns=anchor:a,positive:b&revision=refs/convert/parquet",
        kind="pairs",
    )
    assert hub.requests == [("org/set", "x", "train", COMMIT), ("org/set", "x", "test", COMMIT)]
    assert (
        list(corpus)
        == [Pair("one two three", "four"), Pair("one two three", "four"), Pair("eight nine", "ten")]
        * 2
    )
    assert corpus.describe()["revision"] == COMMIT
    both = load_corpus("hf://datasets/org/set?columns=text:a+b")
    assert list(both) == [
        "one two three",
        "four",
        "five six",
        "one two three",
        "four",
        "seven",
        "eight nine",
        "ten",
    ]


def test_labels_are_given_by_name_and_a_row_without_one_has_none(hub: Hub) -> None:
    labelled = load_corpus(
        "nli-labelled", kind="pairs", columns={"anchor": "a", "positive": "b", "label": "label"}
    )
    assert [pair.label for pair in labelled] == ["entailment", None, None]
    assert labelled[0] == Pair("one two three", "four", None, "entailment")


def test_a_streamed_set_is_stored_and_read_again_without_the_hub(hub: Hub) -> None:
    first = load_corpus("hf://datasets/org/set?columns=text:a")
    assert hub.read == len(ROWS)
    hub.commit = None  # out of reach
    again = load_corpus("hf://datasets/org/set?columns=text:a")
    assert hub.read == len(ROWS)
    assert (list(again), again.describe()) == (list(first), first.describe())
    refusal("hf://datasets/org/set?columns=text:b")
    hub.commit = "d" * 40  # another state of the set
    assert load_corpus("hf://datasets/org/set?columns=text:a").describe()["revision"] == hub.commit
    assert hub.read == 2 * len(ROWS)


def test_a_limit_reads_no_further_than_it_must(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_AT_ONCE", 1)
    assert list(load_corpus("hf://datasets/org/set?columns=text:a", limit=2)) == [
        "one two three",
        "five six",
    ]
    assert hub.read <= 3


def test_documents_are_selected_by_their_number_of_tokens(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    # "unbelievably" is one word and several tokens; "go" is one of each: counted by hand from the
    # vocabulary
    for row, text in enumerate(("unbelievably", "go go", "go go go", "go")):
        monkeypatch.setitem(ROWS[row], "a", text)
    uri = "hf://datasets/org/set?columns=text:a&min_tokens=3&tokenizer=embedded:mini-bert"
    corpus = load_corpus(uri, kind="documents")
    assert list(corpus)[:2] == ["unbelievably", "go go go"]
    assert corpus.describe()["left_out"] == len(ROWS) - len(corpus)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("wiki1m?partz=train", 'unknown option "partz"'),
        ("wiki1m?parts=train", 'unknown option "parts"'),
        ("stsb-sentences?parts=train,tset", 'unknown part "tset" (did you mean "test"?)'),
        ("openwebtext?min_tokens=2048", "min_tokens = 2048; expected a whole number and a model"),
        ("openwebtext?min_tokens=many&tokenizer=x", "min_tokens = many"),
        ("hf://datasets/org/set?split=a&split=b", 'option "split"'),
        ("hf://datasets/org/set?columns=a", "role:column"),
        ("hf://datasets/org/set?columns=txt:a", 'unknown key "txt"'),
        ("hf://datasets/org/set/file.txt?split=a", 'unknown option "split"'),
        ("hf://datasets/org/set/file.txt?revision=../../..", "revision"),
        ("hf://datasets/org/set@%2E%2E/file.txt", "revision"),
        ("hf://datasets/org/set?columns=text:c", 'no column "c"; its columns are: a, b, label'),
        ("hf://datasets/org/set?columns=text:label", 'column "label" holds no text'),
        ("embedded:sentences?split=a", 'unknown option "split"'),
    ],
)
def test_a_wrong_uri_is_one_line(hub: Hub, name: str, problem: str) -> None:
    kind = (
        CATALOGUE[name.partition("?")[0]].kind
        if name.partition("?")[0] in CATALOGUE
        else "sentences"
    )
    assert problem in refusal(name, kind=kind)


@pytest.mark.parametrize(
    "name", ["syncse-partial", "hf://datasets/hkust-nlp/SynCSE-scratch-NLI/train.csv"]
)
def test_text_of_a_language_model_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its columns and in every record; the file of the hub is replaced by one with the columns
    of SimCSE's.
    """
    from harness.sources.corpus import catalogue

    file = tmp_path / "train.csv"
    file.write_text(
        'sent0,sent1,hard_neg\n"A dog, runs.",A dog is running.,A cat sleeps.\nIt rains.,Rain falls.,It snows.\n'
    )
    monkeypatch.setattr(catalogue, "hub_file", lambda *_, **__: file)
    columns = (
        None
        if name in CATALOGUE
        else {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}
    )
    corpus = load_corpus(name, kind="pairs", columns=columns)
    assert corpus[0] == Pair("A dog, runs.", "A dog is running.", "A cat sleeps.")
    assert corpus.describe()["written_by"] == "a language model"
    for one in CATALOGUE.values():
        assert f"written by {one.written_by}" in one.purpose or not one.written_by


@pytest.mark.hub
def test_public_names_are_read_from_the_hub() -> None:
    pair = load_corpus("wikiauto?parts=dev", kind="pairs", limit=10)[0]
    assert pair.anchor
    assert pair.negative is None
    long = load_corpus(
        "openwebtext?min_tokens=1000&tokenizer=embedded:mini-bert", kind="documents", limit=5
    )
    assert all(len(text.split()) > 400 for text in long)
    assert len(load_corpus("nli-sentences", limit=7)) == 7
    assert load_corpus("nli", kind="pairs", limit=5).describe()["name"] == "nli"
    assert len(load_corpus("stsb-sentences")) == 17_256  # as many as the paper says
    assert len(set(load_corpus("stsb-sentences"))) == 15_457
    assert len(load_corpus("stsb-sentences?parts=train")) == 2 * 5749
