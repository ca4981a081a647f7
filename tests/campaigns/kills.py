"""kill -9 at random moments over all phases of `harness compare` with tracking: is anything lost, made twice, left?

    python tests/campaigns/kills.py [--kills 40] [--seed 0]

The work directory is watched: when it shows the phase that is to be hit, the blow falls after a random part of the time
that the phase takes. A chain is up to three kills, each followed by the same command, and that command to its end. It
holds when every record, curve, pair and weight is that of an undisturbed run, bit for bit, MLflow shows every run once,
nothing is left behind, and no run whose weights were safe was trained again. Exit code 1 where a chain fell.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support import forked

EXPERIMENT = """
name = "kills"
seeds = [1]
suites = ["Embedded-STS-natural"]
corpus = { uri = "embedded:sentences", limit = 64 }
max_steps = 4
precision = "fp32"
[dev]
task = "Embedded-STS-natural"
[shared]
max_length = 8
[[methods]]
method = "pooling"
name = "mean"
config = { pooling = "mean" }
[[methods]]
method = "simcse"
name = "SimCSE"
config = { batch_size = 8, eval_every = 2 }
[[methods]]
method = "simcse"
name = "warm"
config = { batch_size = 8, eval_every = 2, temperature = 0.1 }
"""
RUNS = 3
Content = dict[str, dict[str, object]]  # id of a run -> key of its record -> value


class Work:
    """A work directory as a bystander sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.since = 0.0  # when the last command was started

    def is_planned(self) -> bool:
        """Has the last command written its manifest?"""
        manifest = self.path / "comparisons" / "kills.json"
        return manifest.exists() and manifest.stat().st_mtime >= self.since

    def _any(self, pattern: str, without: str) -> bool:
        """Is there a run that has `pattern` in its folder and not `without`?"""
        return any(not list(run.glob(without)) for run in self.path.glob("runs/*") if list(run.glob(pattern)))

    def parents_ended(self) -> int:
        """Rows of the table that MLflow's store has as ended."""
        query = (
            "SELECT COUNT(*) FROM runs JOIN tags USING (run_uuid) WHERE tags.key = 'harness.parent'"
            " AND status = 'FINISHED' AND lifecycle_stage = 'active'"
        )
        return int(self._store(query)[0][0]) if (self.path / "mlflow.db").exists() else 0

    def shown(self) -> Counter[str]:
        """Id of a record -> how many whole runs show it."""
        query = (
            "SELECT id.value FROM runs JOIN tags id ON id.run_uuid = runs.run_uuid AND id.key = 'harness.id'"
            " JOIN tags c ON c.run_uuid = runs.run_uuid AND c.key = 'harness.content' WHERE lifecycle_stage = 'active'"
        )
        return Counter(row[0] for row in self._store(query))

    def running(self) -> int:
        query = "SELECT COUNT(*) FROM runs WHERE status = 'RUNNING' AND lifecycle_stage = 'active'"
        return int(self._store(query)[0][0])

    def _store(self, query: str) -> list[tuple[str, ...]]:
        try:
            with closing(sqlite3.connect(f"file:{self.path / 'mlflow.db'}?mode=ro", uri=True, timeout=5)) as store:
                return store.execute(query).fetchall()
        except sqlite3.Error:
            return [("0",)]

    def done(self) -> bool:
        return len(list(self.path.glob("runs/*/record.json"))) == RUNS

    def safe(self) -> dict[str, tuple[int, int]]:
        """Run -> what changes when it is trained again, of those whose weights are safe or that have a record."""
        files = {file.parent.name: file.stat() for file in self.path.glob("runs/*/fitted.json")}
        return {run: (stat.st_ino, stat.st_mtime_ns) for run, stat in files.items()}

    def left_behind(self) -> list[str]:
        """What is there under a name of something half made."""
        lasting = (".lock", ".mlflow.db.lock", ".precision.lock")
        odd = [p for p in self.path.rglob(".*") if p.name not in lasting]
        odd += [*self.path.glob("runs/*/checkpoint"), *self.path.glob("*-journal"), *self.path.glob("*.damaged")]
        return [str(p.relative_to(self.path)) for p in odd]

    def content(self) -> Content:
        """What must be equal to the last bit: of every run its scores, training, and the hashes of its files."""
        records = [json.loads(file.read_bytes()) for file in sorted(self.path.glob("runs/*/record.json"))]
        keys = ("row", "status", "scores", "protocols", "training", "config", "files", "identity", "missing")
        return {record["id"]: {key: record[key] for key in keys} for record in records}


# In the order in which a run passes them; the store is made beside the first training.
PHASES: dict[str, Callable[[Work], bool]] = {
    "planning": lambda w: not w.is_planned(),
    "store being made": lambda w: bool(list(w.path.glob(".mlflow.db.making-*"))),
    "training": lambda w: w.is_planned() and w._any("checkpoint", "fitted.json"),
    "saving": lambda w: w._any(".model.*", "record.json"),
    "evaluating": lambda w: w.is_planned() and w._any("fitted.json", "pairs.parquet"),
    "recording": lambda w: w._any("pairs.parquet", "record.json"),
    "tracking": lambda w: w.is_planned() and w.done() and w.parents_ended() < RUNS,
    "report": lambda w: w.is_planned() and w.done() and w.parents_ended() == RUNS,
}


def durations(work: Work, command: list[str]) -> dict[str, float]:
    """Seconds of each phase of an undisturbed run."""
    seen: Counter[str] = Counter()
    work.since, last = time.time(), time.monotonic()
    under_way = forked.Started(command)
    while under_way.poll():
        time.sleep(0.002)
        now = time.monotonic()
        for name, is_it in PHASES.items():
            seen[name] += (now - last) if is_it(work) else 0.0  # type: ignore[assignment]
        last = now
    assert under_way.wait().code == 0, "the comparison runs undisturbed"
    return {name: max(0.01, float(seconds)) for name, seconds in seen.items()}


def strike(work: Work, command: list[str], phase: str, delay: float) -> forked.Ended:
    """Start the command and kill it `delay` seconds after the phase began; its end, where the phase never came."""
    work.since = time.time()
    under_way = forked.Started(command)
    while under_way.poll() and not PHASES[phase](work):
        time.sleep(0.001)
    time.sleep(delay)
    if under_way.poll():
        under_way.kill()
    return under_way.wait()


def run_chain(work: Work, command: list[str], hits: list[tuple[str, float]], whole: Content) -> tuple[list[str], str]:
    """The phases that were hit, and what fell."""
    hit = []
    safe: dict[str, tuple[int, int]] = {}
    for phase, delay in hits:
        ended = strike(work, command, phase, delay)
        if any(work.safe().get(run) != mark for run, mark in safe.items()):
            return hit, f"trained again after a kill in {hit[-1]}"
        safe = work.safe()
        if ended.code == -9:
            hit.append(phase)
        elif fault := ended.fault((0,)):
            return hit, fault
    ended = forked.run(command)
    if fault := ended.fault((0,)):
        return hit, fault
    if "warning" in ended.err.lower() or "damaged" in ended.err:
        return hit, f"said: {ended.err[:300]}"
    if any(work.safe()[run] != mark for run, mark in safe.items()):
        return hit, "trained again"
    if other := _differences(work.content(), whole):
        return hit, f"not as undisturbed: {other}"
    if set(work.shown().values()) != {1} or set(work.shown()) != set(whole):
        return hit, f"MLflow shows {dict(work.shown())}"
    if work.running() or work.parents_ended() != RUNS:
        return hit, f"MLflow: {work.running()} runs not ended, {work.parents_ended()} rows ended"
    if left := work.left_behind():
        return hit, f"left behind: {left}"
    return hit, ""


def _differences(content: Content, whole: Content) -> list[str]:
    """Where records differ: run, key, and what differs there."""
    return [
        f"{run[:4]} {key}: {_apart(content.get(run, {}).get(key), value)}"
        for run, record in whole.items()
        for key, value in record.items()
        if content.get(run, {}).get(key) != value
    ]


def _apart(value: object, expected: object) -> str:
    if isinstance(value, dict) and isinstance(expected, dict):
        return ", ".join(sorted(k for k in value.keys() | expected.keys() if value.get(k) != expected.get(k)))
    return f"{str(value)[:200]} for {str(expected)[:200]}"


def main() -> int:
    """Exit code 1 when something fell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, started = random.Random(args.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name, forked.every_update_a_checkpoint():
        folder = Path(name).resolve()
        (folder / "kills.toml").write_text(EXPERIMENT)

        def command(place: str) -> list[str]:
            return ["compare", str(folder / "kills.toml"), "--workdir", str(folder / place), "--format", "md,csv"]

        assert forked.import_what_is_used_by(command("first"))[0].code == 0
        takes = durations(Work(folder / "whole"), command("whole"))
        whole = Work(folder / "whole").content()
        assert len(whole) == RUNS
        assert whole == Work(folder / "first").content(), "two undisturbed runs are equal"
        tried, fell = Counter[str](), list[str]()
        number = missed = 0
        while sum(tried.values()) < args.kills and missed < args.kills:
            least = sorted(PHASES, key=lambda phase: (tried[phase], rng.random()))[: rng.choice((1, 2, 3))]
            hits = [(phase, rng.uniform(0.0, 0.9 * takes[phase])) for phase in PHASES if phase in least]
            work = Work(folder / f"chain-{number}")
            hit, fault = run_chain(work, command(work.path.name), hits, whole)
            tried.update(hit)
            missed += not hit
            print(f"chain {number}: {', '.join(hit)}", file=sys.stderr, flush=True)
            if fault:
                fell.append(f"chain {number}, killed in {', '.join(hit)}: {fault}")
                print(fell[-1], file=sys.stderr, flush=True)
            number += 1
    print(f"{'killed in':<18} {'takes (s)':>9} {'kills':>6}")
    for phase in PHASES:
        print(f"{phase:<18} {takes[phase]:>9.2f} {tried[phase]:>6}")
    print(f"tried {sum(tried.values())} kills in {number} chains, held {number - len(fell)}, fell {len(fell)}, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    print(*fell, sep="\n")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
