"""Shows that a mutated experiment, study or report definition either works or is refused in one
line with file and key.

    python -m tools.campaigns.mutated_inputs [--experiments 500] [--studies 200] [--definitions 100]
    [--seed 0]

Every command only reads and plans (`--dry-run`; a report of an empty work directory), without a
hub. The mutated files are written for this purpose with every key that exists, those of the papers,
and the report definitions. Failures are printed with the number of their mutation, so that the same
seed reproduces them; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

from harness.cli import main
from reports.papers.definition import FOLDER
from tools.campaigns.counted import save_count

EXPERIMENT = """\
name = "campaign"
title = "A title"
description = "A paragraph"
base_models = ["embedded:mini-bert"]
seeds = [1, 2]
suites = ["embedded"]
source = "senteval"
corpus = "embedded:sentences"
max_steps = 4
family = "mini"
precision = "fp32"
device = "cpu"
keep = ["weights"]
reports = ["scd"]

[corpora]
pairs = "embedded:pairs"

[dev]
task = "Embedded-STS-natural"
source = "embedded"

[shared]
learning_rate = 3e-5

[rehearsal]
base_model = "embedded:mini-bert"
max_steps = 2
seeds = 1
limit = 64
sentences = 2000

[blocks.first]
title = "Table 1"
description = "A paragraph"
seeds = [1]
suites = ["Embedded-STS-natural"]

[blocks.second]
base_models = ["embedded:mini-bert"]

[[methods]]
method = "pooling"
name = "mean"
config = { pooling = "mean" }

[[methods]]
method = "simcse"
name = "SimCSE {temperature}"
preset = "paper"
family = "bert-base"
grid = { temperature = [0.05, 0.1], "corpus.limit" = [20, 40] }
config = { batch_size = 8 }
corpus = { uri = "embedded:sentences", limit = 40 }
blocks = ["first"]
space = { temperature = [0.05, 0.1] }
"""
STUDY = """\
name = "campaign"
method = "simcse"
base_model = "embedded:mini-bert"
corpus = "embedded:sentences"
steps = 4
trials = 3
sampler = "random"
seeds = [101]
by = "temperature"

[dev]
task = "Embedded-STS-natural"

[config]
batch_size = 8

[space]
temperature = [0.05, 0.1]
learning_rate = { low = 1e-5, high = 1e-4, log = true }
"""
GRID = """\
extends = "scd-coarse"
name = "campaign"
title = "A title"
base_model = "embedded:mini-bert"
corpus = "embedded:sentences"
steps = 4
suites = ["Embedded-STS-natural"]
objective = "Embedded-STS-natural:spearman"
seeds = [101]
held_out_seeds = [1, 2]
sampler = "grid"
pruner = "none"
keep = ["weights"]
where = "dropout_a < dropout_b"

[dev]
task = "Embedded-STS-natural"

[space]
dropout_a = [0.0, 0.05]
dropout_b = [0.05, 0.1]
"""


def texts(folder: Path) -> list[str]:
    return [file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.toml"))]


PAPERS = texts(Path(__file__).parents[2] / "studies" / "papers")
EXPERIMENTS = [EXPERIMENT] * 4 + PAPERS
STUDIES = [STUDY, GRID]
DEFINITIONS = texts(FOLDER)

VALUES = [
    "3",
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "2.5",
    "true",
    '""',
    '" "',
    '"abc"',
    "[]",
    "[[]]",
    "[1, [2, [3]]]",
    "{}",
    "{ a = { b = 1 } }",
    '"../../evil"',
    '"/tmp/evil"',
    '"x\\u0000y"',
    '"\\u001b[2J"',
    '"a\\nharness: forged"',
    '"\\u202etxt"',
    f'"{"x" * 400}"',
    f'"{"x/" * 200}"',
    "1979-05-27",
    "9" * 30,
    '["a", "a"]',
    "[1, 1]",
    '[""]',
    '"embedded:none"',
    '"hf://datasets/a/b/c.txt"',
    '"http://TOKEN@host"',
    '"🙂"',
    "[" * 600 + "]" * 600,
    '"a < b"',
    '"dropout_a < "',
    '"dropout_a + 1 < dropout_b and x"',
    '"{x} {temperature"',
    '["first", "second"]',
    "{ temperature = [] }",
    "{ temperature = 3 }",
    '{ "corpus.limit" = [1, "x"] }',
    '{ preset = ["none"], family = [3] }',
]
INSERTED = (
    "[dev]",
    "[[methods]]",
    "[space]",
    "x",
    "= 1",
    "methods = 3",
    "[a.b.c]",
    "[rehearsal]",
    "[blocks.third]",
    "[blocks]",
    "[blocks.'../evil']",
    "blocks = 3",
    "[families]",
    "[statements]",
    "[[tables]]",
    'cannot = "so"',
    "tolerance = 2",
)


def mutate(text: str, rng: random.Random) -> bytes:
    """Put one to three faults into a text, of a kind that hands, editors and disks make."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        place = rng.randrange(len(lines))
        key, equals, value = lines[place].partition(" = ")
        kind = rng.randrange(9)
        if kind <= 3 and equals:
            lines[place] = f"{key} = {rng.choice(VALUES)}"
        elif kind == 4 and equals:
            other = rng.choice((key[1:] or "x", f"{key}s", '"\\u001b[2J"', f"{key}.a", '""'))
            lines[place] = f"{other} = {value}"
        elif kind == 5:
            del lines[place]
        elif kind == 6:
            lines.insert(rng.randrange(len(lines)), lines[place])
        elif kind == 7:
            lines[place] = lines[place][: rng.randrange(len(lines[place]) + 1)]
        else:
            lines.insert(place, rng.choice(INSERTED))
        text = "\n".join(lines)
    raw = bytearray(text.encode())
    if rng.random() < 0.1 and raw:
        for _ in range(rng.randrange(1, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


def fault_of(command: list[str], file: Path, allowed: tuple[int, ...] = (0, 2)) -> str:
    """Return what is wrong with how a command on a file ended; empty where nothing is."""
    out = io.StringIO()
    err = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
    except SystemExit as end:
        code = int(end.code or 0) if isinstance(end.code, int) or end.code is None else 1
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    said = err.getvalue()
    if any(c in said + out.getvalue() for c in "\x1b\u202e\0"):
        return "a control character left"
    if "TOKEN" in said + out.getvalue():
        return "a credential left"
    if "Input should be" in said or "Traceback" in said:
        return f"not our words: {said[:200]}"
    if code == 2 and said.count("\n") != 1:
        return f"{said.count(chr(10))} lines: {said[:200]}"
    offline = "HF_HUB_OFFLINE" in said  # nothing is wrong with the file
    place = r'key|table|line |: [a-z]+: |".+"|unknown [a-z]+ ""|end of document|nested too deeply'
    if code == 2 and not offline and not re.search(rf"{re.escape(str(file))}.*({place})", said):
        return f"names no file or no key: {said[:300]}"
    return "" if code in allowed else f"exit code {code}: {said[:200]}"


def campaign(
    count: int,
    seeds: list[str],
    command: Callable[[Path], list[str]],
    folder: Path,
    rng: random.Random,
) -> dict[int, str]:
    """Return number of a mutation -> its fault, for those that failed."""
    failed = {}
    file = folder / "in" / "file.toml"
    file.parent.mkdir()
    for text in dict.fromkeys(seeds):
        file.write_text(text)
        fault = fault_of(command(file), file, (0, 2) if text in PAPERS else (0,))
        assert not fault, fault
    for number in range(count):
        file.write_bytes(mutate(rng.choice(seeds), rng))
        fault = fault_of(command(file), file)
        if not fault and list(folder.iterdir()) != [file.parent]:
            fault = "something was written outside of the folder"
        if fault:
            failed[number] = fault
            print(f"  {number}: {fault}", file=sys.stderr)
            (folder.parent / f"failed-{number}.toml").write_bytes(file.read_bytes())
    return failed


def run() -> int:
    """Run all three campaigns and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds: dict[str, tuple[int, list[str], Callable[[Path], list[str]]]] = {
        "experiments": (500, EXPERIMENTS, lambda f: ["compare", str(f), "--dry-run"]),
        "studies": (200, STUDIES, lambda f: ["study", "run", str(f), "--dry-run"]),
        "definitions": (
            100,
            DEFINITIONS,
            lambda f: ["report", "build", str(f), "--workdir", str(f.parent)],
        ),
    }
    for name, (count, _, _) in kinds.items():
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="harness-campaign-"))
    print(f"{'':12} {'tried':>6} {'passed':>6} {'failed':>6} {'seconds':>8}")
    fallen = 0
    for name, (_, seeds, command) in kinds.items():
        started = time.perf_counter()
        count = getattr(args, name)
        (kept / name / "w").mkdir(parents=True)
        failed = campaign(count, seeds, command, kept / name / "w", random.Random(args.seed))
        fallen += len(failed)
        save_count(f"mutated_inputs {name}", count, len(failed))
        seconds = time.perf_counter() - started
        print(
            f"{name:12} {count:6} {count - len(failed):6} {len(failed):6} {seconds:8.0f}",
            flush=True,
        )
    print(f"what failed is kept in {kept}" if fallen else "nothing failed")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(run())
