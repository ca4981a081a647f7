"""Points on what is lost, leaked, left behind or said wrongly: links (links), one sender (sync),
cells (cells), secrets (secrets), files of a work directory (files), costs (costs), journals
(journal), plugins (plugins), encodings (encoding), marks and lines (marks), home folders (home),
other machines (machines), and what is outside of forty hostile work directories (outside).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_scores import table, write

EXPERIMENT = """\
name = "small"
seeds = [1, 2, 3]
suites = ["Embedded-STS-contrast"]
precision = "fp32"
max_steps = 2
corpus = { uri = "embedded:sentences", limit = 32 }
dev = { task = "Embedded-STS-contrast" }
methods = [
  { method = "pooling", name = "cls", config = { pooling = "cls" } },
  { method = "simcse", preset = "mini", config = { batch_size = 8 } },
]
"""
SECONDS = 400.0  # of a command: one that waits for a pipe would take for ever


def finished_workdir(room: Path) -> tuple[Path, Path]:
    """Return the experiment file and a finished work directory, made once for a point."""
    file = write(room, "small.toml", EXPERIMENT)
    workdir = room / "made"
    endings = forked.import_what_is_used_by(  # so that later commands start at once
        ["compare", str(file), "--workdir", str(workdir), "--quiet", "--format", "md"],
        ["verdict", "--workdir", str(workdir)],
        ["doctor", "--workdir", str(workdir)],
        ["status", "--workdir", str(workdir)],
    )
    assert endings[0].code == 0, endings[0].err
    return file, workdir


def read_finished_state(room: Path) -> dict[str, Any]:
    """Return what a finished work directory, made once for a point, says of its progress."""
    _, workdir = finished_workdir(room)
    state: dict[str, Any] = json.loads((workdir / "progress.json").read_text())["small"]
    return state


def write_running(workdir: Path, state: dict[str, Any], **changes: object) -> None:
    """Write the progress of a comparison that runs: that of a finished one, with some changes."""
    running = {**state, "phase": "running", **changes}
    write(workdir, "progress.json", json.dumps({"small": running}))


def copied(workdir: Path, room: Path, name: str) -> Path:
    copy = room / name.replace("/", "-").replace(" ", "-") / "work"
    shutil.copytree(workdir, copy, symlinks=True)
    return copy


def finding(name: str, expected: str, ended: forked.Ended, *, ok: bool) -> Finding:
    fault = ended.fault((0, 1, 2))
    last = (ended.err or ended.out).strip().splitlines()[-1:] or [""]
    seen = fault or f"exit {ended.code}: {last[0][:160]}"
    return Finding(name, expected, seen, ok and not fault)


def is_one_line(ended: forked.Ended) -> bool:
    return ended.code == 2 and len(ended.err.strip().splitlines()) == 1


# ---------------------------------------------------------------------------------------- links


PLACES = (
    "reports",
    "reports/small",
    "reports/small/figures",
    "reports/small/tables",
    "reports/small/figures/deep",
    "reports/small/data",
    "cache",
    "cache/embeddings",
    "cache/mteb",
    "plans",
    "mlartifacts",
    "mlartifacts/deep",
    "comparisons",
    "runs",
)
FILES = (
    "reports/small/report.md",
    "reports/small/data.json",
    "reports/small/.report.md.part",
    "progress.json",
    "progress.html",
    "measurements.json",
    "mlflow.db",
    "studies.journal",
    "gate.jsonl",
    ".progress.lock",
    ".measurements.lock",
    "comparisons/small.json",
    "comparisons/.small.lock-holder",
)
OF_RUNS = ("", "record.json", "examples.parquet", "details.json", "stop", "checkpoint", ".hidden")
PIPES = (
    "progress.json",
    "measurements.json",
    "mlflow.db",
    "studies.journal",
    "gate.jsonl",
    "cache",
)


def _listing(folder: Path, without: Path) -> dict[str, str]:
    """Return path -> size, time and hash of all files below a folder, without those of another."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path == without or without in path.parents:
            continue
        about = path.lstat()
        is_file = path.is_file() and not path.is_symlink()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
        found[str(path.relative_to(folder))] = f"{about.st_size} {about.st_mtime_ns} {digest}"
    return found


def _put_outside(room: Path) -> Path:
    outside = room / "outside"
    for name in ("precious.txt", ".hidden", ".precious.txt.part", "deep/record.json", "stop"):
        write(outside, name, "precious")
    return outside


def _hostile(workdir: Path, place: str, target: Path) -> None:
    """Put a link in the place of a file or folder of a work directory."""
    path = workdir / place
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@point("outside")
def nothing_outside_is_written_or_deleted(folder: Path, room: Path) -> Iterator[Finding]:
    file, made = finished_workdir(room)
    run = next((made / "runs").iterdir()).name
    cases: list[tuple[str, bool]] = [(place, True) for place in PLACES]
    cases += [(place, False) for place in FILES]
    cases += [(f"runs/{run}/{name}".rstrip("/"), name in ("", "checkpoint")) for name in OF_RUNS]
    cases += [(f"pipe {place}", False) for place in PIPES]
    for place, is_folder in cases:
        own = room / f"case {place.replace('/', ' ')}"
        workdir = own / "work"
        shutil.copytree(made, workdir, symlinks=True)
        data = workdir / "reports" / "small" / "data.json"
        tree = json.loads(data.read_text())
        tree["files"] += ["figures/precious.txt", "tables/precious.txt", "figures/deep/record.json"]
        data.write_text(json.dumps(tree))
        outside = _put_outside(own)
        if place.startswith("pipe "):
            path = workdir / place.removeprefix("pipe ")
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        else:
            _hostile(workdir, place, outside if is_folder else outside / "precious.txt")
        before = _listing(own, workdir)
        endings = [
            forked.run(command, seconds=SECONDS)
            for command in (
                ["report", "build", "small", "--workdir", str(workdir), "--format", "md"],
                ["compare", str(file), "--workdir", str(workdir), "--quiet", "--format", "md"],
                ["track", "sync", "--workdir", str(workdir)],
                ["doctor", "--workdir", str(workdir)],
                ["status", "--workdir", str(workdir)],
                ["verdict", "--workdir", str(workdir)],
            )
        ]
        after = _listing(own, workdir)
        changed = sorted({*before.items()} ^ {*after.items()})
        fault = next((found for one in endings if (found := one.fault((0, 1, 2)))), "")
        seen = fault or str([name for name, _ in changed] or "nothing changed")
        codes = [one.code for one in endings]
        yield Finding(
            place, "nothing outside changed", f"{seen}, exits {codes}", not changed and not fault
        )
        shutil.rmtree(own)


@point("links")
def links_out_of_a_work_directory(folder: Path, room: Path) -> Iterator[Finding]:
    _, made = finished_workdir(room)
    for place in ("reports/small/figures", "reports/small", "cache", "plans", "mlartifacts"):
        workdir = copied(made, room, place)
        _hostile(workdir, place, _put_outside(workdir.parent))
        ended = forked.run(["report", "build", "small", "--workdir", str(workdir)], seconds=SECONDS)
        ok = is_one_line(ended) and str(workdir / place) in ended.err
        yield finding(place, "exit 2, one line that names the link", ended, ok=ok)
    workdir = copied(made, room, "large disk")
    (workdir / "runs").rename(workdir.parent / "disk")
    (workdir / "runs").symlink_to(workdir.parent / "disk")
    ended = forked.run(["report", "build", "small", "--workdir", str(workdir), "--format", "md"])
    yield finding("runs on another disk", "exit 0", ended, ok=ended.code == 0)


# ----------------------------------------------------------------------------------------- sync


@point("sync")
def senders_to_mlflow(folder: Path, room: Path) -> Iterator[Finding]:
    from mlflow import MlflowClient

    from harness.results.store import read_comparison_file
    from harness.tracking import default_uri

    _, made = finished_workdir(room)
    listed = read_comparison_file(made, "small")
    assert listed is not None
    expected = len({run.row for run in listed.runs})
    for name, count in (("two at once", 2), ("four at once", 4), ("what? 50%3F", 1)):
        workdir = room / name / "work"
        shutil.copytree(made, workdir)
        for left in ("mlflow.db", "mlartifacts"):
            path = workdir / left
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        command = ["track", "sync", "--workdir", str(workdir)]
        started = [forked.Started(command) for _ in range(count)]
        endings = [one.wait() for one in started]
        client = MlflowClient(tracking_uri=default_uri(workdir))
        experiment = client.get_experiment_by_name("small")
        runs = client.search_runs([experiment.experiment_id])
        rows = sum("harness.parent" in run.data.tags for run in runs)
        beside = [path.name for path in (room / name).iterdir()]
        seen = f"{rows} rows, {len(runs) - rows} seeds, exits {[one.code for one in endings]}, {beside}"
        ok = rows == expected and beside == ["work"] and all(one.code == 0 for one in endings)
        yield Finding(name, f"{expected} rows, nothing beside", seen, ok)
    workdir = copied(made, room, "linked")
    secret = write(room, "secret.txt", "my secret")
    for run in (workdir / "runs").iterdir():
        _hostile(workdir, f"runs/{run.name}/curves.jsonl", secret)
    for left in ("mlflow.db", "mlartifacts"):
        path = workdir / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    ended = forked.run(["track", "sync", "--workdir", str(workdir)])
    sent = [file for file in (workdir / "mlartifacts").rglob("*") if file.is_file()]
    leaked = [file.name for file in sent if b"my secret" in file.read_bytes()]
    yield Finding("linked curves", "not sent", f"sent: {leaked}, exit {ended.code}", not leaked)


# ------------------------------------------------------------------------------ cells and words


@point("cells")
def cells_of_spreadsheets(folder: Path, room: Path) -> Iterator[Finding]:
    from reports.write.markdown import csv_text

    for text in (
        "=1",
        "\n=1",
        " =1",
        "\u00a0=1",
        "\ufeff=1",
        "\uff1d1",
        "\u200b@A",
        "\u3000+1",
        "\t-1",
    ):
        found = csv_text(text)
        yield Finding(repr(text), "guarded", repr(found), found.startswith("'"))
    for text in ("SimCSE", "a=1", "\u22120.5", ""):
        yield Finding(repr(text), "as it is", repr(csv_text(text)), csv_text(text) == text)


@point("secrets")
def forms_of_credentials(folder: Path, room: Path) -> Iterator[Finding]:
    from harness.files.printable import redacted

    secret = "Zq7" + "xK9w" * 6
    for form in (
        "token: {}",
        "Authorization: Bearer {}",
        '{{"api_key": "{}"}}',
        "X-Api-Key: {}",
        "sk-{}",
        "password = {}",
        "--token {}",
        "ghp_{}",
        "{{'Authorization': 'Basic {}'}}",
        "Cookie: session={}",
        "clientSecret: {}",
    ):
        text = form.format(secret)
        yield Finding(form, "hidden", redacted(text), secret not in redacted(text))
    for text in ("token: expected a number", 'unknown key "token"; known: max_tokens=5'):
        yield Finding(text, "as it is", redacted(text), redacted(text) == text)


# --------------------------------------------------------------------- files of a work directory


def _replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "garbage":
        path.write_bytes(b"\xff\xfe[" * 50)
    else:
        path.write_text("[" * 100_000)


@point("files")
def files_of_a_work_directory(folder: Path, room: Path) -> Iterator[Finding]:
    file, made = finished_workdir(room)
    run = next(path.parent.name for path in (made / "runs").glob("*/curves.jsonl"))
    places = ["progress.json", "measurements.json", "gate.jsonl", "comparisons/small.json"]
    places += [f"runs/{run}/{name}" for name in ("examples.parquet", "record.json", "curves.jsonl")]
    for place in places:
        for kind in ("pipe", "zeros", "folder", "garbage", "nested"):
            workdir = copied(made, room, f"{place} {kind}")
            _replace(workdir / place, kind)
            rows = ["--baseline", "cls", "--candidate", "simcse"]
            gate = ["gate", *rows, "--workdir", str(workdir)]
            commands = [gate] if place == "gate.jsonl" else []
            commands += [
                ["status", "--workdir", str(workdir)],
                ["verdict", "--workdir", str(workdir)],
                ["report", "build", "small", "--workdir", str(workdir), "--format", "md"],
                ["compare", str(file), "--workdir", str(workdir), "--quiet", "--format", "md"],
            ]
            endings = [forked.run(command, seconds=SECONDS) for command in commands]
            faults = [fault for one in endings if (fault := one.fault((0, 1, 2, 3)))]
            codes = [one.code for one in endings]
            name = f"{kind} in place of {place.replace(run, 'ID')}"
            yield Finding(
                name, "no traceback, ends", f"{faults or 'none'}, exits {codes}", not faults
            )
            shutil.rmtree(workdir.parent)


@point("costs")
def records_whose_costs_are_no_amounts(folder: Path, room: Path) -> Iterator[Finding]:
    from harness.results.record import Record

    file, made = finished_workdir(room)
    for value in (float("nan"), float("inf"), 1e308):
        workdir = copied(made, room, str(value))
        for path in (workdir / "runs").glob("*/record.json"):
            record = Record.from_json(path.read_text())
            path.write_text(record.model_copy(update={"cost": {"parameters": value}}).to_json())
        doctor = forked.run(["doctor", "--workdir", str(workdir)])
        found = doctor.code == 1 and "parameters" in doctor.out
        yield finding(f"doctor with {value}", "names the records", doctor, ok=found)
        for command in (
            ["report", "build", "small", "--workdir", str(workdir), "--format", "md"],
            ["report", "checklist", "small", "--workdir", str(workdir)],
            ["compare", str(file), "--workdir", str(workdir), "--quiet", "--format", "md"],
        ):
            ended = forked.run(command)
            yield finding(f"{' '.join(command[:2])} with {value}", "no traceback", ended, ok=True)


@point("journal")
def journals_of_studies(folder: Path, room: Path) -> Iterator[Finding]:
    import optuna

    from studies.storage import open_storage

    made = room / "made"
    study = optuna.create_study(storage=open_storage(made), study_name="some")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=3)
    lines = (made / "studies.journal").read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if json.loads(line).get("values"))

    def change(number: int, **values: Any) -> list[str]:
        changed = {**json.loads(lines[number]), **values}
        return [*lines[:number], json.dumps(changed), *lines[number + 1 :]]

    old = [json.dumps({k: v for k, v in json.loads(one).items() if k != "line"}) for one in lines]
    damages: dict[str, list[str]] = {
        "a line removed": [*lines[:3], *lines[4:]],
        "a line repeated": [*lines[:4], *lines[3:]],
        "two lines exchanged": [*lines[:3], lines[4], lines[3], *lines[5:]],
        "another value": change(last, values=[0.5]),
        "operation 99, without numbers": [
            *old[:2],
            old[2].replace('"op_code": ', '"op_code": 9'),
            *old[3:],
        ],
        "no study, without numbers": [one.replace('"study_id"', '"study"') for one in old],
        "values of text, without numbers": [
            *old[:last],
            old[last].replace('"values": [', '"values": ["x", '),
            *old[last + 1 :],
        ],
    }
    for name, damaged in damages.items():
        workdir = room / name
        (workdir / "runs").mkdir(parents=True)
        (workdir / "studies.journal").write_text("\n".join(damaged) + "\n")
        doctor = forked.run(["doctor", "--workdir", str(workdir)])
        ok = doctor.code == 1 and "studies.journal" in doctor.out
        yield finding(f"doctor: {name}", "names the journal", doctor, ok=ok)
        shown = forked.run(["study", "show", "some", "--workdir", str(workdir)])
        yield finding(f"study show: {name}", "exit 2, one line", shown, ok=is_one_line(shown))


# --------------------------------------------------------------------------------------- plugins


def _register(group: Any, name: str, plugin: Any) -> Callable[[], None]:
    from harness import registry

    return lambda: registry.add(group, name, plugin)


def _exit(*_: Any, **__: Any) -> Any:
    sys.exit(0)


def _end(*_: Any, **__: Any) -> Any:
    os._exit(0)


@point("plugins")
def plugins_that_fail(folder: Path, room: Path) -> Iterator[Finding]:
    from harness import registry
    from harness.results.store import read_comparison_file

    study = write(
        room,
        "search.toml",
        'method = "random"\nprecision = "fp32"\nsuites = ["Embedded-STS-contrast"]\n'
        'objective = "Embedded-STS-contrast"\nsampler = "own"\ntrials = 2\n'
        "[space]\ndimension = { low = 2, high = 8 }\n",
    )
    file = write(room, "small.toml", EXPERIMENT)
    for number, (name, make) in enumerate(
        {"none": lambda *_: None, "exits": _exit, "ends": _end}.items()
    ):
        before = _register(registry.SAMPLERS, "own", make)
        command = ["study", "run", str(study), "--workdir", str(room / f"s{number}"), "--quiet"]
        ended = forked.run(command, before=before, seconds=SECONDS)
        ok = ended.code == 1 and 'sampler "own"' in ended.err
        yield finding(f"sampler: {name}", "exit 1, one line", ended, ok=ok)

    class Own:
        def __init__(self, *_: Any) -> None: ...

        def end_rows(self) -> None: ...

    for number, (name, send) in enumerate(
        {"exits": _exit, "ends": _end, "answers None": lambda *_: None}.items()
    ):
        kind = type("Own", (Own,), {"send": send})
        workdir = room / f"t{number}"
        command = ["compare", str(file), "--workdir", str(workdir), "--format", "md"]
        command += ["--tracking-uri", "own://x"]
        before = _register(registry.TRACKERS, "own", kind)
        ended = forked.run(command, before=before, seconds=SECONDS)
        records = len(list((workdir / "runs").glob("*/record.json")))
        listed = read_comparison_file(workdir, "small")
        planned = len({run.id for run in listed.runs}) if listed is not None else -1
        ok = ended.code == 0 and records == planned
        if name != "answers None":
            ok = ok and "tracking:" in ended.err
        yield finding(f"tracker: {name} ({records} records)", "exit 0, all records", ended, ok=ok)


# ------------------------------------------------------------------------------- what is printed


@point("encoding")
def output_in_any_encoding(folder: Path, room: Path) -> Iterator[Finding]:
    import subprocess

    scores = write(
        room, "scores.csv", table({"a\u0301\u4e2d": [70.1, 70.2, 70.3], "b": [80.5, 80.1, 80.3]})
    )
    reported = sorted(folder.rglob("38-*/scores.csv"))
    for encoding in ("ascii", "latin-1", "cp1252", "gbk", "utf-8"):
        for source in (scores, *reported):
            for command in (
                ["verdict", "--scores", str(source)],
                ["power", "--scores", str(source)],
            ):
                environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
                done = subprocess.run(
                    [sys.executable, "-m", "harness", *command],
                    capture_output=True,
                    env=environment,
                    check=False,
                )
                ok = done.returncode in (0, 2) and b"Traceback" not in done.stderr
                name = f"{command[0]} in {encoding}, {source.parent.name}"
                seen = f"exit {done.returncode}: {done.stderr[-100:]!r}"
                yield Finding(name, "no traceback", seen, ok)


@point("marks")
def marks_and_line_separators(folder: Path, room: Path) -> Iterator[Finding]:
    reported = sorted(folder.rglob("24-*/*.toml"))
    own = write(room, "mark.toml", b"\xef\xbb\xbf" + EXPERIMENT.encode())
    for file in (own, *reported):
        ended = forked.run(["compare", str(file), "--dry-run", "--workdir", str(room / "w")])
        ok = ended.code == 0 or "not a TOML file" not in ended.err
        yield finding(f"byte-order mark: {file.parent.name}", "read", ended, ok=ok)
    for mark in ("\u2028", "\u0085", "\x0c"):
        place = room / f"logs {ord(mark):x}"
        for row in ("a", "b"):
            lines = [
                json.dumps(
                    {"doc_id": n, "text": f"x{mark}y", "metrics": ["acc"], "acc": n % 2},
                    ensure_ascii=False,
                )
                for n in range(20)
            ]
            write(place, f"org__{row}/samples_t_1.jsonl", "\n".join(lines) + "\n")
        ended = forked.run(["verdict", "--scores", str(place)])
        yield finding(f"U+{ord(mark):04X} in a log", "exit 0", ended, ok=ended.code == 0)


@point("home")
def users_without_a_home(folder: Path, room: Path) -> Iterator[Finding]:
    def leave_home() -> None:
        import pwd

        for name in ("HOME", "XDG_CACHE_HOME", "HARNESS_CACHE"):
            os.environ.pop(name, None)

        def absent(_: int) -> Any:
            raise KeyError("uid")

        pwd.getpwuid = absent

    evaluate = ["evaluate", "embedded:mini-bert", "--suite", "Embedded-STS-contrast"]
    ended = forked.run(evaluate, before=leave_home)
    yield finding("evaluate without a home", "scored", ended, ok=ended.code == 0)
    for name, command in {
        "model ~/m": ["evaluate", "~/m", "--suite", "Embedded-STS-contrast"],
        "corpus ~/t.txt": ["train", "simcse", "--corpus", "~/t.txt", "--out", str(room / "out")],
    }.items():
        ended = forked.run(command, before=leave_home)
        yield finding(
            name, "exit 2, one line", ended, ok=is_one_line(ended) and "HOME" in ended.err
        )


@point("machines")
def what_other_machines_do(folder: Path, room: Path) -> Iterator[Finding]:
    _, made = finished_workdir(room)
    state = json.loads((made / "progress.json").read_text())["small"]
    now = time.time()
    for name, alive, phase in (
        ("a sign of life a minute ago", now - 60, "running"),
        ("silent for ten minutes", now - 600, "unknown"),
        ("a clock that is ahead", now + 10**6, "running"),
    ):
        workdir = room / name
        changed = {
            **state,
            "phase": "running",
            "host": "gpu-17",
            "updated": now - 900,
            "alive": alive,
        }
        write(workdir, "progress.json", json.dumps({"small": changed}))
        ended = forked.run(["status", "--workdir", str(workdir)])
        ok = (
            f"small: {phase}" in ended.out
            and "has ended" not in ended.out
            and "-" not in ended.out.partition(" ago")[0][-6:]
        )
        yield Finding(name, phase, ended.out.strip()[:160], ok)
    (made / "runs").rename(room / "runs")
    shutil.copytree(room / "runs", made / "runs")
    for model in (made / "runs").glob("*/model"):
        shutil.rmtree(model)
    ended = forked.run(["doctor", "--workdir", str(made)])
    ok = ended.code == 0 and "were removed" in ended.out
    yield finding("weights removed on purpose", "no damage", ended, ok=ok)
