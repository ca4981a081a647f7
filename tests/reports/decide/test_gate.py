"""Proposals one after another: how many wrong ones are kept, what a second look costs, and what
scripts read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, zeta

import harness
from harness.cli import main
from reports.stats.estimate import Estimate, p_of_at_most
from reports.stats.online import BETTER, NOT_BETTER, UNDECIDED, Proposal, look, next_level
from tests.support import synthetic
from tests.support.errors import raises_input_error

OLD = [79.9, 80.3, 80.1, 80.0, 80.2]
Gate = Callable[..., tuple[int, str]]


def proposed(p: float, seeds: int = 5, most: int = 5, gain: float = 1.0) -> Proposal:
    proposal = Proposal(0.01, most)
    look(proposal, seeds, p, gain, (0.1, 0.1))
    return proposal


def test_first_level_is_that_of_the_paper() -> None:
    assert next_level([]) == pytest.approx((0.5 - 0.25) * 0.025 / zeta(1.6))


def test_clearly_worse_and_promising_proposals_cost_nothing_and_others_do() -> None:
    assert next_level([proposed(0.9)]) == next_level([])
    assert next_level([proposed(0.1)]) == next_level([])
    assert next_level([proposed(0.4)]) == pytest.approx(next_level([]) * 2**-1.6)


def test_what_was_kept_pays_for_later_proposals() -> None:
    assert proposed(0.001).decision == BETTER
    assert next_level([proposed(0.001)]) == pytest.approx(2 * next_level([]))
    assert next_level([proposed(0.001)] * 2) == pytest.approx(4 * next_level([]))


def test_few_of_the_kept_are_wrong_although_each_is_looked_at_four_times() -> None:
    generator, shares = np.random.default_rng(0), []
    for _ in range(40):
        history: list[Proposal] = []
        real = generator.random(200) < 0.1
        for gain in np.where(real, 5.0, 0.0):
            proposal = Proposal(next_level(history), most=10)
            runs = generator.normal(gain, 2.0, 10)
            for seeds in (3, 5, 7, 10):
                mean, variance = float(runs[:seeds].mean()), 4.0 / seeds
                look(proposal, seeds, float(ndtr(-mean / variance**0.5)), mean, (variance, 0.0))
                if proposal.decision != UNDECIDED:
                    break
            history.append(proposal)
        kept = np.array([proposal.decision == BETTER for proposal in history])
        shares.append(((kept & ~real).sum() / max(1, kept.sum()), (kept & real).sum() / real.sum()))
    wrong, found = np.mean(shares, axis=0)
    assert wrong <= 0.05
    assert found >= 0.9


def test_all_looks_together_spend_the_level_once() -> None:
    proposal = Proposal(0.05, most=10)
    look(proposal, 3, 0.02, 0.8, (0.2, 0.0))  # 0.02 > 0.05 * 3 / 10
    assert proposal.decision == UNDECIDED
    look(proposal, 5, 0.009, 0.8, (0.12, 0.0))  # 0.009 < 0.05 * 2 / 10
    assert proposal.decision == BETTER
    assert proposal.p == pytest.approx(0.009 / 0.2)


def test_hopeless_proposals_are_dropped_before_the_last_look() -> None:
    assert proposed(0.45, seeds=3, most=10, gain=0.05).decision == NOT_BETTER


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    """Runs the command on these runs of "new"; returns the exit code and what was printed."""

    def ask(new: Sequence[float], *options: str, candidate: str = "new") -> tuple[int, str]:
        lines = [
            f"{row},{n},{x}"
            for row, runs in {"old": OLD, candidate: new}.items()
            for n, x in enumerate(runs)
        ]
        (tmp_path / "scores.csv").write_text("\n".join(["row,seed,score", *lines]) + "\n")
        scores = ("--scores", str(tmp_path / "scores.csv"))
        code = main(["gate", "--baseline", "old", "--candidate", candidate, *scores, *options])
        return code, capsys.readouterr().out

    return ask


FAR = [84.9, 85.2, 85.1, 85.3, 85.0]
NEAR = [80.4, 80.9, 80.0, 80.6, 80.5]
EQUAL = [80.0, 80.1, 79.9, 80.3, 80.1]
WORSE = [75.0, 75.2, 75.1, 74.9, 75.1]


def test_exit_codes(gate: Gate) -> None:
    assert gate(FAR)[0] == 0
    assert gate(EQUAL, candidate="same")[0] == 1
    assert gate(NEAR, candidate="maybe")[0] == 3
    assert gate([99.0, 99.1], candidate="two seeds")[0] == 3


def test_nothing_is_decided_with_four_seeds(gate: Gate, tmp_path: Path) -> None:
    code, printed = gate(FAR[:4])
    assert code == 3
    assert "first decision needs 5 of new" in printed
    assert not (tmp_path / "gate.jsonl").exists()


def test_the_same_look_is_answered_again_and_costs_nothing(gate: Gate, tmp_path: Path) -> None:
    first = gate(NEAR)
    assert gate(NEAR) == first
    assert len((tmp_path / "gate.jsonl").read_text().splitlines()) == 1
    assert gate([*NEAR, 80.7, 80.8], "--json")[0] in (0, 1, 3)
    (before, after) = map(json.loads, (tmp_path / "gate.jsonl").read_text().splitlines())
    assert (before["level"], len(before["looks"]), len(after["looks"])) == (after["level"], 1, 2)


@pytest.mark.parametrize("second", [WORSE, EQUAL, NEAR])
def test_another_change_under_a_label_that_was_used_is_another_proposal(
    gate: Gate, second: list[float]
) -> None:
    assert gate(FAR)[0] == 0
    code, printed = gate(second, "--json")
    found = json.loads(printed)
    assert code != 0
    assert (found["proposal"], found["proposals"], found["accepted"]) == (2, 2, 1)
    assert gate(FAR)[0] == 0  # the first change is still known


def test_a_good_change_after_a_rejected_one_under_the_same_label_is_kept(gate: Gate) -> None:
    assert gate(WORSE)[0] == 1
    assert gate(FAR)[0] == 0


def test_seeds_that_replace_others_are_another_proposal(gate: Gate) -> None:
    gate(NEAR)
    replaced = json.loads(gate([*NEAR[:4], 80.55, 80.7, 80.8], "--json")[1])
    assert replaced["proposal"] == 2


def test_better_is_not_said_of_a_loss_that_later_seeds_show(gate: Gate) -> None:
    assert gate(FAR)[0] == 0
    code, printed = gate([*FAR, *[20.0] * 4])
    assert code == 1
    assert printed.startswith("not better:")


def test_the_most_seeds_are_fixed_at_the_first_look(gate: Gate, tmp_path: Path) -> None:
    assert gate(NEAR, "--most", "10")[0] == 3
    assert gate([*NEAR, 80.7, 80.8], "--most", "30") == (2, "")
    with raises_input_error(key="--most"):
        harness.gate(tmp_path / "scores.csv", baseline="old", candidate="new", most=30)
    assert json.loads(gate([*NEAR, 80.7, 80.8], "--most", "10", "--json")[1])["most"] == 10


def test_json_has_every_number(gate: Gate) -> None:
    code, printed = gate(FAR, "--json")
    found = json.loads(printed)
    assert (code, found["decision"], found["proposal"], found["seeds"]) == (0, "better", 1, 5)
    assert found["p"] <= found["level"] == pytest.approx(next_level([]))


def test_rows_of_a_work_directory(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.3)
    for seed in range(1, 6):
        for label, noise in (("SimCSE", 1.0), ("worse", 8.0)):
            made.add(label, seed, noise=noise, tasks=("STS-B",), curves=False, geometry=False)
    answer = harness.gate(tmp_path, baseline="worse", candidate="SimCSE")
    assert answer.data["decision"] == "better"
    assert answer.data["gain"] == pytest.approx(
        harness.verdict(tmp_path, "SimCSE", "worse").data["difference"]
    )
    assert (
        harness.gate(tmp_path, baseline="SimCSE", candidate="worse").data["decision"]
        == "not better"
    )
    assert len((tmp_path / "gate.jsonl").read_text().splitlines()) == 2


def write_line(file: Path, **changes: object) -> None:
    """A sound line of a history, but for the changes."""
    line = {
        "proposal": 1,
        "baseline": "old",
        "candidate": "other",
        "on": "the score",
        "level": 0.0027,
        "most": 10,
        "looks": [[5, 0.5, 0.2]],
        "decision": "undecided",
        "runs": ["a"],
        "baseline_runs": ["b"],
    }
    file.write_text(json.dumps(line | changes) + "\n")


@pytest.mark.parametrize(
    "content",
    [
        b'{"baseline": "old"\n',
        b"\xff\xfe\n",
        b"[" * 100_000,
        b"null\n",
    ],
)
def test_a_damaged_history_is_named_with_its_line(
    gate: Gate, tmp_path: Path, content: bytes
) -> None:
    gate(FAR)
    with (tmp_path / "gate.jsonl").open("ab") as file:
        file.write(content)
    with raises_input_error(file=tmp_path / "gate.jsonl", line=2):
        harness.gate(tmp_path / "scores.csv", baseline="old", candidate="new")


@pytest.mark.parametrize(
    "change",
    [
        {"level": float("nan")},
        {"level": -1},
        {"level": 10**400},
        {"most": float("inf")},
        {"proposal": float("inf")},
        {"looks": [[float("inf"), 0.5, 0.1]]},
        {"decision": "garbage"},
        {"looks": []},
        {"looks": [[5, 0.5, float("nan")]]},
        {"looks": 3},
        {"runs": None},
        {"most": "many"},
        {"proposal": 7},
    ],
)
def test_a_line_with_a_value_that_cannot_be_is_refused(
    gate: Gate, tmp_path: Path, change: dict[str, object]
) -> None:
    write_line(tmp_path / "gate.jsonl", **change)
    assert gate(FAR) == (2, "")
    with raises_input_error(file=tmp_path / "gate.jsonl", line=1):
        harness.gate(tmp_path / "scores.csv", baseline="old", candidate="new")


def test_a_history_that_is_a_pipe_or_a_device_is_refused(gate: Gate, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for history in (tmp_path / "pipe", Path("/dev/zero")):
        assert gate(FAR, "--history", str(history)) == (2, "")


def test_lines_of_an_earlier_version_count_and_are_no_proposal_of_now(
    gate: Gate, tmp_path: Path
) -> None:
    file = tmp_path / "gate.jsonl"
    write_line(file, candidate="new", looks=[[3, 0.3, 0.4]])
    old = json.loads(file.read_text())
    for key in ("proposal", "most", "runs", "baseline_runs"):
        del old[key]
    file.write_text(json.dumps(old) + "\n")
    found = json.loads(gate(FAR, "--json")[1])
    assert found["proposal"] == 2
    assert found["level"] < next_level([])


def test_too_few_looks_and_one_row_twice_are_refused(tmp_path: Path) -> None:
    with raises_input_error(key="--most"):
        harness.gate(tmp_path, baseline="a", candidate="b", most=4)
    with raises_input_error(key="a"):
        harness.gate(tmp_path, baseline="a", candidate="a")


def test_what_is_not_worse_by_a_margin_is_kept_and_what_may_be_is_not(gate: Gate) -> None:
    margin = ("--not-worse-by", "1", "--most", "5")
    code, printed = gate(EQUAL, *margin, "--json", candidate="same")
    assert (code, json.loads(printed)["decision"]) == (0, "not worse")
    assert gate(EQUAL, "--most", "5", candidate="same")[0] == 1  # not better: another question
    code, printed = gate(WORSE, *margin, "--json", candidate="worse")
    assert (code, json.loads(printed)["decision"]) == (1, "may be worse")
    assert gate(FAR, "--not-worse-by", "0.3")[1].startswith("not worse (by 0.3 points): ")
    with raises_input_error(key="--not-worse-by"):
        harness.gate("scores.csv", baseline="a", candidate="b", not_worse_by=-1)


def test_a_margin_is_part_of_the_question(gate: Gate, tmp_path: Path) -> None:
    for options in ((), ("--not-worse-by", "0.5"), ("--not-worse-by", "0.5")):
        gate(NEAR, *options)
    lines = map(json.loads, (tmp_path / "gate.jsonl").read_text().splitlines())
    assert [(line["proposal"], line.get("not_worse_by")) for line in lines] == [
        (1, None),
        (2, "0.5"),
    ]


@pytest.mark.parametrize(("bound", "spread"), [(0.0, 1.0), (-0.5, 1.0), (-2.0, 0.4)])
def test_p_with_a_margin_is_that_of_welch_s_test_of_shifted_runs(
    bound: float, spread: float
) -> None:
    from scipy import stats

    draw = np.random.default_rng(3)
    a, b = draw.normal(0.3, 1.0, 6), draw.normal(0.0, spread, 4)
    welch = stats.ttest_ind(a, b, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    estimate = Estimate(a.mean() - b.mean(), low, high, welch.pvalue)
    variance = a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)
    shifted = stats.ttest_ind(a - bound, b, equal_var=False, alternative="greater")
    assert p_of_at_most(estimate, bound, variance) == pytest.approx(shifted.pvalue, rel=1e-6)


def test_a_task_that_one_row_lacks_is_an_error_where_all_are_wanted(tmp_path: Path) -> None:
    lines = [f"{row},{n},STS-B,{x}" for row in ("old", "new") for n, x in enumerate(OLD)]
    lines += [f"old,{n},SICK-R,{x}" for n, x in enumerate(OLD)]
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(["row,seed,task,score", *lines]) + "\n")
    harness.gate(file, baseline="old", candidate="new")
    with raises_input_error(file=file, key="new"):
        harness.gate(file, baseline="old", candidate="new", all_tasks=True)
    made = synthetic.Invented(tmp_path, scale=0.3)
    for seed in range(1, 6):
        made.add("whole", seed, tasks=("STS-B", "SICK-R"), curves=False, geometry=False)
        made.add("part", seed, tasks=("STS-B",), curves=False, geometry=False)
    with raises_input_error(key="part"):
        harness.gate(tmp_path, baseline="whole", candidate="part", on="SICK-R", all_tasks=True)


def test_a_task_that_the_candidate_lacks_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"old,{n},{task},{x}" for task in ("STS-B", "SICK-R") for n, x in enumerate(OLD)]
    lines += [f"new,{n},STS-B,{x}" for n, x in enumerate(FAR)]
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(["row,seed,task,score", *lines]) + "\n")
    main(["gate", "--baseline", "old", "--candidate", "new", "--scores", str(file)])
    printed = capsys.readouterr().out
    assert "SICK-R" in printed
    assert len(printed.splitlines()) == 1
