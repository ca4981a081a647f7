"""What workers of executors are asked for in tests."""

from __future__ import annotations

import os
import time
from pathlib import Path


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


def note(folder: str, name: str, seconds: float) -> None:
    """Leave a file at the beginning and one at the end."""
    (Path(folder) / f"{name}-begun").touch()
    time.sleep(seconds)
    (Path(folder) / f"{name}-ended").touch()


def wait_with_pid(folder: str, seconds: float) -> None:
    """Leave the id of this process, and stay a while."""
    (Path(folder) / "pid").write_text(str(os.getpid()))
    time.sleep(seconds)
