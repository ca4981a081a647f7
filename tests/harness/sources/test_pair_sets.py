"""Scored pairs: counts of the published data, SentEval's way of reading, and the one line for each
wrong input.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from harness.errors import InputError
from harness.sources import EMBEDDED_MODELS, embedded_rows, load_sts, resolve_model
from harness.sources.senteval import labelled as senteval_files
from harness.sources.senteval.labelled import (
    SIZES,
    downstream_folder,
    read_pairs,
    read_year,
    unusual_sizes,
)
from tests.support.errors import raises_input_error

# SemEval's own counts of scored pairs, in the order of SentEval's subsets
COUNTS = {
    "STS12": {
        "MSRpar": 750,
        "MSRvid": 750,
        "SMTeuroparl": 459,
        "surprise.OnWN": 750,
        "surprise.SMTnews": 399,
    },
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "images": 750,
        "OnWN": 750,
        "tweet-news": 750,
    },
    "STS15": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    "STS16": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}
# From the statistics that mteb 2.26 ships with its tasks: pairs, characters of the first and second
# texts, mean score
MTEB = {
    "STS12": (3108, 198256, 203862, 3.506064),
    "STS-B": (1379, 74107, 73779, 2.607917),
    "SICK-R": (9927, 462620, 452997, 3.529149),
}


# --- embedded


@pytest.mark.parametrize(
    ("task", "parts", "dev_pairs", "test_pairs"),
    [
        ("Embedded-STS-natural", "defghij", 439, 1035),
        ("Embedded-STS-contrast", "abc", 300, 300),
        ("Embedded-Phenomena", "fghij", 599, 2393),
    ],
)
def test_embedded_sets_have_the_parts_and_counts_of_their_readme(
    task: str, parts: str, dev_pairs: int, test_pairs: int
) -> None:
    dev, test = (load_sts(task, source="embedded", split=split) for split in ("dev", "test"))
    assert [s.name for s in dev.subsets] == [s.name for s in test.subsets] == list(parts)
    assert [sum(len(s.gold) for s in split.subsets) for split in (dev, test)] == [
        dev_pairs,
        test_pairs,
    ]
    for one, other in zip(dev.subsets, test.subsets, strict=True):
        assert not set(zip(one.sentences1, one.sentences2, strict=True)) & set(
            zip(other.sentences1, other.sentences2, strict=True)
        )
        assert 0 <= one.gold.min() <= one.gold.max() <= 5
    assert dev.sha256 != test.sha256
    assert test.sha256 == load_sts(task, source="embedded").sha256


def test_croissant_file_describes_the_embedded_data() -> None:
    from tools.croissant import TARGET, describe

    assert TARGET.read_text("utf-8") == describe(), "run: python tools/croissant.py"


def test_embedded_rows_know_their_part() -> None:
    assert len(embedded_rows("retrieval")) == 4 * 60  # a, b, c, d
    assert {row["part"] for row in embedded_rows("paraphrase")} == {"a", "e"}
    assert embedded_rows("retrieval", ["d"])[0]["query"] == "remove chewing gum from trainers"


def test_resolve_model(tmp_path: Path) -> None:
    folder = Path(resolve_model("embedded:mini-bert"))
    assert folder == EMBEDDED_MODELS["mini-bert"]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        file.name for file in folder.iterdir()
    }
    assert resolve_model(str(tmp_path)) == str(tmp_path)
    assert resolve_model("bert-base-uncased") == "bert-base-uncased"
    assert resolve_model("princeton-nlp/unsup-simcse-bert-base-uncased").startswith(
        "princeton-nlp/"
    )
    (tmp_path / "file").touch()
    none = str(tmp_path / "none")
    for name in ("embedded:mini-bret", none, "./none", "a/b/c", str(tmp_path / "file")):
        with raises_input_error(file=name):
            resolve_model(name)
    with raises_input_error():
        resolve_model("")


# --- SentEval's files, a hand-made copy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    def write(name: str, text: str) -> None:
        file = tmp_path / "downstream" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")

    for name in COUNTS["STS13"]:
        write(
            f"STS/STS13-en-test/STS.input.{name}.txt",
            f"{name} a\tb  c \n never\tscored\nd\u2028e\tf\n",
        )
        write(f"STS/STS13-en-test/STS.gs.{name}.txt", "4.5\n\n0\n")
    write(
        "STS/STSBenchmark/sts-dev.csv",
        'g\tf\ty\t1\t2.500\ta "quoted\tsecond\ng\tf\ty\t2\t0\tc\td\textra\n',
    )
    write(
        "SICK/SICK_trial.txt",
        "pair_ID\tsentence_A\tsentence_B\tr\te\n4\tA man\tA dog\t3.3\tNEUTRAL\n",
    )
    return tmp_path / "downstream"


def test_pairs_that_were_never_scored_are_left_out(root: Path) -> None:
    subsets = dict(read_year(root, "STS13"))
    assert list(subsets) == ["FNWN", "headlines", "OnWN"]
    assert subsets["OnWN"] == (["OnWN a", "d e"], ["b c", "f"], [4.5, 0.0])


def test_stsb_and_sick_columns(root: Path) -> None:
    assert read_pairs("STS-B", root, "dev") == (['a "quoted', "c"], ["second", "d"], [2.5, 0.0])
    assert read_pairs("SICK-R", root, "dev") == (["A man"], ["A dog"], [3.3])


def test_damaged_senteval_files(root: Path, tmp_path: Path) -> None:
    scores = root / "STS/STS13-en-test/STS.gs.FNWN.txt"
    scores.write_text("4.5\n1\n")
    with raises_input_error(file=root / "STS/STS13-en-test/STS.input.FNWN.txt"):
        list(read_year(root, "STS13"))
    scores.write_text("4.5\n1\nhigh\n")
    with raises_input_error(file=scores, line=3):
        list(read_year(root, "STS13"))
    texts = root / "STS/STS13-en-test/STS.input.FNWN.txt"
    whole = texts.read_text()
    for line in ("only one sentence", "one\t", "one\ttwo\tthree", "one\rmore\ttwo"):
        texts.write_text(whole + line + "\n", newline="")
        scores.write_text("4.5\n1\n2\n\n")  # the damaged line was never scored
        with raises_input_error(file=texts, line=4):
            list(read_year(root, "STS13"))
    texts.write_text(whole + "o\0ne\ttwo\n")
    with raises_input_error(file=texts, line=4):
        list(read_year(root, "STS13"))
    texts.write_text(whole)
    for score in ("55", "nan", "inf", "-1", "1_0", "abc"):
        scores.write_text(f"4.5\n{score}\n1\n")
        with raises_input_error(file=scores, line=2):
            list(read_year(root, "STS13"))
    (root / "SICK/SICK_trial.txt").write_bytes(b"4\tA man\tA dog\t3.3\tNEUTRAL\n")
    with raises_input_error(file=root / "SICK/SICK_trial.txt", line=1):
        read_pairs("SICK-R", root, "dev")
    (root / "SICK/SICK_trial.txt").write_bytes(b"head\n1\tcaf\xe9\tb\t1\n")
    with raises_input_error(file=root / "SICK/SICK_trial.txt", line=2):
        read_pairs("SICK-R", root, "dev")
    with raises_input_error(file=root / "STS/STSBenchmark/sts-test.csv"):
        read_pairs("STS-B", root, "test")


def test_a_folder_of_one_s_own_serves_what_it_has_and_the_hub_the_rest(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hub() -> Path:
        raise InputError("from the hub")

    monkeypatch.setattr(senteval_files, "senteval_root", hub)
    monkeypatch.setenv("HARNESS_SENTEVAL", str(tmp_path))
    assert [subset.name for subset in load_sts("STS13", source="senteval").subsets] == [
        "FNWN",
        "headlines",
        "OnWN",
    ]
    with raises_input_error(file=root / "STS/STS12-en-test/STS.input.MSRpar.txt"):
        load_sts("STS12", source="senteval")
    (tmp_path / "more" / "probing").mkdir(parents=True)
    monkeypatch.setenv("HARNESS_SENTEVAL", str(tmp_path / "more"))  # probing files alone
    with raises_input_error():
        load_sts("STS13", source="senteval")
    with raises_input_error():
        downstream_folder()


def test_fingerprint_covers_names_texts_and_scores(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(senteval_files, "senteval_root", lambda: root)
    before = load_sts("STS13", source="senteval")
    assert before.sha256 == load_sts("STS13", source="senteval").sha256
    (root / "STS/STS13-en-test/STS.gs.FNWN.txt").write_text("4.5\n\n0.001\n")
    after = load_sts("STS13", source="senteval")
    assert after.sha256 != before.sha256
    for subset in before.subsets:
        assert subset.gold.dtype == np.float64
        assert not subset.gold.flags.writeable


@pytest.mark.parametrize(
    ("task", "source", "split", "key"),
    [
        ("STS-12", "senteval", "test", "task"),
        ("STS12", "embedded", "test", "task"),
        ("STS12", "sentevl", "test", "source"),
        ("STS12", "senteval", "dev", "split"),
        ("SICK-R", "mteb", "dev", "split"),
        ("Embedded-STS-natural", "embedded", "train", "split"),
    ],
)
def test_unknown_names(task: str, source: str, split: str, key: str) -> None:
    with raises_input_error(key=key):
        load_sts(task, source=source, split=split)  # type: ignore[arg-type]


# --- the published data


@pytest.mark.hub
@pytest.mark.parametrize("year", sorted(COUNTS))
def test_senteval_years_have_the_published_counts(year: str) -> None:
    pairs = load_sts(year, source="senteval")
    assert {s.name: len(s.gold) for s in pairs.subsets} == COUNTS[year]
    for subset in pairs.subsets:
        assert len(subset.sentences1) == len(subset.sentences2) == len(subset.gold)
        assert 0 <= subset.gold.min() <= subset.gold.max() <= 5
        assert all(
            text == " ".join(text.split()) == text.lower() != "" for text in subset.sentences1
        )


@pytest.mark.hub
def test_stsb_and_sick_have_the_published_counts() -> None:
    sizes = {"STS-B": (5749, 1500, 1379), "SICK-R": (4500, 500, 4927)}
    above_four = 0
    for task, counts in sizes.items():
        for split, count in zip(("train", "dev", "test"), counts, strict=True):
            (subset,) = load_sts(task, source="senteval", split=split).subsets
            assert len(subset.gold) == count
            above_four += int((subset.gold > 4).sum()) if task == "STS-B" else 0
    assert above_four == 1491  # the positive pairs of SimCSE's alignment


@pytest.mark.hub
@pytest.mark.parametrize("task", sorted(MTEB))
def test_mteb_sets_have_the_statistics_that_mteb_states(task: str) -> None:
    (subset,) = load_sts(task, source="mteb").subsets
    count, first, second, mean = MTEB[task]
    assert len(subset.gold) == count
    assert sum(map(len, subset.sentences1)) == first
    assert sum(map(len, subset.sentences2)) == second
    assert subset.gold.mean() == pytest.approx(mean, abs=1e-6)


@pytest.mark.hub
def test_both_sources_have_the_same_scores_of_sts12() -> None:
    ours = np.concatenate([s.gold for s in load_sts("STS12", source="senteval").subsets])
    (theirs,) = load_sts("STS12", source="mteb").subsets
    assert np.allclose(np.sort(ours), np.sort(theirs.gold))


def test_known_sizes_are_those_of_the_years_and_only_other_ones_are_told() -> None:
    assert {year: SIZES[year] for year in COUNTS} == COUNTS
    assert unusual_sizes("STS13", COUNTS["STS13"]) == []
    (said,) = unusual_sizes("STS13", {**COUNTS["STS13"], "OnWN": 560})
    assert said.startswith("examples: 560 in OnWN (not 561); files cut short")
    assert unusual_sizes("Embedded-STS-natural", {"d": 3}) == []


def test_a_pipe_among_the_files_of_senteval_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "STS" / "STS12-en-test"
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"STS.input.{next(iter(SIZES['STS12']))}.txt")
    with raises_input_error(file=folder / "STS.input.MSRpar.txt"):
        list(read_year(tmp_path, "STS12"))
