"""What `harness.comparison.launched.launch` starts in tests: `python -m tests.support.launched_jobs FILE`.

Each process leaves a file that says what it was told and how many threads it has, and ends when it is to leave.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from harness.comparison.launched import launched
from harness.executors.leaving import leaving


def main() -> None:
    """One of several processes."""
    told = launched(Path(sys.argv[1]))
    folder, rank = Path(told["folder"]), os.environ["RANK"]
    (folder / f"begun-{rank}").write_text(f"{told['word']}, {os.environ['OMP_NUM_THREADS']} of {told['threads']}")
    late = time.monotonic() + told["seconds"]
    while not leaving() and time.monotonic() < late:
        time.sleep(0.02)
    if leaving():
        (folder / f"left-{rank}").touch()


if __name__ == "__main__":
    main()
