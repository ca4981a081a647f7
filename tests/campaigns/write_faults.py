"""Every write of a comparison fails once, with every refusal a file system knows: is anything lost?

    python tests/campaigns/write_faults.py [--attempts 60] [--seconds 500]

An attempt runs a comparison of one trained cell with a checkpoint at every update; its n-th flush to the disk, or its
n-th file moved into place, is refused. It holds when the comparison ends with that refusal and nothing else, when the
same call afterwards makes no update that a checkpoint or the saved weights already had, and comes to the scores of an
undisturbed run.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.comparison.cell import run_cell
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import Plan, make_plan
from harness.files.faults import storage_fault
from harness.method import FitContext
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.training import Trainer
from tests.support import short_runs

EXPERIMENT = """
name = "faults"
seeds = [1]
suites = ["Embedded-STS-natural"]
precision = "fp32"
max_steps = 3
[dev]
task = "Embedded-STS-natural"
[shared]
eval_every = 1
[[methods]]
method = "simcse"
config = { max_length = 8, batch_size = 4 }
"""
CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS, errno.EACCES)


class Refusals:
    """Refuses the n-th call of `os.fsync` or `os.replace` on a file below `work`."""

    def __init__(self, patch: pytest.MonkeyPatch, call: str, number: int, code: int, work: Path) -> None:
        self.left, self.code, self.at = number, code, ""
        real = getattr(os, call)

        def refusing(*args: Any, **rest: Any) -> Any:
            place = Path(args[1] if call == "replace" else os.readlink(f"/proc/self/fd/{args[0]}"))
            if place.is_relative_to(work):
                self.left -= 1
                if self.left == 0:
                    self.at = re.sub(r"^\.(.+)\.\d+\.[0-9a-f]{8}$", r"\1", place.name)  # of `write_atomic`
                    raise OSError(code, os.strerror(code), str(place))
            return real(*args, **rest)

        patch.setattr(os, call, refusing)


def step_kept(folder: RunFolder) -> int:
    """The updates that need not be made again."""
    import torch

    if folder.fitted_file.exists():
        return 3
    state = folder.checkpoint / "state.pt"
    return int(torch.load(state, weights_only=True)["step"]) if state.exists() else 0


def attempt(plan: Plan, whole: Record, call: str, number: int, code: int) -> tuple[str, str]:
    """Where the refusal came, "" when there were fewer calls; and what fell, "" when it held."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place).resolve() / "work"
        folder = RunFolder(work, plan.cells[0].id)
        with pytest.MonkeyPatch.context() as patch:
            refusals = Refusals(patch, call, number, code, work)
            try:
                run_cell(plan.cells[0], plan, work, command="")
            except OSError as error:
                if storage_fault(error, work) is None:
                    return refusals.at, f"not told as a refusal: {error!r}"
            except Exception as error:
                return refusals.at, f"{type(error).__name__}: {error}"
            else:
                return refusals.at, ""  # refused where it costs nothing (vectors that are not kept), or not at all
        kept, updates = step_kept(folder), list[int]()
        with pytest.MonkeyPatch.context() as patch:
            update = Trainer._update
            patch.setattr(Trainer, "_update", lambda self: (updates.append(self.step), update(self)))
            again = run_cell(plan.cells[0], plan, work, command="")
        if updates != list(range(kept, 3)):
            return refusals.at, f"updates {updates} made again, {kept} were kept"
        if again.scores != whole.scores:
            return refusals.at, "other scores"
        if folder.leftovers() or folder.checkpoint.exists():
            return refusals.at, "files left behind"
    return refusals.at, ""


def main() -> int:
    """Exit code 1 when something fell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=500.0)
    args = parser.parse_args()
    started, tried, fell = time.monotonic(), Counter[str](), list[str]()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        short_runs.few_pairs(patch)
        defaults = FitContext.__init__.__defaults__ or ()
        patch.setattr(FitContext.__init__, "__defaults__", tuple(0.0 if d == 30.0 else d for d in defaults))
        file = Path(place) / "faults.toml"
        file.write_text(EXPERIMENT)
        plan = make_plan(read_experiment(str(file), []), str(file))
        whole = run_cell(plan.cells[0], plan, Path(place) / "work", command="")
        codes = itertools.cycle(CODES)
        over = set[str]()
        for number, call in itertools.product(range(1, args.attempts // 2 + 1), ("fsync", "replace")):
            if call in over or time.monotonic() - started > args.seconds:
                continue
            at, why = attempt(plan, whole, call, number, code := next(codes))
            if not at:
                over.add(call)
                continue
            tried[f"{call} of {at}"] += 1
            if why:
                fell.append(f"{call} {number} of {at}, {errno.errorcode[code]}: {why}")
    print(f"{'write':<45} tried")
    for kind, count in sorted(tried.items()):
        print(f"{kind:<45} {count:>5}")
    print(f"tried {sum(tried.values())}, held {sum(tried.values()) - len(fell)}, fell {len(fell)}")
    print(*fell, sep="\n")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
