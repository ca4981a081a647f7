"""Several processes train one model: each encodes its share of every batch, and each sees the whole batch's vectors.

The batch is the one that a single process would draw, so batch statistics and in-batch negatives are the same and the
update is too, up to the order of additions and the dropout masks (every share draws its own).

How gradients come out right: vectors of all shares are gathered, those of the own share with their graph. Their
gradient is multiplied by the number of processes on its way back, and at the end all gradients are averaged. So what
went through the shares adds up to the whole batch's gradient, and what every process computed alike from the gathered
vectors (projectors, decoders, penalties on the weights) stays what it is, for whichever weights it was.

Start with `accelerate launch --num_processes N -m harness train ...` (or compare); on CPUs with `--multi_gpu`, without
which accelerate starts one process there. The main process alone writes and decides; the work directory must be one
that all processes can read. Nothing here imports torch before it is needed.
"""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import InputError, TrainingStopped
from harness.files.printable import tell_error

if TYPE_CHECKING:
    from torch import Tensor, nn

T = TypeVar("T")
_PATIENCE = timedelta(days=30)  # the main process may evaluate for hours; the launcher ends all when one process dies
_TOGETHER = timedelta(seconds=60)  # within which all processes meet an error that is common to them


@dataclass(frozen=True)
class Team:
    """The processes that train together, of which this is number `rank`; a team of one does nothing special."""

    rank: int = 0
    size: int = 1
    device: str = ""  # this process's own; empty in a team of one, which may use any
    control: Any = None  # process group for messages between the CPUs

    @property
    def main(self) -> bool:
        """Is this the process that writes and decides?"""
        return self.rank == 0

    def from_main(self, value: T) -> T:
        """The main process's `value`, in every process."""
        if self.size == 1:
            return value
        from torch import distributed

        box = [value]
        try:
            distributed.broadcast_object_list(box, src=0, group=self.control)
        except RuntimeError:  # it has said why; the connection is gone
            if self.main:
                raise
            sys.exit(f"harness: process {self.rank} of {self.size} ends because the main process has ended")
        return box[0]

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Run the block in the main process, then in the others: faults are reported once, caches are filled once."""
        if not self.main:
            self.from_main(None)
        yield
        if self.main:
            self.from_main(None)

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Inside the block an `Encoder` encodes this process's share of the rows and returns all rows."""
        global _sharing
        _sharing = self if self.size > 1 else None
        try:
            yield
        finally:
            _sharing = None

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its mean over the processes."""
        if self.size == 1:
            return
        from torch import distributed

        gradients = [p.grad for p in parameters if p.grad is not None]
        for work in [distributed.all_reduce(gradient, async_op=True) for gradient in gradients]:
            work.wait()
        for gradient in gradients:
            gradient /= self.size

    def spread(self, module: nn.Module) -> None:
        """Give every process the main one's weights and buffers of `module`."""
        if self.size == 1:
            return
        from torch import distributed

        for tensor in module.state_dict().values():
            distributed.broadcast(tensor, src=0)

    @contextmanager
    def failing_together(self) -> Iterator[None]:
        """An error of the block is raised when all processes meet it; when only some do, it ends them all.

        The others would wait for this process for ever; the launcher ends them as soon as this one has ended.
        """
        try:
            yield
        except TrainingStopped:  # decided by the main process for all
            raise
        except Exception as error:
            if self.size > 1:
                from torch import distributed

                try:
                    distributed.barrier(self.control, async_op=True).wait(_TOGETHER)
                except RuntimeError:
                    traceback.print_exception(error)
                    tell_error(
                        f"harness: process {self.rank} of {self.size} failed alone ({type(error).__name__}: {error}); "
                        "all processes end, finished runs and checkpoints are saved, the same command resumes",
                    )
                    os._exit(1)  # an ordinary exit would wait for the others, too
            raise


ALONE = Team()
_sharing: Team | None = None


@dataclass(frozen=True)
class Share:
    """Which rows of a batch this process encodes."""

    rows: slice
    team: Team
    counts: tuple[int, ...] = ()  # rows of every process; empty: each process encodes all of them

    def gather(self, own: Tensor) -> Tensor:
        """All rows (n, ...) from this process's `own` (m, ...); gradients go back into the own rows."""
        if not self.counts:
            return own
        import torch

        padded = own.new_zeros((max(self.counts), *own.shape[1:]))
        padded[: len(own)] = own.detach()
        parts = [torch.empty_like(padded) for _ in self.counts]
        torch.distributed.all_gather(parts, padded)
        parts = [part[:count] for part, count in zip(parts, self.counts, strict=True)]
        # A view of its own: the factor is for what comes back through the gathered rows, not for other uses of `own`.
        mine = own.view_as(own)
        if mine.requires_grad:
            mine.register_hook(lambda gradient: gradient * self.team.size)  # type: ignore[no-untyped-call]
        parts[self.team.rank] = mine
        return torch.cat(parts)


@contextmanager
def share(count: int) -> Iterator[Share]:
    """This process's share of `count` rows, with random numbers of its own inside the block; all of them where no team
    is sharing, or where some process would have none."""
    team = _sharing
    if team is None or count < team.size:
        yield Share(slice(None), ALONE)
        return
    import torch

    bounds = [count * rank // team.size for rank in range(team.size + 1)]
    counts = tuple(stop - start for start, stop in pairwise(bounds))
    # The seed comes from the stream that all processes have in common: a checkpoint of the main one resumes them all.
    seed = int(torch.randint(2**62, ()))
    with torch.random.fork_rng(devices=[team.device] if team.device.startswith("cuda") else []):
        torch.manual_seed(seed + team.rank)
        yield Share(slice(bounds[team.rank], bounds[team.rank + 1]), team, counts)


def several() -> bool:
    """Did a launcher start this process as one of several?"""
    return "LOCAL_RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def follower() -> bool:
    """Is this process one of several, and not the main one?"""
    return several() and os.environ.get("RANK", "0") != "0"


def join(device: str) -> Team:
    """The team that this process was started in; `ALONE` without a launcher. `device`: auto, cpu or cuda.

    Raises:
        InputError: accelerate is not installed, or the device is not there or not one that every process can have.
    """
    if not several():
        return ALONE
    import torch

    cuda = device != "cpu" and torch.cuda.is_available()
    if device not in ("auto", "cpu", "cuda" if cuda else "cpu"):
        kinds = "auto, cpu or cuda" if cuda else "auto or cpu, as there is no GPU here"
        raise InputError(f'device "{device}": several processes take a device each; expected {kinds}')
    try:
        from accelerate import PartialState
    except ImportError:
        raise InputError(
            'training in several processes needs accelerate: pip install "sentence-harness[accelerate]"'
        ) from None
    state = PartialState(cpu=not cuda, timeout=_PATIENCE, **({} if cuda else {"backend": "gloo"}))
    control = torch.distributed.new_group(backend="gloo", timeout=_PATIENCE)
    atexit.register(torch.distributed.destroy_process_group)  # threads of a group that still run abort the process
    return Team(state.process_index, state.num_processes, str(state.device), control)
