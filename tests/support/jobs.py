"""What workers of executors are asked for in tests."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from harness.errors import StopAsked
from harness.executors.leaving import leaving
from harness.executors.post import Post


def double(number: int) -> int:
    return 2 * number


def refuse(word: str) -> None:
    raise ValueError(word)


def die(file: str, times: int) -> str:
    """End the process without a word, the first so many times."""
    path = Path(file)
    tries = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (tries + 1))
    if tries < times:
        os._exit(7)
    return f"lived after {tries}"


def threads() -> tuple[str, int]:
    import torch

    return os.environ["OMP_NUM_THREADS"], torch.get_num_threads()


def meet(folder: str, count: int, seconds: float) -> tuple[str, int]:
    """Wait for as many of these at the same time; the GPUs that this one may see, and how many have met."""
    (Path(folder) / str(os.getpid())).touch()
    late = time.monotonic() + seconds
    while (met := len(os.listdir(folder))) < count and time.monotonic() < late:
        time.sleep(0.05)
    return os.environ.get("CUDA_VISIBLE_DEVICES", ""), met


def note(folder: str, name: str, seconds: float) -> None:
    """Leave a file at the beginning and one at the end."""
    (Path(folder) / f"{name}-begun").touch()
    time.sleep(seconds)
    (Path(folder) / f"{name}-ended").touch()


def wait_with_pid(folder: str, seconds: float) -> None:
    """Leave the id of this process, and stay a while."""
    (Path(folder) / "pid").write_text(str(os.getpid()))
    time.sleep(seconds)


def leave_at_signal(number: int) -> None:
    """Send this process a signal, and leave where it was told to."""
    os.kill(os.getpid(), number)
    if leaving():
        raise StopAsked


def stay_at_signal(number: int, seconds: float) -> None:
    """Send this process a signal, and do not listen."""
    os.kill(os.getpid(), number)
    time.sleep(seconds)


def tell(post: Post, job: str) -> dict[str, str]:
    """Tell the coordinator where this job is; what it wants of it."""
    return dict(post.exchange(job, {"at": "update 3"}, ["stop", "nothing"]))


def counted(log: str, pause: float | None, call: Any, *arguments: Any) -> Any:
    """The call, in which each update adds this process to a file and is followed by a checkpoint.

    With `pause` it is followed by so many seconds instead, and a checkpoint is written where that is asked for alone.
    """
    from functools import partial

    from torch.optim.optimizer import register_optimizer_step_post_hook

    from harness.comparison import cell
    from harness.method import FitContext

    def count(*_: Any) -> None:
        with open(log, "ab") as file:
            file.write(b"%d\n" % os.getpid())
        time.sleep(pause or 0.0)

    told = register_optimizer_step_post_hook(count)
    seconds = 0.0 if pause is None else 3600.0
    context, cell.FitContext = cell.FitContext, partial(FitContext, checkpoint_seconds=seconds)  # type: ignore[misc]
    try:
        return call(*arguments)
    finally:
        told.remove()
        cell.FitContext = context  # type: ignore[misc]
