"""Shows that a hub with truncated, garbled, late or wrong answers gives one clear line and leaves
nothing broken.

    python -m tools.campaigns.hub_faults [--base-model google-bert/bert-base-uncased]
        [--only PART_OF_A_NAME] [--cases N] [--seed 0]

A proxy on 127.0.0.1 in front of the hub that HF_ENDPOINT names (or of the public one) injects a
fault while a corpus, a base model, SentEval's archive of STS sets, and a set of MTEB's are
downloaded. A case passes if the command ends with exit code 1 or 2 and one line (or succeeds, if
the fault is only slow), within bounded time, and the same command with a working hub then prints
what it prints undisturbed; a garbled file that a message names is removed before that. Exit code 1
if a case failed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tools.campaigns.counted import add_sampling, sample, save_count

PATIENCE = 4  # seconds without a byte, in place of the harness's 60


class Answer(NamedTuple):
    """What the hub answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class Proxy(BaseHTTPRequestHandler):
    """Passes everything on to `upstream`, unless the `control` file names a fault for it."""

    protocol_version = "HTTP/1.1"
    upstream = control = ""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = self.rfile.read(length) if length else None
        url = urlsplit(self.upstream)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc, timeout=60)
        passed = {
            k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding")
        }
        connection.request(self.command, self.path, body=asked, headers=passed)
        got = connection.getresponse()
        dropped = ("transfer-encoding", "connection", "content-encoding")
        headers = {k: v for k, v in got.getheaders() if k.lower() not in dropped}
        answer = Answer(got.status, headers, got.read())
        fault, where = json.loads(Path(self.control).read_text())
        is_file = "/resolve/" in self.path
        hit = {
            "all": True,
            "api": not is_file,
            "file": is_file,
            "body": is_file and self.command == "GET",
        }
        if fault and hit[where]:
            FAULTS[fault](self, answer)
        else:
            self.answer(answer)

    do_HEAD = do_POST = do_GET  # noqa: N815 - the base class's names

    def answer(self, answer: Answer, **headers: str) -> None:
        """Send it as it is, but for `headers`."""
        sent = {k.lower(): v for k, v in answer.headers.items()}
        sent.setdefault("content-length", str(len(answer.body)))
        self.send_response(answer.status)
        for name, value in {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def part(self, answer: Answer, share: float) -> None:
        """Send headers and the first part of the body."""
        size = len(answer.body)
        self.answer(
            Answer(answer.status, answer.headers, answer.body[: int(share * size)]),
            content_length=str(size),
        )
        self.wfile.flush()

    def refuse(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.answer(Answer(status, {"content-length": str(len(body))}, body), **headers)

    def break_off(self, *, reset: bool = False) -> None:
        """Close the connection."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()

    def log_message(self, *_: object) -> None:
        pass


def _garble(proxy: Proxy, answer: Answer) -> None:
    """Replace every thousandth byte; the length is right."""
    body = bytearray(answer.body)
    step = min(1000, max(1, len(body) // 2))
    body[::step] = b"\xff" * len(body[::step])
    proxy.answer(Answer(answer.status, answer.headers, bytes(body)))


def _drip(proxy: Proxy, answer: Answer) -> None:
    proxy.part(answer, 0)
    for start in range(0, len(answer.body), step := 1 + len(answer.body) // 12):
        time.sleep(0.2)
        proxy.wfile.write(answer.body[start : start + step])
        proxy.wfile.flush()


def _then(first: Callable[[], object], *after: Callable[[], object]) -> None:
    first()
    for step in after:
        step()


def _stall() -> None:
    time.sleep(20 * PATIENCE)


FAULTS: dict[str, Callable[[Proxy, Answer], None]] = {
    "refused": lambda p, a: p.break_off(reset=True),
    "closed before an answer": lambda p, a: p.break_off(),
    "cut in the headers": lambda p, a: _then(
        lambda: p.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le"), p.break_off
    ),
    "cut after the headers": lambda p, a: _then(lambda: p.part(a, 0), p.break_off),
    "cut in the body": lambda p, a: _then(lambda: p.part(a, 0.6), p.break_off),
    "reset in the body": lambda p, a: _then(
        lambda: p.part(a, 0.6), lambda: p.break_off(reset=True)
    ),
    "no protocol": lambda p, a: _then(
        lambda: p.wfile.write(b"no protocol at all\r\n\r\n"), p.break_off
    ),
    "garbled": _garble,
    "length too long": lambda p, a: _then(
        lambda: p.answer(a, content_length=str(len(a.body) + 999)), p.break_off
    ),
    "length too short": lambda p, a: _then(
        lambda: p.answer(a, content_length=str(len(a.body) // 2)), p.break_off
    ),
    "length no number": lambda p, a: _then(lambda: p.answer(a, content_length="many"), p.break_off),
    "stalls at once": lambda p, a: _stall(),
    "stalls in the body": lambda p, a: _then(lambda: p.part(a, 0.5), _stall),
    "slow drip": _drip,
    "500": lambda p, a: p.refuse(500, b"oops"),
    "503": lambda p, a: p.refuse(503),
    "404": lambda p, a: p.refuse(404),
    "403": lambda p, a: p.refuse(403, b"<html>no</html>"),
    "429": lambda p, a: p.refuse(429, retry_after="2"),
    "redirect loop": lambda p, a: p.refuse(302, location=p.path),
    "redirect to nowhere": lambda p, a: p.refuse(302, location="http://127.0.0.1:9/gone"),
    "truncated JSON": lambda p, a: p.answer(
        Answer(200, {**a.headers, "Content-Length": "9"}, b'{"sha": "')
    ),
    "JSON of another shape": lambda p, a: p.answer(
        Answer(200, {**a.headers, "Content-Length": "4"}, b"null")
    ),
    "a page of a portal": lambda p, a: p.refuse(
        200, b"<html>Please log in.</html>", content_type="text/html"
    ),
    "empty": lambda p, a: p.refuse(200),
}

# fault, which requests it falls on, what is downloaded; the four jobs stand in `commands`
CASES = [
    ("refused", "all", "corpus"),
    ("refused", "body", "archive"),
    ("closed before an answer", "all", "model"),
    ("cut in the headers", "file", "corpus"),
    ("cut after the headers", "body", "model"),
    ("cut in the body", "body", "archive"),
    ("cut in the body", "body", "model"),
    ("cut in the body", "all", "set"),
    ("reset in the body", "body", "corpus"),
    ("no protocol", "all", "set"),
    ("garbled", "body", "corpus"),
    ("garbled", "body", "archive"),
    ("garbled", "body", "set"),
    ("garbled", "body", "model"),
    ("length too long", "body", "corpus"),
    ("length too short", "body", "archive"),
    ("length no number", "file", "set"),
    ("stalls at once", "all", "corpus"),
    ("stalls in the body", "body", "archive"),
    ("stalls in the body", "body", "set"),
    ("slow drip", "body", "corpus"),
    ("500", "all", "model"),
    ("500", "body", "set"),
    ("503", "file", "corpus"),
    ("404", "all", "set"),
    ("404", "file", "archive"),
    ("403", "all", "model"),
    ("429", "file", "corpus"),
    ("redirect loop", "file", "corpus"),
    ("redirect to nowhere", "body", "archive"),
    ("truncated JSON", "api", "set"),
    ("JSON of another shape", "api", "set"),
    ("a page of a portal", "all", "corpus"),
    ("a page of a portal", "all", "set"),
    ("a page of a portal", "all", "model"),
    ("empty", "body", "archive"),
]


def commands(base_model: str, folder: Path) -> dict[str, list[str]]:
    """Job -> the command that downloads it."""
    embedded = ["evaluate", "embedded:mini-bert", "--device", "cpu"]
    return {
        "corpus": [
            "train",
            "simcse_supervised",
            "--out",
            str(folder / "model"),
            "--corpus",
            "nli",
            "--limit",
            "8",
            "--dev",
            "none",
            "--device",
            "cpu",
            "--precision",
            "fp32",
            "--quiet",
            "--set",
            "batch_size=4",
            "--set",
            "max_steps=1",
        ],
        "model": ["evaluate", base_model, "--device", "cpu", "--suite", "Embedded-STS-contrast"],
        "archive": [*embedded, "--suite", "STS16"],
        "set": [*embedded, "--suite", "mteb:BIOSSES"],
    }


@contextmanager
def proxy(folder: Path, upstream: str) -> Iterator[tuple[str, Path]]:
    """Run the proxy in a process of its own; yield its address and control file."""
    control = folder / "control"
    address = folder / "address"
    control.write_text('["", "all"]')
    with subprocess.Popen([sys.executable, __file__, "--serve", upstream, str(folder)]) as server:
        while not address.exists():
            time.sleep(0.05)
        try:
            yield address.read_text(), control
        finally:
            server.terminate()


class QuietServer(ThreadingHTTPServer):
    """A server that prints nothing where the other side gave up."""

    def handle_error(self, *_: object) -> None:
        pass


def serve(upstream: str, folder: Path) -> int:
    handler = type("Breaking", (Proxy,), {"upstream": upstream, "control": str(folder / "control")})
    server = QuietServer(("127.0.0.1", 0), handler)
    ready = folder / "making"
    ready.write_text(f"http://127.0.0.1:{server.server_port}")
    ready.rename(folder / "address")
    server.serve_forever()
    return 0


def lose_patience() -> None:
    """Let this process wait only `PATIENCE` seconds for a byte."""
    from harness.sources.remote import hub

    hub.SILENCE = float(PATIENCE)


def campaign(base_model: str, cases: Sequence[tuple[str, str, str]]) -> int:
    """Print the table, and return how many cases failed."""
    upstream = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    failed = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, proxy(Path(name), upstream) as (address, control):
        folder = Path(name).resolve()
        caches = folder / "caches"
        os.environ |= {
            "HF_ENDPOINT": address,
            "HF_HOME": str(caches / "hf"),
            "HARNESS_CACHE": str(caches / "harness"),
            "HF_HUB_ETAG_TIMEOUT": str(PATIENCE),
            "HF_HUB_DOWNLOAD_TIMEOUT": "1",  # is waited for five times
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        os.environ.pop("HF_HUB_OFFLINE", None)
        from tools.campaigns import forked

        jobs = commands(base_model, folder)
        undisturbed = dict(zip(jobs, forked.import_what_is_used_by(*jobs.values()), strict=True))
        assert all(ended.code == 0 for ended in undisturbed.values()), undisturbed
        print(f"{'fault':<24} {'of':<5} {'job':<8} {'code':>4} {'seconds':>7}", flush=True)
        for fault, where, job in cases:
            for left in (caches, folder / "model", folder / "model.training"):
                shutil.rmtree(left, ignore_errors=True)
            control.write_text(json.dumps([fault, where]))
            begun = time.monotonic()
            ended = forked.run(jobs[job], seconds=300, before=lose_patience)
            took = time.monotonic() - begun
            control.write_text('["", "all"]')
            why = ended.fault((1, 2) if fault != "slow drip" else (0,))
            lines = [line for line in ended.err.splitlines() if line.startswith("harness:")]
            if not why and ended.code and len(lines) != 1:
                why = f"{len(lines)} lines: {ended.err.strip()[-300:]}"
            if not why:
                if fault == "garbled":
                    _remove_named(ended.err, caches)
                shutil.rmtree(folder / "model", ignore_errors=True)
                again = forked.run(jobs[job], before=lose_patience)
                if fault_afterwards := again.fault((0,)):
                    why = f"afterwards: {fault_afterwards}"
                elif _scores(again.out) != _scores(undisturbed[job].out):
                    why = f"afterwards another answer: {again.out[-300:]}"
            message = lines[-1][:150] if lines else ""
            print(
                f"{fault:<24} {where:<5} {job:<8} {ended.code:>4} {took:>7.1f}  {message}",
                flush=True,
            )
            if why:
                print(f"  FELL: {why}", flush=True)
                failed.append(f"{fault} of {where}, {job}: {why}")
    counts = f"tried {len(cases)}, passed {len(cases) - len(failed)}, failed {len(failed)}"
    print(f"{counts}, {time.monotonic() - started:.0f} s")
    print(*failed, sep="\n")
    return len(failed)


def _scores(out: str) -> list[str]:
    """Return the numbers with decimals that a command printed, but for seconds."""
    return re.findall(r"\d+\.\d\d\b(?! s)", out)


def _remove_named(message: str, caches: Path) -> None:
    """Remove the files that a message calls damaged, as a user does."""
    for named in re.findall(rf"{re.escape(str(caches))}[^\s:,;']*", message):
        place = Path(named)
        if place.is_dir():
            shutil.rmtree(place)
        elif place.is_file():
            place.resolve().unlink()
            place.unlink(missing_ok=True)


def main() -> int:
    """See `campaign`; `--serve` is the proxy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base-model", default="google-bert/bert-base-uncased", help="a model of the hub"
    )
    parser.add_argument("--only", default="", help="cases with this in fault, requests and job")
    add_sampling(parser)
    parser.add_argument("--serve", nargs=2, metavar=("UPSTREAM", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve[0], Path(args.serve[1]))
    named = [case for case in CASES if args.only in " ".join(case)]
    cases = sample(named, args.cases, args.seed)
    failed = campaign(args.base_model, cases)
    if not args.only:
        save_count("hub_faults", len(cases), failed, known=len(CASES))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
