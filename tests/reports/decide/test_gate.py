"""Proposals one after another: how many wrong ones are kept, what a second look costs, and what
scripts read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, zeta

import harness
from harness.cli import main
from harness.errors import InputError
from reports.stats.online import BETTER, NOT_BETTER, UNDECIDED, Proposal, look, next_level
from tests.support import synthetic

OLD = [79.9, 80.3, 80.1, 80.0, 80.2]
Gate = Callable[..., tuple[int, str]]


def proposed(p: float, seeds: int = 5, most: int = 5, gain: float = 1.0) -> Proposal:
    proposal = Proposal(0.01)
    look(proposal, seeds, most, p, gain, (0.1, 0.1))
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
            proposal = Proposal(next_level(history))
            runs = generator.normal(gain, 2.0, 10)
            for seeds in (3, 5, 7, 10):
                mean, variance = float(runs[:seeds].mean()), 4.0 / seeds
                look(proposal, seeds, 10, float(ndtr(-mean / variance**0.5)), mean, (variance, 0.0))
                if proposal.decision != UNDECIDED:
                    break
            history.append(proposal)
        kept = np.array([proposal.decision == BETTER for proposal in history])
        shares.append(((kept & ~real).sum() / max(1, kept.sum()), (kept & real).sum() / real.sum()))
    wrong, found = np.mean(shares, axis=0)
    assert wrong <= 0.05
    assert found >= 0.9


def test_all_looks_together_spend_the_level_once() -> None:
    proposal = Proposal(0.05)
    look(proposal, 3, 10, 0.02, 0.8, (0.2, 0.0))  # 0.02 > 0.05 * 3 / 10
    assert proposal.decision == UNDECIDED
    look(proposal, 5, 10, 0.009, 0.8, (0.12, 0.0))  # 0.009 < 0.05 * 2 / 10
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


def test_exit_codes(gate: Gate) -> None:
    assert gate([84.9, 85.2, 85.1])[0] == 0
    assert gate([80.0, 80.1, 79.9], candidate="same")[0] == 1
    assert gate([80.9, 81.4, 80.6], candidate="maybe")[0] == 3
    assert gate([99.0, 99.1], candidate="two seeds")[0] == 3


def test_the_same_look_is_answered_again_and_costs_nothing(gate: Gate, tmp_path: Path) -> None:
    first = gate([80.9, 81.4, 80.6])
    assert gate([80.9, 81.4, 80.6]) == first
    assert len((tmp_path / "gate.jsonl").read_text().splitlines()) == 1
    assert gate([80.9, 81.4, 80.6, 81.0, 81.1], "--json")[0] in (0, 1, 3)
    (before, after) = map(json.loads, (tmp_path / "gate.jsonl").read_text().splitlines())
    assert (before["level"], len(before["looks"]), len(after["looks"])) == (after["level"], 1, 2)


def test_json_has_every_number(gate: Gate) -> None:
    code, printed = gate([84.9, 85.2, 85.1], "--json")
    found = json.loads(printed)
    assert (code, found["decision"], found["proposal"], found["seeds"]) == (0, "better", 1, 3)
    assert found["p"] <= found["level"] == pytest.approx(next_level([]))


def test_rows_of_a_work_directory(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.3)
    for seed in (1, 2, 3):
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


def test_a_damaged_history_is_named_with_its_line(gate: Gate, tmp_path: Path) -> None:
    gate([84.9, 85.2, 85.1])
    with (tmp_path / "gate.jsonl").open("a") as file:
        file.write('{"baseline": "old"\n')
    with pytest.raises(InputError, match=r"gate\.jsonl, line 2"):
        harness.gate(tmp_path / "scores.csv", baseline="old", candidate="new")


def test_too_few_looks_and_one_row_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--most 2"):
        harness.gate(tmp_path, baseline="a", candidate="b", most=2)
    with pytest.raises(InputError, match="name two rows"):
        harness.gate(tmp_path, baseline="a", candidate="a")
