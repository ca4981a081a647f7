"""Shows that no command opens a connection unless it is given a host, or a model or data of a hub.

    python -m tools.campaigns.network [--only PART_OF_A_COMMAND] [--seconds 1500]

The commands run under strace (Linux; the package `strace`), with a small comparison and a study
whose models, text and tasks ship with the package, and in an environment without HF_HUB_OFFLINE. A
case passes if the command ends with the exit code that is expected, and neither it nor a process
that it started connects to, sends to or listens at an address of the internet, also none on this
machine. A bind to port 0 of [::1], by which urllib3 asks whether there is IPv6, is none. Exit code
1 if a case failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.campaigns.counted import save_count

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
    (0, "train simcse --preset mini --set max_steps=1 --set batch_size=8 --limit 32 --out model"),
    (0, "evaluate ./model --suite Embedded-STS-contrast"),
    (0, "compare small.toml --freeze"),
)
CALLS = "connect,sendto,sendmsg,listen"
HOST = re.compile(r"AF_INET6?\b")
MARK = re.compile(r'sun_path="/command (\d+)"')
# Runs the commands in one process, which imports once; a socket of no file marks where each begins.
DRIVER = """
import json, socket, sys
from harness.cli import main

for number, command in enumerate(json.loads(sys.argv[1])):
    with socket.socket(socket.AF_UNIX) as mark:
        mark.connect_ex(f"/command {number}")
    try:
        code = main(command)
    except SystemExit as end:
        code = end.code
    print(f"EXIT {code}", flush=True)
"""


def connections(commands: list[str], folder: Path, seconds: float) -> list[tuple[str, list[str]]]:
    """Run commands of harness under strace; return of each that was begun its exit code, as text,
    and the calls with an address of the internet.
    """
    trace = folder / "trace"
    words = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(trace)]
    given = json.dumps([shlex.split(command) for command in commands])
    words += [sys.executable, "-c", DRIVER, given]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    for name in ("HF_HUB_OFFLINE", "HF_ENDPOINT", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    environment |= {"HF_HOME": str(folder / "hf"), "HARNESS_CACHE": str(folder / "cache")}
    said = folder / "said"
    with said.open("w") as stream, contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            words, cwd=folder, env=environment, stdout=stream, timeout=seconds, check=False
        )
    codes = re.findall(r"^EXIT (.*)$", said.read_text(), flags=re.MULTILINE)
    calls: list[list[str]] = []
    for line in trace.read_text(errors="replace").splitlines():
        if MARK.search(line):
            calls.append([])
        elif HOST.search(line) and calls:
            calls[-1].append(line)
    codes += ["not ended"] * (len(calls) - len(codes))
    return list(zip(codes, calls, strict=True))


def main() -> int:
    """Print a line for each command; exit code 1 where a case failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="commands with this in them")
    parser.add_argument("--seconds", type=float, default=1500, help="of all commands")
    options = parser.parse_args()
    started = time.monotonic()
    chosen = [one for one in COMMANDS if options.only in one[1]]
    failed = len(chosen)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "small.toml").write_text(EXPERIMENT)
        (folder / "study.toml").write_text(STUDY)
        (folder / "scores.csv").write_text(SCORES)
        (folder / "text.txt").write_text("A dog runs.\nIt rains.\n" * 20)
        ended = connections([command for _, command in chosen], folder, options.seconds)
    for (expected, command), (code, found) in zip(chosen, ended, strict=False):
        ok = code == str(expected) and not found
        failed -= ok
        seen = "no connection" if not found else f"{len(found)} calls: {found[0][:160]}"
        print(f"{'yes' if ok else 'NO '} harness {command}: exit {code}, {seen}")
    tried = len(chosen)
    if not options.only:
        save_count("network", tried, failed)
    took = time.monotonic() - started
    print(f"tried {tried}, passed {tried - failed}, failed {failed}, {took:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
