"""Every kind of file of a work directory, damaged in every way: is it noticed, mended or named, and nothing else made?

    python tests/campaigns/damaged_workdir.py [--cases 200] [--seed 0] [--only PART_OF_A_PATH]

A case damages one file of a work directory: of a finished comparison and study, of one killed in training, of one
killed between training and evaluation. `doctor --workdir`, `report build` and the same `compare` follow (`study run`
for a study's files). It holds when no command ends in a traceback, an error is one line that names the file (and the
command works once that file is removed), the doctor names what is vouched for, the scores come out as they were, and no
run whose weights are whole was trained again. Exit code 1 where a case fell.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support import forked

COMMON = """
name = "{name}"
corpus = {{ uri = "embedded:sentences", limit = 64 }}
[dev]
task = "Embedded-STS-natural"
"""
EXPERIMENT = (
    """
seeds = [1]
suites = ["Embedded-STS-natural", "geometry:Embedded-STS-natural", "Embedded-Clustering"]
max_steps = 4
"""
    + COMMON.format(name="whole")
    + """
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
)
STUDY = (
    """
method = "simcse"
base_model = "embedded:mini-bert"
steps = 2
trials = 2
sampler = "random"
seeds = [101]
by = "temperature"
"""
    + COMMON.format(name="search")
    + """
[config]
batch_size = 8
max_length = 8
[space]
temperature = [0.05, 0.1]
"""
)


def flipped(raw: bytes, rng: random.Random) -> bytes:
    """Twenty flipped bits."""
    changed = bytearray(raw)
    for _ in range(20 if raw else 0):
        changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(changed)


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "truncated": lambda raw, rng: raw[: rng.randrange(1, max(2, len(raw)))],
    "emptied": lambda raw, rng: b"",
    "flipped bits": flipped,
    "random bytes": lambda raw, rng: rng.randbytes(max(64, len(raw) // 2)),
    "null": lambda raw, rng: b"null\n",
    "a list": lambda raw, rng: b"[1, [2]]\n",
    "another object": lambda raw, rng: b'{"a": 1}\n',
    "not UTF-8": lambda raw, rng: b"\xff\xfe" + raw[::-1][:4000],
    "a folder": lambda raw, rng: None,
    "a link to itself": lambda raw, rng: None,
    "removed": lambda raw, rng: None,
}


def damage(file: Path, kind: str, rng: random.Random) -> None:
    """Damage a file; what it was linked to elsewhere stays as it is."""
    changed = DAMAGE[kind](file.read_bytes(), rng)
    file.unlink()
    if kind == "a folder":
        file.mkdir()
    elif kind == "a link to itself":
        file.symlink_to(file.name)
    elif changed is not None:
        file.write_bytes(changed)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class States:
    """Work directories to damage: "finished", "unscored" (its run was killed after training), "training" (in it)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "whole.toml").write_text(EXPERIMENT)
        (folder / "search.toml").write_text(STUDY)
        first, whole = folder / "first", folder / "finished"
        every = (self.compare(first), self.study(first), self.report(first), self.doctor(first))
        endings = forked.import_what_is_used_by(*every)
        assert all(ended.code == 0 for ended in endings), endings
        shutil.rmtree(first)
        for command in (self.compare(whole), self.study(whole)):
            ended = forked.run(command)
            assert ended.code == 0, ended
        self.scores = scores(whole)
        self.run = next(run for run, (row, _) in self.scores.items() if row == "SimCSE")
        shutil.copytree(whole, folder / "unscored")
        for name in ("record.json", "pairs.parquet", "figures.json"):
            (folder / "unscored" / "runs" / self.run / name).unlink()
        half = folder / "half"
        under_way = forked.Started(self.compare(half))
        place = half / "runs" / self.run
        while not list(place.glob("checkpoint/state.pt")) or not list(place.glob("checkpoint/best-*")):
            assert under_way.poll()
            time.sleep(0.001)
        under_way.kill()
        under_way.wait()
        assert not (place / "fitted.json").exists(), "killed in training"
        shutil.copytree(folder / "unscored", folder / "training")
        shutil.rmtree(folder / "training" / "runs" / self.run)
        shutil.copytree(place, folder / "training" / "runs" / self.run)

    def compare(self, work: Path, *, tracked: bool = True) -> list[str]:
        command = ["compare", str(self.folder / "whole.toml"), "--workdir", str(work), "--format", "md", "--quiet"]
        return command if tracked else [*command, "--no-tracking"]

    def study(self, work: Path) -> list[str]:
        return ["study", "run", str(self.folder / "search.toml"), "--workdir", str(work), "--quiet"]

    def doctor(self, work: Path) -> list[str]:
        return ["doctor", "--workdir", str(work), "--json"]

    def report(self, work: Path) -> list[str]:
        return ["report", "build", "whole", "--from", str(work), "--format", "md,csv"]

    def files(self) -> list[tuple[str, str]]:
        """(state, path in the work directory) of what is damaged: one of each kind."""
        run, whole = self.folder / "finished" / "runs" / self.run, self.folder / "finished"
        shared = [whole / name for name in ("precision.json", "comparisons/whole.json", "mlflow.db", "studies.journal")]
        shared += [next(whole.glob(p)) for p in ("embeddings/*/*.safetensors", "reports/whole/data.json")]
        shared += sorted(whole.glob("mteb/**/*.json"))[:3]
        shared += [whole / "reports/whole/report.md", *sorted((whole / "locks").glob("*.lock"))[:1]]
        study_run = next(f for f in sorted((whole / "runs").iterdir()) if f.name not in self.scores)
        mine = [f for f in sorted(run.rglob("*")) if f.is_file()]
        cases = [("finished", f.relative_to(whole).as_posix()) for f in [*mine, *shared, study_run / "record.json"]]
        cases += [("unscored", f.relative_to(whole).as_posix()) for f in mine if f.name in AFTER_TRAINING]
        half = self.folder / "training"
        kept = [f for f in sorted((half / "runs" / self.run).rglob("*")) if f.is_file() and f.name != ".lock"]
        return cases + [("training", f.relative_to(half).as_posix()) for f in kept]


AFTER_TRAINING = (
    "fitted.json",
    "curves.jsonl",
    "harness_method.json",
    "model.safetensors",
    "modules.json",
    "config.json",
)
VOUCHED = ("record.json", "pairs.parquet", "figures.json", "curves.jsonl", "precision.json", "whole.json")  # + model/


def scores(work: Path) -> dict[str, tuple[str, list[object]]]:
    """Run of the comparison -> its row and scores; empty where a record cannot be read."""
    from harness.results.manifest import read_records

    timed = ("seconds", "milliseconds")
    return {
        r.id: (r.row, [s.model_dump() for s in r.scores if not s.metric.endswith(timed)])
        for r in read_records(work, "whole")
    }


def marks(work: Path, but: str) -> dict[str, tuple[int, int]]:
    """Saved model -> what changes when it is written anew, but that of the damaged file."""
    files = [file for file in work.glob("runs/*/model/model.safetensors") if str(file.relative_to(work)) != but]
    return {file.parent.parent.name: (file.lstat().st_ino, file.lstat().st_mtime_ns) for file in files}


def fault_of(states: States, work: Path, state: str, path: str, kind: str) -> str:
    """What is wrong with how the commands dealt with the damage; empty where nothing is."""
    file, name = work / path, Path(path).name
    before = marks(work, path)
    doctor = forked.run(states.doctor(work))
    if fault := doctor.fault((0, 1, 2)):
        return f"doctor: {fault}"
    vouched = state == "finished" and (name in VOUCHED or ("/model/" in path and name != "README.md"))
    forgotten = kind == "removed" and name in ("record.json", "precision.json", "whole.json")  # as if never written
    if vouched and not forgotten and name not in doctor.out + doctor.err:
        return "doctor: does not name it"
    if fault := _badly_told(forked.run(states.report(work)), file):
        return f"report: {fault}"
    command = states.study(work) if "journal" in path else states.compare(work, tracked="mlflow" in path)
    ended = forked.run(command)
    if fault := _badly_told(ended, file):
        return f"{command[0]}: {fault}"
    if ended.code != 0:
        remove(file)
        if (again := forked.run(command)).code != 0:
            return f"{command[0]}: not even with the file removed: {again.err.strip()[-300:]}"
    if scores(work) != states.scores:
        return f"other scores ({ended.err.strip()[-200:]})"
    if "/model/" in path and state == "finished" and before != marks(work, path):
        return "trained again though its scores are kept"
    may_train = state != "finished"
    after = marks(work, path)
    again = [run for run, mark in before.items() if after.get(run) != mark and not (may_train and run == states.run)]
    return f"trained again: {again}" if again else ""


def _badly_told(ended: forked.Ended, file: Path) -> str:
    if fault := ended.fault((0, 1, 2)):
        return fault
    lines = [line for line in ended.err.splitlines() if line.startswith("harness:")]
    if ended.code and len(lines) != 1:
        return f"{len(lines)} lines: {ended.err.strip()[-300:]}"
    return "" if not ended.code or str(file) in ended.err or file.name in ended.err else f"not named: {lines[0][:300]}"


def main() -> int:
    """Exit code 1 when something fell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0, help="the first so many of the cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files with this in their path")
    args = parser.parse_args()
    rng, started = random.Random(args.seed), time.monotonic()
    tried, fell = Counter[str](), defaultdict[str, list[str]](list)
    with tempfile.TemporaryDirectory() as name, forked.every_update_a_checkpoint(), forked.nothing_drawn():
        states = States(Path(name).resolve())
        every = [(state, path, kind) for state, path in states.files() for kind in DAMAGE if args.only in path]
        rng.shuffle(every)
        seen = Counter[tuple[str, str]]()
        order = {}  # every file once, then every file twice, ...
        for state, path, kind in every:
            seen[state, path] += 1
            order[state, path, kind] = seen[state, path]
        chosen = sorted(every, key=order.__getitem__)[: args.cases]
        for number, (state, path, kind) in list(enumerate(chosen))[args.skip :]:
            work = states.folder / "case"
            shutil.copytree(states.folder / state, work, copy_function=_link_or_copy)
            damage(work / path, kind, random.Random(f"{args.seed} {number}"))
            shown = f"{state}: {path.replace(states.run, 'RUN')}"
            print(f"{number}: {shown}, {kind}", file=sys.stderr, flush=True)
            fault = fault_of(states, work, state, path, kind)
            tried[shown] += 1
            if fault:
                fell[shown].append(f"{kind}: {fault}")
                print(f"  fell: {fault}", file=sys.stderr, flush=True)
            shutil.rmtree(work)
    print(f"{'file':<62} {'tried':>5} {'held':>5} {'fell':>5}")
    for shown, count in sorted(tried.items()):
        print(f"{shown:<62} {count:>5} {count - len(fell[shown]):>5} {len(fell[shown]):>5}")
    total, fallen = sum(tried.values()), sum(map(len, fell.values()))
    print(f"tried {total}, held {total - fallen}, fell {fallen}, {time.monotonic() - started:.0f} s")
    for shown, faults in fell.items():
        print(*(f"{shown}, {fault}" for fault in faults), sep="\n")
    return 1 if fallen else 0


def _link_or_copy(source: str, target: str) -> None:
    """Weights are large, and never written in place."""
    (os.link if source.endswith(".safetensors") else shutil.copy2)(source, target)


if __name__ == "__main__":
    sys.exit(main())
