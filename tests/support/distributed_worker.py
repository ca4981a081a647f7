"""What one of several processes does in the tests of training in several: `torchrun ... distributed_worker.py FOLDER`.

It leaves gradients and facts in the folder, trains a model there, and at last fails alone.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from harness import cli, registry
from harness.machine import distributed
from harness.machine.distributed import Share, Team, join
from harness.method import FitContext
from harness.seeds import derive, numpy_generator
from harness.sources import load_corpus
from harness.training import Batch

# Vectors of two views; a batch's statistics; both; both in parts; both packed. Then what is more than vectors: a second
# forward pass with a tied vocabulary layer, token states, a decoder tied to the encoder, a penalty on the weights and a
# frozen guide's hidden states.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "simcse": ("simcse", {"dropout": 0.0, "temperature": 0.05}),
    "barlow_twins": ("barlow_twins", {"dropout": 0.0, "projector": [64, 64]}),
    "scd": ("scd", {"dropout_a": 0.0, "dropout_b": 0.0, "projector": [64, 64]}),
    "parts": ("scd", {"dropout_a": 0.0, "dropout_b": 0.0, "projector": [64, 64], "micro_batch": 2}),
    "packed": ("scd", {"dropout_a": 0.0, "dropout_b": 0.0, "projector": [64, 64], "packed": True}),
    "mlm": ("simcse", {"dropout": 0.0, "mlm_weight": 1.0, "mlm_probability": 0.5}),
    "is_bert": ("is_bert", {}),
    "tsdae": ("tsdae", {}),
    "self_guided": ("self_guided", {"regularisation": 0.1}),
}
ITEMS = 7  # not a multiple of two


def gradients(case: str, team: Team) -> dict[str, Tensor]:
    """Of one loss without dropout, by parameter."""
    name, values = CASES[case]
    cls = registry.load(registry.METHODS, name)
    method = cls(cls.configure({**values, "batch_size": ITEMS}, preset="mini"))
    corpus = load_corpus("embedded:sentences", limit=50)
    torch.manual_seed(derive(1, "init"))
    encoder = method.load_base()
    encoder._views_differ = True  # without dropout they do not: the gradient is compared all the same
    heads = method.heads(encoder)
    for module in (*encoder.modules(), *heads.modules()):
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    encoder.train()
    heads.train()
    batch = Batch([corpus[i] for i in range(ITEMS)], numpy_generator(1, "views"), 0)
    with team.sharing():
        loss = method.loss(encoder, heads, batch)["loss"]
    loss.backward()
    named = {**dict(encoder.named_parameters()), **{f"heads.{n}": p for n, p in heads.named_parameters()}}
    team.average_gradients(named.values())
    by_name = {n: p.grad for n, p in named.items() if p.grad is not None}
    return {**by_name, "loss": loss.detach().reshape(1)}


def facts(team: Team) -> dict[str, bool]:
    """What must hold in each process."""
    from harness.encoder import Encoder

    encoder = Encoder.from_pretrained("embedded:mini-bert").train()
    ids = encoder.tokenize(["one sentence, twice", "one sentence, twice"])
    torch.manual_seed(1)
    with team.sharing(), torch.no_grad():
        both = encoder(encoder.collate(ids))
        alone = encoder(encoder.collate(ids[:1]))
    following = float(torch.rand(()))
    half = torch.full((team.rank + 1, 2), float(team.rank), dtype=torch.bfloat16)
    gathered = Share(slice(team.rank, 2 * team.rank + 1), team, (1, 2)).gather(half)
    return {
        "each share drops units of its own": not torch.allclose(both[0], both[1], atol=1e-3),
        "all see the same rows": bool((both == team.from_main(both)).all()),
        "a row too few for all is encoded by all": bool((alone == team.from_main(alone)).all()),
        "outside the shares all draw alike": following == team.from_main(following),
        "half precision is gathered": gathered.tolist() == [[0, 0], [1, 1], [1, 1]],
    }


class Kill(Exception):  # noqa: N818 - what it does, not what went wrong
    """Thrown into a run from its progress callback, in every process."""


def kill(step: int, steps: int, text: str) -> None:
    if step == 3:
        raise Kill


def weights(folder: Path, team: Team, *names: str) -> dict[str, Tensor]:
    """After 4 updates, under the contexts' folders `names`; the last one is not killed."""
    cls = registry.load(registry.METHODS, "simcse")
    config = cls.configure({"batch_size": 5, "max_steps": 4, "log_every": 1}, preset="mini")
    corpus = load_corpus("embedded:sentences", limit=50)
    for number, name in enumerate(names, 1):
        last = number == len(names)
        context = FitContext(seed=1, precision="fp32", folder=folder / name, checkpoint_seconds=-1.0, team=team)
        context.progress = None if last else kill
        with nullcontext() if last else suppress(Kill):
            method = cls(config).fit(corpus, context)
    return dict(method.encoder.state_dict())


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    team = join("cpu")
    for case in CASES:
        save_file(gradients(case, team), folder / f"{case}-{team.rank}.safetensors")
    told = facts(team)
    whole, resumed = weights(folder, team, "whole"), weights(folder, team, "killed", "killed")
    told["a killed run ends with the same weights"] = all(bool((whole[n] == resumed[n]).all()) for n in whole)
    told["all end with the same weights"] = all(bool((whole[n] == team.from_main(whole[n])).all()) for n in whole)
    words = f"train simcse --preset mini --out {folder / 'model'} --limit 64 --device cpu --precision fp32"
    words += " --set max_steps=3 --set eval_every=2 --set batch_size=8"
    told["harness train succeeds"] = cli.main(words.split()) == 0
    told["listing is left to the main process"] = cli.main(["list", "suites"]) == 0
    try:
        with team.failing_together():
            raise ValueError("met by all")
    except ValueError:
        told["an error of all is raised in all"] = True
    (folder / f"facts-{team.rank}.json").write_text(json.dumps(told))
    team.from_main(None)
    distributed._TOGETHER = timedelta(seconds=2)
    with team.failing_together():
        if team.rank == 1:
            raise ValueError("met by one")
        team.from_main(team.from_main(None))  # waits for who will never come


if __name__ == "__main__":
    main(Path(sys.argv[1]))
