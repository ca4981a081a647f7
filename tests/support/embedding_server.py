"""A small HTTP server on this machine that speaks OpenAI's embeddings, and fails on request."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSION = 64
Fault = Callable[["Handler", dict[str, Any]], bool]
"""Answers a request in its own way; False where the usual answer is to follow."""


def embed(texts: list[str]) -> np.ndarray:
    """Return counts of hashed words (n, DIMENSION)."""
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            vectors[row, zlib.crc32(word.encode()) % DIMENSION] += 1
    return vectors


class Handler(BaseHTTPRequestHandler):
    """Answers one request; the vectors of an answer are in reverse order."""

    server: EmbeddingServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.paths.append(self.path)
        server.keys.append(self.headers.get("Authorization", ""))
        server.requests.append(body)
        fault = server.faults.pop(0) if server.faults else server.always
        if fault is None or not fault(self, body):
            self.answer(200, usual(body["input"]))

    def answer(self, status: int, content: Any, *, cut: int = 0, **headers: str) -> None:
        """Send JSON; `cut` bytes of it are promised and not sent."""
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw[: len(raw) - cut])
        if cut:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class EmbeddingServer(ThreadingHTTPServer):
    """Attributes:
    requests, paths, keys: of each request: body, path and header Authorization.
    faults: what happens to the next requests; `always` to all after them.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self.faults: list[Fault | None] = []
        self.always: Fault | None = None

    @property
    def address(self) -> str:
        """Base URL, as an endpoint has it."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        """All texts of all requests."""
        return [text for request in self.requests for text in request["input"]]


def usual(texts: list[str], dimension: int = DIMENSION) -> dict[str, Any]:
    """Return a whole answer, in reverse order."""
    vectors = embed(texts)[:, :dimension].tolist()
    data = [
        {"object": "embedding", "index": row, "embedding": vector}
        for row, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "words", "data": data[::-1], "usage": usage}


def busy(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer 429, and that one may come back at once."""
    content = {"error": {"message": "too many requests", "type": "rate_limit"}}
    handler.answer(429, content, retry_after_ms="1")
    return True


def broken(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer 500."""
    handler.answer(500, {}, retry_after_ms="1")
    return True


def cut(handler: Handler, body: dict[str, Any]) -> bool:
    """Close the connection in the middle of an answer."""
    handler.answer(200, usual(body["input"]), cut=50, retry_after_ms="1")
    return True


def no_json(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer something that is none."""
    handler.answer(200, "an error page")
    return True


def too_few(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer without the last vector."""
    handler.answer(200, usual(body["input"][:-1]))
    return True


def shorter(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer vectors of another length."""
    handler.answer(200, usual(body["input"], DIMENSION // 2))
    return True


def slow(handler: Handler, body: dict[str, Any]) -> bool:
    """Wait for a second first."""
    time.sleep(1.0)
    return False


def refuse(handler: Handler, body: dict[str, Any]) -> bool:
    """Answer 401 with the key in the message, as some servers do."""
    key = handler.headers.get("Authorization", "").removeprefix("Bearer ")
    handler.answer(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
    return True


def at_most(count: int) -> Fault:
    """Answer 413 to requests of more texts."""

    def check(handler: Handler, body: dict[str, Any]) -> bool:
        if len(body["input"]) > count:
            handler.answer(413, {"error": {"message": f"batch size > {count}"}})
            return True
        return False

    return check


@contextmanager
def serve() -> Iterator[EmbeddingServer]:
    """Run a server until the block ends."""
    server = EmbeddingServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
