"""Points on runs: one id, one score (a), parameters that occur twice (b), files of comparisons that
were changed (d), and views that are equal (g).
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import harness
from harness.results.store import read_records
from harness.training import TrainedMethod
from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_models import is_equal, is_refused, save_plain

TASK = "Embedded-STS-contrast"
SHAPE = {"batch_size": 8, "train_length": 12, "learning_rate": 1e-3, "pooling": "mean"}
SIMCSE = {"method": "simcse", "config": SHAPE}
BARLOW = {
    "method": "barlow_twins",
    "config": {**SHAPE, "shuffle": 0.5, "dropout": None, "projector": [16, 16]},
}
CLS = {"method": "pooling", "name": "cls", "config": {"pooling": "cls"}}
MEAN = {"method": "pooling", "name": "mean", "config": {"pooling": "mean"}}
TEXTS = [
    f"Sentence {n} is about {word}." for n, word in enumerate(["cats", "dogs", "rain", "sun"] * 4)
]
TRAIN = {"batch_size": 8, "max_steps": 3, "learning_rate": 1e-3, "pooling": "mean"}


def experiment(base: str, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a small comparison."""
    return {
        "base_models": [base],
        "name": "small",
        "seeds": [1],
        "suites": [TASK],
        "max_steps": 3,
        "corpus": {"uri": "embedded:sentences", "limit": 64},
        "dev": {"task": TASK},
        "methods": list(rows),
        **more,
    }


def compare(workdir: Path, *rows: dict[str, Any], executor: str = "serial", **more: Any) -> None:
    """Run a comparison of a small base model, which is made beside the work directory."""
    base = workdir.parent / "base"
    if not base.is_dir():
        save_plain(base)
    plan = experiment(str(base), *rows, **more)
    harness.compare(plan, workdir=workdir, tracking_uri="none", formats=[], executor=executor)


# ------------------------------------------------------------------------------- one id, one score


@point("a")
def one_id_has_one_score(folder: Path, room: Path) -> Iterator[Finding]:
    """Twenty fresh work directories of one comparison, whose rows come in several orders, beside
    others, in this process and in another.
    """
    orders = ((SIMCSE, BARLOW, CLS), (BARLOW, CLS, SIMCSE), (CLS, MEAN, SIMCSE, BARLOW))
    found: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for number in range(20):
        workdir = room / f"work {number}"
        executor = "processes" if number == 10 else "serial"
        compare(workdir, *orders[number % len(orders)], executor=executor)
        for record in read_records(workdir):
            values = [score.value for score in record.scores]
            weights = [digest for name, digest in record.files.items() if "safetensors" in name]
            found[record.id].add((*values, *weights))
    apart = {run: values for run, values in found.items() if len(values) > 1}
    seen = f"{len(found)} ids, {len(apart)} of them with several scores: {apart}"[:300]
    yield Finding("20 fresh work directories", "one score for each id", seen, not apart)

    compare(room / "named", SIMCSE, precision="bf16")
    compare(room / "default", SIMCSE)
    by_name, by_default = (
        next(record for record in read_records(room / name) if record.row == "simcse")
        for name in ("named", "default")
    )
    seen = f"{by_default.spec.precision} and {by_name.spec.precision}"
    ok = seen == "fp32 and bf16" and by_name.id != by_default.id
    yield Finding("the default and bf16 by name", "fp32 and bf16, two ids", seen, ok)
    for name, act in {
        "auto in compare": lambda: compare(room / "auto", SIMCSE, precision="auto"),
        "auto in train": lambda: harness.train("simcse", corpus=TEXTS, precision="auto"),
        "auto in a study": lambda: harness.study(
            {
                "method": "simcse",
                "precision": "auto",
                "trials": 1,
                "space": {"temperature": {"low": 0.01, "high": 0.1}},
            },
            workdir=room / "study",
        ),
    }.items():
        yield is_refused(name, act)


# -------------------------------------------------------------------- parameters that occur twice


class Plain(TrainedMethod):
    """A loss on two views; its heads are empty."""

    name = "plain_loss"

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        a, b = encoder.two_views(batch.texts)
        return {"loss": nn.functional.cross_entropy(a @ b.T / 10, torch.arange(len(a)))}


class Holder(nn.Module):
    """Modules of which some are also elsewhere."""

    def __init__(self, **held: nn.Module) -> None:
        super().__init__()
        for name, module in held.items():
            setattr(self, name, module)


class HoldsEncoder(Plain):
    """Its heads hold the encoder, as losses of sentence-transformers do."""

    name = "holds_encoder"

    def heads(self, encoder: Any) -> nn.Module:
        return Holder(model=encoder)


class HoldsTransformer(Plain):
    """Its heads hold a part of the encoder, two times."""

    name = "holds_transformer"

    def heads(self, encoder: Any) -> nn.Module:
        return Holder(one=encoder.transformer, two=nn.ModuleList([encoder.transformer]))


class OneLayer(Plain):
    """A layer of its own behind the encoder."""

    name = "one_layer"

    def heads(self, encoder: Any) -> nn.Module:
        return Holder(layer=nn.Linear(encoder.dimension, 8))

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        a, b = (heads.layer(view) for view in encoder.two_views(batch.texts))
        return {"loss": (a - b).square().mean() + (a @ b.T).square().mean()}


class TiedLayer(OneLayer):
    """The same layer, under two names."""

    name = "tied_layer"

    def heads(self, encoder: Any) -> nn.Module:
        layer = nn.Linear(encoder.dimension, 8)
        return Holder(layer=layer, again=nn.ModuleDict({"again": layer}))


@point("b")
def parameters_that_occur_twice(folder: Path, room: Path) -> Iterator[Finding]:
    def train(method: type) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # torch's of duplicate parameters
            fitted = harness.train(method, corpus=TEXTS, config=TRAIN, dev=None)
        return np.asarray(fitted.encode(TEXTS))

    for kind, once in ((HoldsEncoder, Plain), (HoldsTransformer, Plain), (TiedLayer, OneLayer)):
        yield is_equal(kind.__name__, lambda once=once: train(once), lambda kind=kind: train(kind))
    for file in sorted(folder.rglob("shared_parameters.py")):
        sys.path.insert(0, str(file.parent))
        reported = importlib.import_module(file.stem)
        yield is_equal(
            "reported: a holder of the encoder",
            lambda reported=reported: train(reported.Plain),
            lambda reported=reported: train(reported.Holding),
        )


# -------------------------------------------------------------------------- files of comparisons


def _swap(tree: dict[str, Any]) -> None:
    for run in tree["runs"]:
        run["row"] = {"cls": "mean", "mean": "cls"}[run["row"]]


def _take_out(tree: dict[str, Any]) -> None:
    del tree["runs"][0]


def _list_twice(tree: dict[str, Any]) -> None:
    tree["runs"].append({**tree["runs"][0], "seed": 2})


def _rename(tree: dict[str, Any]) -> None:
    tree["runs"][0]["row"] = "better"


def _exchange_ids(tree: dict[str, Any]) -> None:
    first, second = tree["runs"][:2]
    first["id"], second["id"] = second["id"], first["id"]


def _drop_hash(tree: dict[str, Any]) -> None:
    _swap(tree)
    del tree["sha256"]


@point("d")
def files_of_comparisons(folder: Path, room: Path) -> Iterator[Finding]:
    for change in (_swap, _take_out, _list_twice, _rename, _exchange_ids, _drop_hash):
        workdir = room / change.__name__
        compare(workdir, CLS, MEAN)
        truth = json.loads((workdir / "comparisons" / "small.json").read_text())
        file = workdir / "comparisons" / "small.json"
        tree = json.loads(file.read_text())
        change(tree)
        file.write_text(json.dumps(tree))
        name = change.__name__.strip("_").replace("_", " ")
        for command in (
            ["verdict", "--workdir", str(workdir)],
            ["report", "build", "small", "--workdir", str(workdir), "--format", "md"],
        ):
            ended = forked.run(command)
            one_line = len(ended.err.strip().splitlines()) == 1
            ok = ended.code == 2 and one_line and "small.json" in ended.err
            seen = f"exit {ended.code}: {ended.err.strip()[-160:]}"
            yield Finding(f"{name}: {command[0]}", "exit 2, one line", seen, ok)
        doctor = forked.run(["doctor", "--workdir", str(workdir)])
        ok = doctor.code == 1 and "small.json" in doctor.out
        yield Finding(f"{name}: doctor", "exit 1, names it", f"exit {doctor.code}", ok)
        compare(workdir, CLS, MEAN)
        healed = json.loads(file.read_text()) == truth
        yield Finding(f"{name}: compare again", "the file of before", f"{healed}", healed)


# ------------------------------------------------------------------------------------ equal views


def _distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b).square().sum(dim=1).mean() - torch.pdist(a).mean()


class Meant(Plain):
    """It wants equal views, and says so."""

    name = "meant"

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        a, b = encoder.two_views(batch.texts, differ_by=None)
        return {"loss": nn.functional.cross_entropy(a @ b.T / 10, torch.arange(len(a)))}


@point("g")
def equal_views(folder: Path, room: Path) -> Iterator[Finding]:
    """A base model without dropout makes two equal views of each text."""
    rates: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    base = str(save_plain(room / "plain", **rates))

    def train(method: Any, **config: Any) -> Callable[[], Any]:
        values = {**TRAIN, **config}
        return lambda: harness.train(method, base_model=base, corpus=TEXTS, config=values, dev=None)

    cases: dict[str, Callable[[], Any]] = {
        "a class of the user's": train(Plain),
        "a function": train(harness.loss(_distance), dropout=0.0),
        "a loss of torch": train(harness.loss(build=nn.MSELoss), dropout=0.0),
        "SimCSE": train("simcse"),
        "VICReg": train("vicreg", projector=[16, 16], dropout=0.0),
    }
    for name, act in cases.items():
        yield is_refused(name, act)
    for name, act in {
        "a method that wants them": train(Meant),
        "views by shuffled words": train(harness.loss(_distance), shuffle=0.5),
    }.items():
        try:
            act()
            yield Finding(name, "trained", "trained", ok=True)
        except Exception as error:
            yield Finding(name, "trained", f"{type(error).__name__}: {error}"[:200], ok=False)
