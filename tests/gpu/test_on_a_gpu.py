"""What only a GPU shows: `make test-gpu`. Skipped with the reason where there is none.

Compute in float32 on a GPU rounds otherwise than on a processor, so vectors and losses are held
against it within a tolerance; what is made twice on one GPU is held bit by bit.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import harness
from harness import api
from harness.encoder import Encoder
from harness.errors import StopRequested
from harness.machine.energy import EnergyMeter
from harness.method import FitContext
from harness.results.store import read_records
from harness.sources import load_corpus
from methods.simcse import SimCSE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

DEVICE = "cuda"
SMALL = {"batch_size": 16, "train_length": 16, "max_steps": 6}


@pytest.fixture(autouse=True)
def gpus() -> int:
    """How many there are."""
    count = torch.cuda.device_count()
    if not count:
        pytest.skip("needs a GPU that torch can use: torch.cuda.device_count() is 0")
    return count


def fitted(folder: Path | None = None, *, precision: str = "fp32", **more: object) -> SimCSE:
    keys = {name: more.pop(name) for name in list(more) if name in SimCSE.Config.model_fields}
    method = SimCSE(SimCSE.configure({**SMALL, **keys}, preset="mini"))
    context = FitContext(seed=1, device=DEVICE, precision=precision, folder=folder, **more)  # type: ignore[arg-type]
    method.fit(load_corpus("embedded:sentences", limit=96), context)
    return method


def weights(method: SimCSE) -> dict[str, torch.Tensor]:
    assert method._encoder is not None
    return {name: tensor.cpu() for name, tensor in method._encoder.state_dict().items()}


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "curves.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


def test_vectors_are_those_of_the_processor() -> None:
    texts = ["A dog runs.", "Two children play chess in the yard.", "It rains."]
    encoder = Encoder.load("embedded:mini-bert")
    here, there = (encoder.encode(texts, device=device) for device in ("cpu", DEVICE))
    assert np.abs(here - there).max() < 1e-4


def test_bf16_trains_and_weights_stay_in_float32(tmp_path: Path) -> None:
    # At the low temperature of the preset rounding and masks decide the loss.
    warm = {"log_every": 1, "temperature": 1.0}
    half = fitted(tmp_path / "half", precision="bf16", **warm)
    fitted(tmp_path / "full", precision="fp32", **warm)
    assert half.fit_report.training["precision"] == "bf16"
    assert {tensor.dtype for tensor in weights(half).values() if tensor.is_floating_point()} == {
        torch.float32
    }
    assert losses(tmp_path / "half") == pytest.approx(losses(tmp_path / "full"), rel=0.05)
    assert losses(tmp_path / "half") != losses(tmp_path / "full")


def test_energy_is_counted() -> None:
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    with EnergyMeter(DEVICE) as meter:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            torch.randn(4096, 4096, device=DEVICE).square().sum().item()
    assert 20 < meter.costs("train")["train_gpu_joules"] < 4000  # 10 W to 2 kW


def test_a_batch_in_parts_has_the_gradients_of_the_whole() -> None:
    nothing = (0.0, 0.0)
    found: dict[int | None, dict[str, torch.Tensor]] = {}
    for size in (None, 2):
        encoder = Encoder.load("embedded:mini-bert").to(DEVICE).train()
        encoder.micro_batch = size
        ids = encoder.tokenize(list(load_corpus("embedded:sentences", limit=5)))
        a, b = encoder.two_views(
            ids, ids, hidden_dropout=nothing, attention_dropout=nothing, differ_by=None
        )
        (a @ b.T).logsumexp(1).mean().backward()
        found[size] = {
            name: p.grad.cpu() for name, p in encoder.named_parameters() if p.grad is not None
        }
    largest = max(float(gradient.abs().max()) for gradient in found[None].values())
    for name, gradient in found[None].items():
        assert float((found[2][name] - gradient).abs().max()) <= 1e-4 * largest, name


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-3), ("bf16", 0.1)])
def test_a_batch_without_padding_has_the_gradients_of_a_padded_one(
    precision: str, tolerance: float
) -> None:
    """Attention by kernels for rows of unequal length: flash in half precision, memory-efficient in
    fp32.
    """
    nothing = (0.0, 0.0)
    encoder = Encoder.load("embedded:mini-bert").to(DEVICE).train()
    encoder.pack_batches()
    ids = encoder.tokenize(list(load_corpus("embedded:sentences", limit=16)))
    found: dict[bool, torch.Tensor] = {}
    for packed in (False, True):
        encoder.packed = packed
        encoder.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
            a, b = encoder.two_views(
                ids, ids, hidden_dropout=nothing, attention_dropout=nothing, differ_by=None
            )
        (a.float() @ b.float().T).logsumexp(1).mean().backward()
        found[packed] = torch.cat(
            [p.grad.flatten() for p in encoder.parameters() if p.grad is not None]
        )
    assert float((found[True] - found[False]).norm() / found[False].norm()) < tolerance


def test_a_run_that_was_stopped_ends_with_the_weights_of_one_that_was_not(tmp_path: Path) -> None:
    whole = weights(fitted(tmp_path / "whole"))
    asked = iter([False, False, True])
    with pytest.raises(StopRequested):
        fitted(tmp_path / "cut", stop=lambda: next(asked))
    resumed = weights(fitted(tmp_path / "cut"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_workers_get_a_gpu_and_say_so(tmp_path: Path, gpus: int) -> None:
    experiment = {
        "name": "placed",
        "seeds": [1, 2],
        "suites": ["Embedded-STS-natural"],
        "max_steps": 2,
        "device": DEVICE,
        "corpus": {"uri": "embedded:sentences", "limit": 40},
        "dev": {"task": "Embedded-STS-natural"},
        "methods": [{"method": "simcse", "preset": "mini", "config": {"batch_size": 8}}],
    }
    share = 1.0 if gpus > 1 else 0.5
    placed = {"name": "processes", "workers": 2, "gpus_per_run": share}
    found = api.compare(
        experiment, workdir=tmp_path, executor=placed, tracking_uri="none", formats=[]
    )
    assert found.status == "finished"
    trained = [record for record in read_records(tmp_path, "placed") if record.method == "simcse"]
    assert [str(record.environment["device"])[:4] for record in trained] == ["cuda", "cuda"]
    assert all(
        record.cost["train_gpu_seconds"] > 0
        for record in trained
        if "train_gpu_seconds" in record.cost
    )


def test_a_saved_model_opens_on_the_processor(tmp_path: Path) -> None:
    method = fitted()
    method.save(tmp_path / "model")
    texts = ["A dog runs.", "It rains."]
    opened = harness.load_model(tmp_path / "model")
    assert np.abs(np.asarray(opened.encode(texts)) - np.asarray(method.encode(texts))).max() < 1e-4
