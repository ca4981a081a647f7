"""Reading the examples of runs: against the stored frames, split by pandas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.results.outcomes import outcomes_frame
from harness.results.store import RunFolder, join_examples
from reports.read.examples import ExampleReader

COUNT = 12


def pairs(seed: int, order: np.ndarray) -> pd.DataFrame:
    """Invent the scored pairs of two tasks, in the order given."""
    frames = []
    for task, source in (("STS12", "senteval"), ("mteb:STS22", "mteb")):
        frame = pd.DataFrame(
            {
                "task": task,
                "source": source,
                "split": np.where(np.arange(COUNT) < 10, "test", "dev"),
                "subset": np.where(np.arange(COUNT) % 3 == 1, "b", "a"),
                "pair": np.arange(COUNT),
                "gold": np.arange(COUNT) % 5.0,
                "score": np.random.default_rng(seed).normal(size=COUNT),
                "text1": 2**62 + np.arange(COUNT),
                "text2": -(2**61) - np.arange(COUNT),
            }
        )
        frames.append(frame.iloc[order])
    return pd.concat(frames).sample(frac=1, random_state=0)


def outcomes(seed: int) -> pd.DataFrame:
    """Invent what examples of three scores did: right or wrong, in folds, and one a set."""
    draw = np.random.default_rng(seed)
    units = 2**62 + np.arange(COUNT)
    about = {"source": "senteval", "split": "test", "unit": units}
    folds = [f"fold {1 + number % 2}" for number in range(COUNT)]
    sets = [f"set {number}" for number in range(COUNT)]
    right = draw.integers(0, 2, COUNT)
    gold = np.arange(COUNT) % 2
    frames = [
        outcomes_frame(task="MR", metric="accuracy", outcome=right, subset=folds, **about),
        outcomes_frame(task="CR", metric="f1", outcome=right, target=gold, **about),
        outcomes_frame(task="sets", metric="v_measure", outcome=right / 3, subset=sets, **about),
    ]
    return pd.concat(frames)


def store(workdir: Path, name: str, seed: int, order: np.ndarray) -> RunFolder:
    folder = RunFolder(workdir, name)
    folder.path.mkdir(parents=True)
    examples = join_examples(pairs(seed, order), outcomes(seed))
    assert examples is not None
    folder.write_examples(examples)
    return folder


def test_each_run_has_its_own_outcomes_of_the_examples_that_runs_share(tmp_path: Path) -> None:
    forwards = np.arange(COUNT)
    folders = [
        store(tmp_path, "one", 1, forwards),
        store(tmp_path, "two", 2, forwards),
        store(tmp_path, "turned", 3, forwards[::-1]),
    ]
    reader = ExampleReader()
    digests = []
    for folder in folders:
        found = {one.score: one for one in reader.read(folder)}
        frame = folder.pairs()
        frame = frame[frame["split"] == "test"]
        for (task, source), rows in frame.groupby(["task", "source"]):
            own = rows["gold"], rows["score"], rows[["text1", "text2"]]
            metric = "cosine_spearman" if source == "mteb" else "spearman"
            one = found.pop((task, source, "test", metric))
            for stored, read in zip(own, (one.target, one.outcome, one.texts), strict=True):
                np.testing.assert_array_equal(read, stored)
            subsets = rows["subset"] if source == "mteb" else ["all"] * len(rows)
            assert len(set(zip(one.part, subsets, strict=True))) == len(set(subsets))
        for (task, metric), rows in folder.outcomes().groupby(["task", "metric"]):
            one = found.pop((task, "senteval", "test", metric))
            np.testing.assert_array_equal(one.outcome, rows["outcome"])
            np.testing.assert_array_equal(one.target, rows["target"])
            np.testing.assert_array_equal(one.texts[:, 0], rows["unit"])
            assert len(set(one.part)) == (2 if task == "MR" else 1)
        assert not found
        digests.append([one.digest for one in reader.read(folder)])
    assert digests[0] == digests[1]
    assert not set(digests[0]) & set(digests[2][:2]), "pairs in another order are others"


def test_left_out_examples_are_gone_by_their_number_and_subset(tmp_path: Path) -> None:
    folder = store(tmp_path, "one", 1, np.arange(COUNT))
    left_out = {
        ("STS12", "senteval"): {"a": frozenset({0, 1, 2})},  # pair 1 is one of subset b
        ("MR", "senteval"): {"": frozenset({4})},
    }
    whole = {one.score[0]: one for one in ExampleReader().read(folder)}
    fewer = {one.score[0]: one for one in ExampleReader(left_out).read(folder)}
    gone = set(whole["STS12"].texts[:, 0]) - set(fewer["STS12"].texts[:, 0])
    assert gone == {2**62, 2**62 + 2}
    gone = set(whole["MR"].texts[:, 0]) - set(fewer["MR"].texts[:, 0])
    assert gone == {2**62 + 4}
    assert len(fewer["CR"].outcome) == COUNT


@pytest.mark.parametrize("column", ["text1", "task"])
def test_examples_without_a_text_or_a_name_are_damaged(tmp_path: Path, column: str) -> None:
    folder = store(tmp_path, "one", 1, np.arange(COUNT))
    frame = folder.examples()
    assert frame is not None
    frame[column] = None
    folder.write_examples(frame)
    with pytest.raises(ValueError, match=column):
        ExampleReader().read(folder)


def test_examples_without_a_column_are_damaged(tmp_path: Path) -> None:
    folder = store(tmp_path, "one", 1, np.arange(COUNT))
    frame = folder.examples()
    assert frame is not None
    folder.write_examples(frame.drop(columns="target"))
    with pytest.raises(KeyError):
        ExampleReader().read(folder)
