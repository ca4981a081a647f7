"""What a report calls planned: only what a frozen plan holds, and nothing that was chosen later."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.files.hashing import content_id
from harness.results.record import Record
from harness.results.store import read_records
from harness.runs.frozen_plan import plan_file, settings_of
from reports.build import build_comparison
from reports.comparison.headline import headline
from reports.decide.verdict_answer import verdict
from reports.load import RecordedResults, read_comparison
from reports.stats.significance import Significance
from reports.stats.verdicts import Ranking, judge_family, planned_family
from tests.support import synthetic

TASKS = ("STS12", "STS-B", "Embedded-STS-natural")


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    made = synthetic.Invented(tmp_path, scale=0.1)
    for label, noise in (("SimCSE", 0.8), ("SCD", 0.95), ("SG", 1.1)):
        for seed in (1, 2, 3):
            made.add(label, seed, noise=noise, tasks=TASKS, curves=False, geometry=False)
    return made


def freeze(
    made: synthetic.Invented, records: Iterable[Record], *, swapped: str = "", **analysis: Any
) -> None:
    """Write the plan of these runs, as `harness compare --freeze` would have before them.

    `swapped`: a row for which seed 4 is planned in place of seed 3.
    """
    runs, rows = [], {}
    for r in records:
        seed = 4 if r.row == swapped and r.seed == 3 else r.seed
        runs.append({"row": r.row, "base_model": r.base_model, "seed": seed, "id": r.id})
        rows[f"{r.row} · {r.base_model}"] = settings_of(r.spec.model_dump(mode="json"))
    plan = {
        "date": "2020-01-01T00:00:00+00:00",
        "analysis": {"baseline": "SCD", "contrasts": [], "most_seeds": 3} | analysis,
        "tasks": ["embedded:Embedded-STS-natural", "senteval:STS-B", "senteval:STS12"],
        "runs": runs,
        "rows": rows,
    }
    file = plan_file(made.workdir, "invented")
    file.parent.mkdir()
    file.write_text(json.dumps({**plan, "sha256": content_id(plan)}))


def read(made: synthetic.Invented, **experiment: Any) -> RecordedResults:
    """The comparison whose file has this experiment."""
    records = read_records(made.workdir, "invented")
    synthetic.write_comparison(made.workdir, records, experiment={"baseline": "SCD"} | experiment)
    return read_comparison(made.workdir, "invented")


def first_sentence(comparison: RecordedResults) -> str:
    return headline(comparison, Significance(comparison))[0]


def is_a_family_of_its_own(comparison: RecordedResults) -> bool:
    """True if the named pairs have other p-values than they have among all pairs."""
    significance = Significance(comparison)
    target = significance.first
    assert target is not None
    block = Ranking(comparison.rows, significance, target)
    among_all = {}
    for i, a in enumerate(block.rows):
        for j, b in enumerate(block.rows):
            if i < j:
                among_all[a.label, b.label] = block.differences[i, j].estimate.p
                among_all[b.label, a.label] = block.differences[i, j].estimate.p
    own = judge_family(planned_family(comparison), significance, target)
    assert own
    return any(d.estimate.p < among_all[a.label, b.label] - 1e-9 for (a, b), d in own)


def test_a_plan_that_was_followed_is_called_so(made: synthetic.Invented) -> None:
    freeze(made, read_records(made.workdir, "invented"))
    comparison = read(made)
    assert first_sentence(comparison).startswith("As planned, on the average of 2 STS tasks")
    assert is_a_family_of_its_own(comparison)
    assert verdict(made.workdir, "SimCSE", "SCD").data["plan"] == "as planned"


def test_without_a_frozen_plan_the_baseline_is_the_files_choice(made: synthetic.Invented) -> None:
    comparison = read(made)
    best, named, *_ = headline(comparison, Significance(comparison))
    assert "the average of 2 STS tasks" in best
    assert named.startswith("Named in the experiment file, without a frozen plan: ")
    assert is_a_family_of_its_own(comparison)
    answer = verdict(made.workdir, "SimCSE", "SCD")
    assert answer.data["plan"] == "chosen in the experiment file, not frozen"
    assert "not frozen" in answer.text


def test_no_page_says_as_planned_without_a_plan(made: synthetic.Invented) -> None:
    read(made)
    build_comparison(made.workdir, "invented", formats=("html", "md", "latex"))
    pages = [
        file
        for file in (made.workdir / "reports").rglob("*")
        if file.suffix in (".html", ".md", ".tex", ".json")
    ]
    assert len(pages) > 3
    for file in pages:
        assert "s planned" not in file.read_text(), file


@pytest.mark.parametrize("change", ["baseline", "contrasts", "row", "seed", "swapped", "primary"])
def test_a_choice_after_the_plan_loses_its_words_and_its_correction(
    made: synthetic.Invented, change: str
) -> None:
    records = read_records(made.workdir, "invented")
    if change == "baseline":
        freeze(made, records, baseline="SimCSE")
    elif change == "contrasts":
        freeze(made, records, contrasts=[{"row": "SG", "against": "SimCSE"}])
    elif change == "primary":
        freeze(made, records, primary="STS12")
    elif change == "row":
        freeze(made, [r for r in records if r.row != "SG"])
    elif change == "seed":
        freeze(made, [r for r in records if (r.row, r.seed) != ("SG", 3)], most_seeds=2)
    else:
        freeze(made, records, swapped="SG")
    comparison = read(made)
    assert first_sentence(comparison).startswith("Not as planned (")
    assert not is_a_family_of_its_own(comparison)
    answer = verdict(made.workdir, "SimCSE", "SCD")
    assert answer.data["family"] == "all 3 pairs of 3 rows"
    assert answer.data["plan"].startswith("not as planned")


def test_a_failed_seed_is_named_and_loses_nothing(made: synthetic.Invented) -> None:
    made.add("SG", 4, status="collapsed", reason="constant", tasks=TASKS)
    freeze(made, read_records(made.workdir, "invented"), most_seeds=4)
    comparison = read(made)
    assert comparison.plan is not None
    assert comparison.plan.texts == ["SG · embedded:mini-bert: seed 4 has no result (collapsed)"]
    for asked in (("SG", "SimCSE"), ("SimCSE", "SG")):
        assert "1 of 4 seeds of SG collapsed and is left out" in verdict(made.workdir, *asked).text
    assert "1 of 4 seeds of SG collapsed" in verdict(made.workdir).text
    assert "left out" not in verdict(made.workdir, "SimCSE", "SCD").text
    assert first_sentence(comparison).startswith("Not as planned (SG")
    assert is_a_family_of_its_own(comparison)


def test_the_primary_score_is_the_headlines_and_the_others_are_secondary(
    made: synthetic.Invented,
) -> None:
    comparison = read(made, primary="Embedded-STS-natural")
    assert "on Embedded-STS-natural (the primary score)" in first_sentence(comparison)
    assert "(the primary score)" in verdict(made.workdir, "SimCSE", "SCD", on="").text
    other = verdict(made.workdir, "SimCSE", "SCD", on="STS")
    assert "(a secondary score)" in other.text
    assert not other.data["primary"]
    lacking = read(made, primary="MRPC")
    assert first_sentence(lacking).startswith("The primary score MRPC has no result.")


def test_the_question_about_the_model_in_use_is_no_choice_of_pairs(
    made: synthetic.Invented,
) -> None:
    comparison = read(made, incumbent="SCD")
    assert first_sentence(comparison).startswith("Each row against the model in use, on the")
    assert is_a_family_of_its_own(comparison)
    answer = verdict(made.workdir, "SimCSE", "SCD")
    assert answer.data["plan"] == "a row against the model in use"
    build_comparison(made.workdir, "invented", formats=("md",))
    page = (made.workdir / "reports" / "invented" / "report.md").read_text()
    assert "not frozen" not in page
    assert "Each row is compared with SCD, the model in use." in page
    freeze(made, read_records(made.workdir, "invented"))
    planned_too = read(made, incumbent="SCD")
    assert first_sentence(planned_too).startswith("As planned")
