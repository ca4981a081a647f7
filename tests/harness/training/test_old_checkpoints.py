"""Checkpoints of before the loops were one (November 2026): a run that they left unfinished goes on, bit for bit.

The keys below are those of that time's three loops; each checkpoint is cut down to exactly these before it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from methods.flow import Flow
from methods.simcse import SimCSE

pytestmark = pytest.mark.timeout(120)

TRAINER = (
    "encoder", "heads", "optimizer", "scaler", "rng", "cuda_rng", "step", "sentences_seen", "seconds", "best",
    "initial_dev", "last", "worse", "precision",
)  # fmt: skip
FLOW = ("flow", "optimizer", "step", "seconds", "bits", "best")


class Killed(BaseException): ...


def kill(step: int, steps: int, text: str) -> None:
    if step == 4:
        raise Killed


def made_old(folder: Path, keys: tuple[str, ...]) -> None:
    file = folder / "checkpoint" / "state.pt"
    state = {"best": {"step": None}, **torch.load(file, weights_only=True)}
    assert state["step"] == 3
    torch.save({key: state[key] for key in keys}, file)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(tensor, b[name]) for name, tensor in a.items())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=120)


def test_of_a_method(tmp_path: Path, corpus: Corpus) -> None:
    def fit(**more: Any) -> SimCSE:
        config = SimCSE.configure({"batch_size": 8, "max_steps": 6, "log_every": 1}, preset="mini")
        return SimCSE(config).fit(corpus, FitContext(seed=2, precision="fp32", checkpoint_seconds=0.0, **more))

    with pytest.raises(Killed):
        fit(folder=tmp_path, progress=kill)
    made_old(tmp_path, TRAINER)
    resumed, whole = fit(folder=tmp_path), fit()
    assert same(resumed.encoder.state_dict(), whole.encoder.state_dict())
    assert "train_tokens" in whole.fit_report.cost
    assert "train_tokens" not in resumed.fit_report.cost  # of three updates nobody knows it


def test_of_the_flow(tmp_path: Path, corpus: Corpus) -> None:
    def fit(**more: Any) -> Flow:
        method = Flow(Flow.configure({"batch_size": 16, "levels": 2, "steps": 1, "log_every": 1, "max_steps": 6}))
        return method.fit(corpus, FitContext(seed=2, checkpoint_seconds=0.0, **more))

    with pytest.raises(Killed):
        fit(folder=tmp_path, progress=kill)
    made_old(tmp_path, FLOW)
    whole, resumed = fit()._flow, fit(folder=tmp_path)._flow
    assert whole is not None
    assert resumed is not None
    assert same(resumed.state_dict(), whole.state_dict())
