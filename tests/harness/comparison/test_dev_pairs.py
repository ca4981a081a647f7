"""`dev.pairs`: selection on some of the dev pairs, the same for every run, and told beside what it selected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness
from harness.comparison.experiment import DevSettings
from harness.errors import InputError
from harness.results.manifest import read_records
from harness.results.run_folder import RunFolder
from harness.sources import load_sts

TASK = "Embedded-STS-contrast"


def test_some_pairs_are_the_same_ones_every_time_and_stay_in_their_order() -> None:
    whole = load_sts(TASK, source="embedded", split="dev")
    some = whole.drawn(100)
    assert some.sha256 == whole.drawn(100).sha256 != whole.sha256
    assert sum(len(subset.gold) for subset in some.subsets) == 100
    places = {
        (subset.name, *pair): place
        for subset in whole.subsets
        for place, pair in enumerate(zip(subset.sentences1, subset.sentences2, subset.gold, strict=True))
    }
    for subset in some.subsets:
        kept = [
            places[subset.name, *pair] for pair in zip(subset.sentences1, subset.sentences2, subset.gold, strict=True)
        ]
        assert kept == sorted(kept)
        assert np.ptp(kept) > 50  # from all of it, not from its beginning
    assert {subset.name for subset in some.subsets} == {subset.name for subset in whole.subsets}


def test_more_pairs_than_there_are_is_one_line() -> None:
    with pytest.raises(InputError, match=r"Embedded-STS-contrast dev \(embedded\) has 300 pairs, and not 301"):
        DevSettings(task=TASK, pairs=301).load()


def test_runs_say_on_how_many_pairs_they_were_selected_and_have_ids_of_their_own(tmp_path: Path) -> None:
    rows = [{"name": "SimCSE", "method": "simcse", "preset": "mini"}]
    wanted = [
        "seeds=[1]",
        "max_steps=2",
        f"suites=['{TASK}']",
        f"dev.task='{TASK}'",
        "corpus.limit=64",
        "precision='fp32'",
    ]
    for name, more in (("whole", []), ("part", ["dev.pairs=50"])):
        harness.compare(rows, workdir=tmp_path, overrides=[f"name='{name}'", *wanted, *more], tracked=False,
                        formats=["md"])  # fmt: skip
    (whole,) = (r for r in read_records(tmp_path, "whole") if r.method == "simcse")
    (part,) = (r for r in read_records(tmp_path, "part") if r.method == "simcse")
    assert whole.id != part.id
    assert whole.dev is not None
    assert part.dev is not None
    assert "pairs" not in whole.dev
    assert part.dev["pairs"] == 50
    scores = [[line["spearman"] for line in RunFolder(tmp_path, r.id).curves() if line["kind"] == "dev"]
              for r in (whole, part)]  # fmt: skip
    assert scores[0] != scores[1]
    said = "dev set Embedded-STS-contrast dev: 50 of its pairs alone select, the same ones in all runs"
    assert said in (tmp_path / "reports" / "part" / "report.md").read_text()
    assert said not in (tmp_path / "reports" / "whole" / "report.md").read_text()
