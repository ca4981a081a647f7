"""Points on a stop in the middle of a long encoding (stops), and on documentation with a part that is
broken (docs).
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_scores import write

EXPERIMENT = """\
name = "small"
seeds = [1]
suites = ["Embedded-STS-contrast", "Embedded-STS-natural"]
precision = "fp32"
methods = [{row}]
"""
FUNCTION = """\
import time

def vectors(texts):
    time.sleep({seconds})
    return [[len(text), text.count("e"), 1.0] for text in texts]
"""
AT_ONCE = 40.0  # seconds, on a machine that does other things; the encodings take ten minutes


def _slow_batches(*modules: str) -> Callable[[], None]:
    """Return what makes each batch of an encoder take 20 seconds."""

    def patch() -> None:
        for name in modules:
            module: Any = importlib.import_module(name)
            module.encoding_bar = partial(_slow_bar, module.encoding_bar)

    return patch


@contextmanager
def _slow_bar(bar: Any, total: int, *, show: bool) -> Iterator[Callable[[int], None]]:
    with bar(total, show=show) as advance:

        def wait(count: int) -> None:
            time.sleep(20)
            advance(count)

        yield wait


class _Slow(BaseHTTPRequestHandler):
    """An endpoint that takes 20 seconds for an answer, unless `quick` is set."""

    quick = False

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not _Slow.quick:
            time.sleep(20)
        vectors = [{"index": n, "embedding": [len(t), 1.0]} for n, t in enumerate(asked["input"])]
        body = json.dumps({"data": vectors, "model": "m"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def _endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1#m"
    finally:
        server.shutdown()
        thread.join()


@point("stops")
def stops_during_an_encoding(folder: Path, room: Path) -> Iterator[Finding]:
    """The command ends at the next batch, after a second signal at once, without a record; the same
    command does the rest.
    """
    plain = '{ method = "pooling" }'
    slow = _slow_batches("harness.encoder.network", "harness.encoder.foreign")
    write(room, "first.toml", EXPERIMENT.format(row=plain))
    first = ["compare", str(room / "first.toml"), "--workdir", str(room / "first"), "--quiet"]
    assert forked.import_what_is_used_by([*first, "--format", "md"])[0].code == 0
    yield _stop(room / "batches", plain, slow)
    yield _stop(room / "two signals", plain, slow, signals=(signal.SIGINT, signal.SIGTERM))
    write(room / "function", "own_slow.py", FUNCTION.format(seconds=600))
    row = '{ method = "pretrained", config = { model = "own_slow:vectors" } }'

    def mend() -> None:
        write(room / "function", "own_slow.py", FUNCTION.format(seconds=0))

    yield _stop(room / "function", row, lambda: None, signals=(signal.SIGTERM,) * 2, mend=mend)
    with _endpoint() as uri:
        row = f'{{ method = "pretrained", config = {{ model = "{uri}" }} }}'

        def hurry() -> None:
            _Slow.quick = True

        yield _stop(room / "endpoint", row, lambda: None, mend=hurry)


def _stop(
    place: Path,
    row: str,
    before: Callable[[], None],
    *,
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
    mend: Callable[[], None] = lambda: None,
) -> Finding:
    """Send signals to a comparison while it encodes, two seconds apart."""
    file = write(place, "small.toml", EXPERIMENT.format(row=row))
    work = place / "work"
    command = ["compare", str(file), "--workdir", str(work), "--quiet", "--format", "md"]

    def enter() -> None:
        os.chdir(place)
        before()

    started = forked.Started(command, before=enter)
    late = time.monotonic() + 120
    while not _is_encoding(work) and time.monotonic() < late and started.poll():
        time.sleep(0.1)
    was_encoding = _is_encoding(work)
    begun = time.monotonic()
    for number in signals:
        os.kill(started.pid, number)
        time.sleep(2)
    ended = started.wait(300)
    took = time.monotonic() - begun
    records = len(list((work / "runs").glob("*/record.json")))
    mend()
    again = forked.run(command, before=lambda: os.chdir(place))
    codes = (1, -signal.SIGTERM) if len(signals) == 2 else (1,)
    ok = was_encoding and not ended.fault(codes) and took < AT_ONCE and not records
    ok = ok and again.code == 0 and len(list((work / "runs").glob("*/record.json"))) > 0
    seen = f"encoding {was_encoding}, exit {ended.code} after {took:.0f} s, {records} records"
    seen += f", again {again.code}: {(ended.err + again.err).strip()[-200:]}"
    return Finding(place.name, "exit 1 at once, no record; then 0", seen, ok)


def _is_encoding(work: Path) -> bool:
    file = work / "progress.json"
    return file.exists() and "encoding" in file.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------- documentation


def _break_plugin(copy: Path) -> None:
    about = "own_plugin-1.0.dist-info"
    write(copy, f"{about}/METADATA", "Metadata-Version: 2.1\nName: own_plugin\nVersion: 1.0\n")
    write(copy, f"{about}/entry_points.txt", "[harness.methods]\nown = own_plugin:Own\n")
    write(
        copy,
        "own_plugin.py",
        "from methods.simcse import SimCSE\nclass Own(SimCSE):\n    x = 1 / 0\n",
    )


def _break_docstring(copy: Path) -> None:
    file = copy / "methods" / "objectives.py"
    text = file.read_text(encoding="utf-8")
    first = text.index('    """', text.index("\ndef "))
    broken = "A `` sign that is never closed.\n\n    .. no-such-directive::\n\n    "
    file.write_text(text[: first + 7] + broken + text[first + 7 :], encoding="utf-8")


def _break_page(copy: Path) -> None:
    (copy / "docs" / "speed.md").write_bytes(b"# Speed\n\nCaf\xe9\n")


@point("docs")
def documentation_with_a_broken_part(folder: Path, room: Path) -> Iterator[Finding]:
    """What is broken is named, with exit code 1 or 2, and no traceback is printed."""
    for name, damage, named in (
        ("a page", _break_page, "speed.md"),
        ("a plugin", _break_plugin, "own"),
        ("a docstring", _break_docstring, "no-such-directive"),
    ):
        copy = room / name.replace(" ", "-")
        for part in ("harness", "methods", "reports", "studies", "docs", "tools", "tests"):
            shutil.copytree(part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        for file in Path.cwd().glob("*.*"):
            if file.is_file():
                shutil.copy(file, copy)
        damage(copy)
        command = [sys.executable, "-m", "docs.site", str(copy / "out")]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
        ok = done.returncode in (1, 2) and named in done.stderr and "Traceback" not in done.stderr
        seen = f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
        yield Finding(name, f"exit 1 or 2, {named} named", seen, ok)
