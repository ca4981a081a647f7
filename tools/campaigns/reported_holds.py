"""Points on what a machine or another user does: full disks (disks), archives of somebody else
(archives), two commands at once (pairs), hostile names (names), processes of others (processes),
reports of others (reproduce), options of SLURM (slurm), state of the caller (caller), bombs
(bombs), and plugins that cannot be listed (lists).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import lzma
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import warnings
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.commands.reproduce import find_cells
from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_faults import (
    EXPERIMENT,
    copied,
    finding,
    finished_workdir,
    is_one_line,
    read_finished_state,
    write_running,
)
from tools.campaigns.reported_scores import is_refused, table, write

SCORES = table(
    {"a": [70.1, 70.2, 70.3, 70.4, 70.5, 70.6], "b": [71.5, 71.7, 71.6, 71.9, 71.8, 72.0]}
)
GATE = ["gate", "--baseline", "a", "--candidate", "b"]


# ---------------------------------------------------------------------------------------- disks


def _limit(size: int) -> Callable[[], None]:
    """Return what lets no file of a process grow beyond so many bytes, as a quota does."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return limit


@contextmanager
def _small_disk(place: Path) -> Iterator[bool]:
    """Put a file system of 256 MiB at a folder, which is yielded as True; False where nobody may."""
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(place)]
    is_there = subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield is_there
    finally:
        if is_there:
            subprocess.run(["umount", "-l", str(place)], check=False)


def _fill(place: Path, room: int) -> Path:
    """Fill a file system but for about so many bytes; returns the file that does."""
    filler = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    filler.write_bytes(b"x" * (free - room))
    return filler


Command = Callable[[Path, Path], list[str]]
"""(work directory, folder of its own) -> a command that writes."""


def _writing_commands(file: Path, scores: Path) -> dict[str, Command]:
    return {
        "gate": lambda _, own: [*GATE, "--scores", str(scores), "--history", f"{own}/new"],
        "new": lambda _, own: ["new", "method", "own", "--out", f"{own}/new"],
        "pack": lambda work, own: [
            *["pack", "small", "--workdir", str(work)],
            *["--out", f"{own}/new.zip"],
        ],
        "report": lambda work, own: [
            *["report", "build", "small", "--workdir", str(work)],
            *["--out", f"{own}/new", "--format", "md"],
        ],
        "freeze": lambda _, own: ["compare", str(file), "--freeze", "--workdir", f"{own}/new"],
        "compare": lambda _, own: [
            *["compare", str(file), "--quiet", "--workdir", f"{own}/new"],
            *["--format", "md"],
        ],
        "track sync": lambda work, _: ["track", "sync", "--workdir", str(work)],
    }


@point("disks")
def disks_that_are_full(folder: Path, room: Path) -> Iterator[Finding]:
    """Exit code 1 and one line; no record is lost, and the same command then does the whole."""
    file, made = finished_workdir(room)
    scores = write(room, "scores.csv", SCORES)
    for name, make in _writing_commands(file, scores).items():
        for size in (300, 20_000):  # the message must have room, too
            case = f"{name}, files of at most {size:,} bytes"
            own = room / "own"
            shutil.copytree(made, own / "work")
            if name == "track sync":
                (own / "work" / "mlflow.db").unlink(missing_ok=True)
            yield _judge_disk(case, make(own / "work", own), own, _limit(size), lambda: None)
            shutil.rmtree(own)
        for left in (0, 50_000):
            with _small_disk(room / "disk") as is_there:
                own = room / "disk"
                if is_there:
                    shutil.copytree(made, own / "work")
                    if name == "track sync":
                        (own / "work" / "mlflow.db").unlink(missing_ok=True)
                    filler = _fill(own, left)
                    case = f"{name}, a disk with {left:,} bytes left"
                    command = make(own / "work", own)
                    yield _judge_disk(case, command, own, lambda: None, filler.unlink)
            shutil.rmtree(room / "disk")


def _judge_disk(
    case: str,
    command: list[str],
    own: Path,
    before: Callable[[], None],
    make_room: Callable[[], None],
) -> Finding:
    """Run a command that writes into `own` without room, and then with it."""
    ended = forked.run(command, before=before)
    last = ended.err.strip().splitlines()[-1:]
    has_room = ended.code == 0
    ok = has_room or (ended.code == 1 and "harness: " in str(last))
    records = {path: path.read_bytes() for path in own.rglob("record.json")}
    make_room()
    seen = case
    if not has_room:
        again = forked.run(command)
        seen = f"{case}; again: {again.code}"
        ok = ok and again.code == 0 and not again.fault((0,))
        ok = ok and all(path.read_bytes() == content for path, content in records.items())
    return finding(seen, "exit 1, one line; then 0", ended, ok=ok)


# ------------------------------------------------------------------------------------- archives


def _add(archive: Path, name: str, content: bytes = b"x", mode: int = 0) -> None:
    about = zipfile.ZipInfo(name)
    about.create_system = 3
    about.external_attr = mode << 16
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(about, content)


def _encrypt(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    content[content.find(b"PK\3\4") + 6] |= 1
    content[content.find(b"PK\1\2") + 8] |= 1
    archive.write_bytes(content)


def _state_less(archive: Path) -> None:
    """Add 60 MB of zeros, of which the list of contents says that they are ten bytes."""
    _add(archive, "zeros", b"\0" * 60_000_000)
    content = bytearray(archive.read_bytes())
    place = content.rfind(b"zeros") - 46
    content[place + 24 : place + 28] = (10).to_bytes(4, "little")
    archive.write_bytes(content)


def _add_two_cases(archive: Path) -> None:
    for name in ("Aa", "aA"):
        _add(archive, name)


def _add_zeros(archive: Path) -> None:
    for number in range(10):
        _add(archive, f"zeros{number}", b"\0" * 250_000_000)


ARCHIVES: dict[str, Callable[[Path], Any]] = {
    "a name with ..": lambda archive: _add(archive, "../../evil"),
    "an absolute name": lambda archive: _add(archive, "/tmp/harness-evil"),
    "a name of Windows": lambda archive: _add(archive, "..\\evil"),
    "a link": lambda archive: _add(archive, "runs/l", b"/etc/passwd", stat.S_IFLNK | 0o777),
    "a link to a folder": lambda archive: _add(archive, "d", b"/tmp", stat.S_IFLNK | 0o777),
    "a pipe": lambda archive: _add(archive, "p", b"", stat.S_IFIFO | 0o666),
    "a device": lambda archive: _add(archive, "c", b"", stat.S_IFCHR | 0o666),
    "a file in two cases": _add_two_cases,
    "two gigabytes of zeros": _add_zeros,
    "a false size": _state_less,
    "encrypted": _encrypt,
    "cut in the middle": lambda archive: archive.write_bytes(
        archive.read_bytes()[: archive.stat().st_size // 2]
    ),
    "cut at the end": lambda archive: archive.write_bytes(archive.read_bytes()[:-10]),
    "empty": lambda archive: archive.write_bytes(b""),
    "a line feed in a name": lambda archive: _add(archive, "runs/a\nb"),
    "a name of 300 signs": lambda archive: _add(archive, "y" * 300),
    "a file in place of a folder": lambda archive: _add(archive, "runs"),
}


@point("archives")
def archives_of_somebody_else(folder: Path, room: Path) -> Iterator[Finding]:
    """One line, or read as far as it is sound; nothing is written outside."""
    file, made = finished_workdir(room)
    good = room / "good.zip"
    packed = forked.run(["pack", "small", "--workdir", str(made), "--out", str(good)])
    assert packed.code == 0, packed.err
    for name, change in ARCHIVES.items():
        own = room / "archive"
        own.mkdir()
        archive = own / "made.zip"
        shutil.copyfile(good, archive)
        change(archive)
        for command in (
            ["reproduce", str(archive)],
            ["verdict", "--workdir", str(archive)],
            ["doctor", "--workdir", str(archive)],
            ["verdict", "--scores", str(archive)],
            [*["compare", str(file), "--dry-run"], "--against", str(archive)],
        ):
            ended = forked.run([*command], before=partial(os.chdir, own))
            outside = [path for path in (Path("/tmp/harness-evil"), room / "evil") if path.exists()]
            ok = ended.code in (0, 1) or is_one_line(ended)
            ok = ok and not outside and [path.name for path in own.iterdir()] == ["made.zip"]
            words = " ".join(word for word in command if not word.startswith("/"))
            yield finding(f"{name}: {words}", "one line, nothing outside", ended, ok=ok)
        shutil.rmtree(own)


# ---------------------------------------------------------------------------------------- pairs


@point("pairs")
def two_commands_at_once(folder: Path, room: Path) -> Iterator[Finding]:
    """Each ends with its work done or with one line, and the same command then does the whole."""
    file, made = finished_workdir(room)
    scores = write(room, "scores.csv", SCORES)

    def compare(work: Path) -> list[str]:
        return ["compare", str(file), "--workdir", str(work), "--quiet", "--format", "md"]

    def command(*words: str) -> Callable[[Path], list[str]]:
        return lambda work: [*words, "--workdir", str(work)]

    report = command("report", "build", "small")
    gate = [*GATE, "--scores", str(scores), "--history"]
    pairs: dict[str, Sequence[Callable[[Path], list[str]]]] = {
        "two comparisons": (compare, compare),
        "a comparison and its report": (compare, report),
        "a comparison and clean": (compare, command("clean", "models")),
        "a comparison and pack": (
            compare,
            lambda work: [*command("pack", "small")(work), "--out", f"{work}.zip"],
        ),
        "a comparison and two stops": (compare, command("stop"), command("stop")),
        "a comparison and doctor": (
            compare,
            command("doctor"),
            command("verdict"),
            command("status"),
        ),
        "a comparison and track sync": (compare, command("track", "sync")),
        "three reports": (report, report, report),
        "four gates": tuple(lambda work: [*gate, str(work.parent / "history")] for _ in range(4)),
        "two plans": tuple(
            lambda work: [*compare(work)[:2], "--freeze", "--workdir", str(work)] for _ in "ab"
        ),
        "two new packages": tuple(
            lambda work: ["new", "method", "own", "--out", str(work.parent / "new")] for _ in "ab"
        ),
    }
    for name, makers in pairs.items():
        workdir = copied(made, room, name)
        run = next(path.parent for path in (workdir / "runs").glob("*/curves.jsonl"))
        shutil.rmtree(run)  # so that a comparison has something to do
        started = [forked.Started(make(workdir)) for make in makers]
        endings = [one.wait(400) for one in started]
        faults = [fault for one in endings if (fault := one.fault((0, 1, 2, 3)))]
        seen = [f"{one.code} {one.err.strip()[-120:]}" for one in endings if one.code]
        again = forked.run(compare(workdir))
        doctor = forked.run(["doctor", "--workdir", str(workdir)])
        if doctor.code == 1 and "removed" in doctor.out:  # by clean, on purpose
            doctor = doctor._replace(code=0)
        ok = not faults and again.code == 0 and doctor.code == 0
        ok = ok and any(one.code in (0, 3) for one in endings)
        if name == "four gates":
            lines = (workdir.parent / "history").read_text().splitlines()
            decisions = [json.loads(line) for line in lines]
            ok = ok and len(decisions) == 1  # of one candidate, which the others repeat
        expected = "no traceback; then the whole, without damage"
        yield Finding(name, expected, f"{faults or seen}, then {again.code} {again.err[-100:]}", ok)
        shutil.rmtree(workdir.parent)


# ---------------------------------------------------------------------------------------- names


NAMES = (
    "a\nb", "-x", "--help", "\udcff", "\u00e9" * 60, "n" * 255, "n" * 300, "a\x1b[31mb", "\u202e txt",
    "what? 50%3F#x", "a;b&c$(x)`y`", "'", '"', "a\\b", "~", "..", " lead", "\t", "\u65e5\u672c",
    "a\u2028b", "{x}", "%s%n", "*", "",
)  # fmt: skip


EACH = 4


@point("names")
def hostile_names(folder: Path, room: Path) -> Iterator[Finding]:
    """Names of work directories, files, rows and experiments: used, or one line that is safe to print."""
    _, made = finished_workdir(room)
    for number, name in enumerate(NAMES):
        own = room / f"n{number}"
        own.mkdir()
        quoted = json.dumps(name, ensure_ascii="\udcff" in name)
        labelled = EXPERIMENT.replace('name = "cls"', f"name = {quoted}")
        named = EXPERIMENT.replace('name = "small"', f"name = {quoted}")
        lines = io.StringIO(newline="")
        rows = csv.writer(lines)
        rows.writerow(["row", "seed", "task", "score"])
        rows.writerows([row, seed, "T", 70 + seed] for row in (name, "b") for seed in (1, 2, 3))
        scores = write(own, "scores.csv", lines.getvalue().encode("utf-8", "surrogateescape"))
        commands = [
            ["compare", str(write(own, "label.toml", labelled)), "--dry-run"],
            ["compare", str(write(own, "name.toml", named)), "--dry-run"],
            ["compare", name, "--dry-run"],
            ["check-method", name],
            ["new", "method", name],
            ["verdict", name, "b", "--workdir", str(made)],
            ["verdict", "--scores", str(scores)],
            ["report", "build", str(scores), "--out", str(own / "report"), "--format", "csv"],
        ]
        try:
            shutil.copytree(made, own / "at" / name)
        except (OSError, shutil.Error):
            commands += [["status", f"--workdir={own}/at/{name}"]]
        else:
            place = f"--workdir={own}/at/{name}"
            commands += [["status", place], ["verdict", place], ["track", "sync", place]]
            commands += [["report", "build", "small", place, "--format", "md"]]
        for which, command in enumerate(commands):
            if (which + number) % EACH:  # each name meets every fourth command, and the reverse
                continue
            ended = forked.run(command, before=partial(os.chdir, own))
            ok = ended.code in (0, 1, 3) or is_one_line(ended)
            ok = ok and not any(sign in ended.out + ended.err for sign in "\x1b\x00\u202e")
            yield finding(f"{name[:20]!r}: {command[0]}", "used, or one line", ended, ok=ok)


# -------------------------------------------------------------- processes, reports and the caller


@point("processes")
def processes_of_others(folder: Path, room: Path) -> Iterator[Finding]:
    """`stop` ends no process but the one that runs the comparison."""
    state = read_finished_state(room)
    cases: dict[str, dict[str, Any]] = {
        "another start": {"process_start": 1.0},
        "no start": {"process_start": None},
        "a start that is a text": {"process_start": "x"},
        "number 0": {"pid": 0},
        "number -1": {"pid": -1},
        "a number that no process can have": {"pid": 2**40},
        "another host": {"host": "gpu-17"},
    }
    with subprocess.Popen(["sleep", "1000"]) as other:
        for name, changes in cases.items():
            workdir = room / name
            write_running(workdir, state, **({"pid": other.pid} | changes))
            ended = forked.run(["stop", "--workdir", str(workdir)])
            ok = ended.code == 1 and other.poll() is None
            yield finding(name, "exit 1, nothing ended", ended, ok=ok)
        other.kill()


@point("reproduce")
def reports_of_others(folder: Path, room: Path) -> Iterator[Finding]:
    """A report chooses neither a command nor a server."""
    _, made = finished_workdir(room)
    data = json.loads((made / "reports" / "small" / "data.json").read_text())
    for command in (
        "touch made",
        "harness track sync --tracking-uri http://127.0.0.1:9",
        "harness compare x.toml; touch made",
        'python -c \'open("made", "w")\'',
        "harness.compare({}, workdir='NEW_FOLDER')",
        "harness new method made",
        "",
    ):
        own = room / f"report{abs(hash(command))}"
        runs = {run: {**entry, "command": command} for run, entry in data["runs"].items()}
        write(own, "data.json", json.dumps({**data, "runs": runs}))
        name = next(iter(find_cells(data)))
        ended = forked.run(
            ["reproduce", f"{own}#{name}", "--run", str(own / "new")],
            before=partial(os.chdir, own),
        )
        left = sorted(path.name for path in own.iterdir())
        ok = is_one_line(ended) and left == ["data.json"]
        yield finding(command, "exit 2, nothing made", ended, ok=ok)


SBATCH = """#!/bin/sh
# Starts what it is given, as SLURM does on a node.
script=$(cat "$1")
export SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_PROCID=0
export SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_JOB_NODELIST=here
setsid sh -c "$script" > /dev/null 2>&1 &
echo Submitted batch job 7
"""
SRUN = f"""#!/bin/sh
while [ "$1" != "{sys.executable}" ]; do shift; done
exec "$@"
"""


@contextmanager
def _own_slurm(place: Path) -> Iterator[None]:
    """Put commands before those of SLURM that start the processes here."""
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", "#!/bin/sh\n")):
        file = write(place, name, text)
        file.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{place}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


@point("slurm")
def options_of_slurm(folder: Path, room: Path) -> Iterator[Finding]:
    """An option of sbatch is one line of its script, and no shell reads it."""
    from harness.executors.executor import ExecutorSettings
    from harness.executors.slurm import Slurm

    for name, options in {
        "a line feed": {"comment": "x\ntouch made\n#"},
        "a carriage return": {"comment": "x\rtouch made"},
        "a line separator": {"comment": "x\u2028y"},
        "in the name of an option": {"comment\ntouch made\n#": "x"},
        "at the end": {"comment": "x\n"},
    }.items():
        try:
            seen = Slurm(ExecutorSettings(name="slurm", slurm=options), room).make_script(1)
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
        ok = seen.startswith("InputError") and "\n" not in seen and "executor.slurm" in seen
        yield Finding(name, "one line", seen[:200], ok)
    for number, text in enumerate(
        ("$(touch made)", "`touch made`", "x; touch made", '"; touch made; "', "x && touch made #")
    ):
        work = room / f"work{number}"
        work.mkdir()
        settings = ExecutorSettings(name="slurm", slurm={"comment": text}, cpus_per_run=1)
        with _own_slurm(room / "bin"), chdir(work):
            (answer,) = Slurm(settings, work).run(len, deque(["abc"]), lambda: None)
        is_made = any(work.rglob("made"))
        seen = f"answer {answer.value}, {'a file was made' if is_made else 'nothing made'}"
        yield Finding(text, "answer 3, nothing made", seen, seen == "answer 3, nothing made")


@point("caller")
def state_of_the_caller(folder: Path, room: Path) -> Iterator[Finding]:
    """Random generators, the environment, logs and the time limits of MLflow of a program are as they
    were after each call.
    """
    import mlflow  # noqa: F401 - sets its log when it is imported
    import mteb  # noqa: F401 - sets the environment then

    import harness
    from harness.errors import InputError

    file = write(room, "small.toml", EXPERIMENT)
    train: dict[str, Any] = {
        "corpus": ["One.", "Two.", "Three."] * 4,
        "dev": None,
        "preset": "mini",
    }
    calls: dict[str, Callable[[], Any]] = {
        "train": lambda: harness.train("simcse", config={"max_steps": 1, "batch_size": 4}, **train),
        "train that is refused": lambda: harness.train("simcse", config={"max_steps": -1}, **train),
        "evaluate": lambda: harness.evaluate(
            "embedded:mini-bert", suites=["Embedded-STS-contrast"]
        ),
        "evaluate that is refused": lambda: harness.evaluate("nowhere/nothing", suites=["x"]),
        "verdict": lambda: harness.verdict(write(room, "scores.csv", SCORES)),
        "compare, tracked": lambda: harness.compare(file, workdir=room / "tracked"),
        "compare, untracked": lambda: harness.compare(
            file, workdir=room / "work", tracking_uri="none"
        ),
    }
    for name, call in calls.items():
        random.seed(3)
        np.random.seed(3)
        torch.manual_seed(3)
        before = _state()
        failed = ""
        try:
            call()
        except InputError as error:
            failed = str(error)
        after = _state()
        changed = [key for key, value in before.items() if value != after[key]]
        ok = not changed and bool(failed) == name.endswith("refused")
        yield Finding(name, "as they were", f"changed: {changed} {failed}", ok)


def _state() -> dict[str, Any]:
    """Return what a program shares with the package."""
    logger = logging.getLogger()
    return {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),
        "torch": torch.get_rng_state().tolist(),
        "environment": dict(os.environ),
        "log": (logger.level, list(logger.handlers), logging.getLogger("mlflow").level),
        "folder": os.getcwd(),
        "threads": torch.get_num_threads(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "warnings": list(warnings.filters),
    }


# ------------------------------------------------------------------- files and logs of other tools


@point("bombs")
def small_files_that_unpack_to_much(folder: Path, room: Path) -> Iterator[Finding]:
    zeros = b"row,seed,task,score\n" + b"a,1,T,1\n" * (1 << 17)
    for name, pack in (("x.csv.gz", gzip.open), ("x.csv.xz", lzma.open)):
        with pack(room / name, "wb") as file:
            for _ in range(1100):
                file.write(zeros)
        yield is_refused(name, room / name)
    with (
        zipfile.ZipFile(room / "x.eval", "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("header.json", "w", force_zip64=True) as member,
    ):
        for _ in range(1100):
            member.write(b" " * (1 << 20))
    yield is_refused("x.eval", room / "x.eval")


@point("lists")
def plugins_that_cannot_be_listed(folder: Path, room: Path) -> Iterator[Finding]:
    """The others are listed, and the broken one has its reason."""
    for name, text in {
        "an import that fails": "import nowhere\n",
        "a syntax error": "def f(:\n",
        "an exit": "import sys\nsys.exit(0)\n",
        "no such class": "x = 1\n",
        "a description that fails": (
            "from methods.simcse import SimCSE\nclass Own(SimCSE):\n    name = 'own'\n"
            "    @property\n    def Config(self): raise ValueError\n"
            "    def __class_getitem__(cls, _): raise ValueError\n"
            "Own.__doc__ = property(lambda _: 1 / 0)\n"
        ),
    }.items():
        place = room / name.replace(" ", "-")
        write(place, "own_plugin.py", text)
        about = "own_plugin-1.0.dist-info"
        write(place, f"{about}/METADATA", "Metadata-Version: 2.1\nName: own_plugin\nVersion: 1.0\n")
        write(place, f"{about}/entry_points.txt", "[harness.methods]\nown = own_plugin:Own\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(Path.cwd())])}
        done = subprocess.run(
            [sys.executable, "-m", "harness", "list", "methods"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        ok = "simcse" in done.stdout and "own" in done.stdout and "Traceback" not in done.stderr
        lines = [line for line in done.stdout.splitlines() if line.startswith("own")]
        yield Finding(name, "listed with the others", f"exit {done.returncode}: {lines}", ok)
