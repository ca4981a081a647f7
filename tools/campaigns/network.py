"""Shows that no command opens a connection unless it is given a host, or a model or data of a hub.

    python -m tools.campaigns.network [--only PART_OF_A_COMMAND] [--seconds 300]

Each command runs under strace (Linux; the package `strace`), with a small comparison and a study
whose models, text and tasks ship with the package, and in an environment without HF_HUB_OFFLINE. A
case passes if the command ends with the exit code that is expected, and neither it nor a process
that it started connects to, sends to or listens at an address of the internet, also none on this
machine. A bind to port 0 of [::1], by which urllib3 asks whether there is IPv6, is none. Exit code
1 if a case failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENT = """\
name = "small"
seeds = [1]
suites = ["Embedded-STS-contrast"]
precision = "fp32"
max_steps = 2
corpus = { uri = "embedded:sentences", limit = 32 }
dev = { task = "Embedded-STS-contrast" }
methods = [
  { method = "pooling" },
  { method = "simcse", preset = "mini", config = { batch_size = 8 } },
]
"""
STUDY = """\
method = "random"
precision = "fp32"
suites = ["Embedded-STS-contrast"]
objective = "Embedded-STS-contrast"
sampler = "grid"
[space]
dimension = [2, 4]
"""
SCORES = "row,seed,task,score\n" + "".join(
    f"{row},{seed},T,{70 + 10 * place + seed}\n"
    for place, row in enumerate("ab")
    for seed in (1, 2, 3)
)
# exit code and command; they share the work directory "work" and are run in this order
COMMANDS = (
    (0, "compare small.toml --dry-run"),
    (0, "compare small.toml --format html --format md --quiet"),
    (0, "compare small.toml --workdir two --quiet --executor processes --workers 2"),
    (
        0,
        "compare adapt --dry-run --base-model embedded:mini-bert --corpus text.txt"
        " --suite Embedded-STS-contrast --dev Embedded-STS-natural",
    ),
    (0, "study run study.toml --quiet"),
    (0, "study show study"),
    (0, "verdict --scores scores.csv"),
    (0, "power --scores scores.csv"),
    (3, "gate --baseline a --candidate b --scores scores.csv"),
    (0, "verdict"),
    (0, "status"),
    (0, "doctor"),
    (0, "doctor --workdir work"),
    (0, "list methods"),
    (0, "list plugins"),
    (0, "list tasks"),
    (0, "report build small --format html --format ro-crate"),
    (0, "report checklist small"),
    (0, "track sync"),
    (0, "examples pooling simcse"),
    (0, "reproduce work/reports/small"),
    (0, "evaluate embedded:mini-bert --suite Embedded-STS-contrast"),
    (0, "train simcse --preset mini --config max_steps=1 --out model"),
    (0, "evaluate ./model --suite Embedded-STS-contrast --mteb-results results"),
    (0, "plan small.toml"),
)
CALLS = "connect,sendto,sendmsg,listen"
HOST = re.compile(r"AF_INET6?\b")


def connections(command: str, folder: Path, seconds: float) -> tuple[int | None, list[str]]:
    """Run a command of harness under strace; return its exit code, None where it did not end, and
    the calls with an address of the internet.
    """
    trace = folder / "trace"
    words = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(trace)]
    words += [sys.executable, "-m", "harness", *shlex.split(command)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    for name in ("HF_HUB_OFFLINE", "HF_ENDPOINT", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    environment |= {"HF_HOME": str(folder / "hf"), "HARNESS_CACHE": str(folder / "cache")}
    try:
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False
        )
        code = ended.returncode
    except subprocess.TimeoutExpired:
        code = None
    lines = trace.read_text(errors="replace").splitlines()
    return code, [line for line in lines if HOST.search(line)]


def main() -> int:
    """Print a line for each command; exit code 1 where a case failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="commands with this in them")
    parser.add_argument("--seconds", type=float, default=300, help="of a command")
    options = parser.parse_args()
    started = time.monotonic()
    tried = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "small.toml").write_text(EXPERIMENT)
        (folder / "study.toml").write_text(STUDY)
        (folder / "scores.csv").write_text(SCORES)
        (folder / "text.txt").write_text("A dog runs.\nIt rains.\n" * 20)
        for expected, command in COMMANDS:
            if options.only not in command:
                continue
            tried += 1
            code, found = connections(command, folder, options.seconds)
            ok = code == expected and not found
            failed += not ok
            seen = "no connection" if not found else f"{len(found)} calls: {found[0][:160]}"
            print(f"{'yes' if ok else 'NO '} harness {command}: exit {code}, {seen}", flush=True)
    took = time.monotonic() - started
    print(f"tried {tried}, passed {tried - failed}, failed {failed}, {took:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
