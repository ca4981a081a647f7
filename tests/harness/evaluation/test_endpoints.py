"""Endpoints that speak OpenAI's embeddings, on a real server of this machine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from harness.errors import HarnessError, InputError, RunError
from harness.evaluation.endpoints import BATCH, KEY, Endpoint
from tests.support import embedding_server
from tests.support.embedding_server import EmbeddingServer, embed

# Found, not imported: that takes a second, also of the workers that run none of these tests.
pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="openai is not installed")

TEXTS = [f"sentence {number} of the test" for number in range(2 * BATCH + 5)]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    """A server, and an empty cache of vectors."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv(KEY, raising=False)
    with embedding_server.serve() as running:
        yield running


def endpoint(server: EmbeddingServer, version: str = "") -> Endpoint:
    """The model of a server; it gives up soon."""
    found = Endpoint(f"{server.address}#words", version)
    found.retries = 1
    found.seconds = 10.0
    return found


def test_vectors_are_those_of_their_texts_and_each_text_is_sent_once(
    server: EmbeddingServer,
) -> None:
    texts = [*TEXTS, TEXTS[0]]
    first = endpoint(server).encode(texts)
    assert (first == embed(texts)).all()
    assert sorted(server.texts) == sorted(TEXTS)
    assert set(server.paths) == {"/v1/embeddings"}
    assert all(r["encoding_format"] == "float" for r in server.requests)
    assert all(r["model"] == "words" for r in server.requests)
    count = len(server.requests)
    assert (endpoint(server).encode(texts) == first).all()
    assert len(server.requests) == count, "the vectors are stored"
    endpoint(server, version="2").encode(TEXTS[:1])
    assert len(server.requests) == count + 1, "of another version there are none"


def test_one_text_and_an_empty_one(server: EmbeddingServer) -> None:
    model = endpoint(server)
    assert model.encode("a word").shape == (embedding_server.DIMENSION,)
    assert (model.encode(["", "a word"]) == embed(["", "a word"])).all()
    assert "" not in server.texts, "servers refuse empty texts"


@pytest.mark.parametrize("fault", ["busy", "cut", "no_json", "too_few"])
def test_a_passing_fault_is_retried(server: EmbeddingServer, fault: str) -> None:
    server.faults = [getattr(embedding_server, fault)]
    assert (endpoint(server).encode(TEXTS[:3]) == embed(TEXTS[:3])).all()
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", ["busy", "cut", "no_json", "too_few"])
def test_a_lasting_fault_is_one_line(server: EmbeddingServer, fault: str) -> None:
    server.always = getattr(embedding_server, fault)
    with pytest.raises(RunError) as caught:
        endpoint(server).encode(TEXTS[:3])
    (line,) = str(caught.value).splitlines()
    assert server.address in line
    assert len(server.requests) == 2


def test_a_slow_answer_is_requested_again(server: EmbeddingServer) -> None:
    server.faults = [embedding_server.slow]
    model = endpoint(server)
    model.seconds = 0.3
    assert (model.encode(TEXTS[:3]) == embed(TEXTS[:3])).all()
    assert len(server.requests) == 2


def test_vectors_before_a_failure_are_stored(server: EmbeddingServer) -> None:
    server.faults = [None]
    server.always = embedding_server.shorter
    with pytest.raises(RunError) as caught:
        endpoint(server).encode(TEXTS)
    assert {"32", "64"} <= set(re.findall(r"\d+", str(caught.value)))
    server.always = None
    server.requests.clear()
    assert (endpoint(server).encode(TEXTS) == embed(TEXTS)).all()
    assert len(server.texts) == len(TEXTS) - BATCH


def test_vectors_of_another_length_than_the_stored_ones(server: EmbeddingServer) -> None:
    endpoint(server).encode(TEXTS[:1])
    server.always = embedding_server.shorter
    with pytest.raises(RunError):
        endpoint(server).encode(TEXTS[1:2])


def test_a_request_that_is_too_large_is_sent_in_parts(server: EmbeddingServer) -> None:
    server.always = embedding_server.at_most(5)
    assert (endpoint(server).encode(TEXTS) == embed(TEXTS)).all()
    answered = [text for r in server.requests if len(r["input"]) <= 5 for text in r["input"]]
    assert sorted(answered) == sorted(TEXTS)


def test_the_key_is_sent_and_stays_secret(
    server: EmbeddingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = "my own key quartz-4711 of no known form"
    monkeypatch.setenv(KEY, key)
    caplog.set_level(logging.DEBUG)
    endpoint(server).encode(TEXTS[:1])
    assert server.keys == [f"Bearer {key}"]
    server.always = embedding_server.refuse
    with pytest.raises(InputError) as caught:
        endpoint(server).encode(TEXTS[1:2])
    assert caught.value.key == "model"
    assert KEY in str(caught.value.remedy)
    assert "quartz-4711" not in str(caught.value)
    assert "quartz-4711" not in caplog.text
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert written
    assert not any(b"quartz-4711" in content for content in written)


def test_nobody_there(server: EmbeddingServer) -> None:
    address = server.address
    server.shutdown()
    server.server_close()
    model = Endpoint(f"{address}#words")
    model.retries = 0
    with pytest.raises(RunError) as caught:
        model.encode(TEXTS[:1])
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name",
    [
        "http://user:secret@localhost/v1#words",
        "https://localhost/v1?key=secret#words",
        "http://localhost:8080/v1",
        "http:///v1#words",
        "https://[::1#words",
        "http://localhost:port/v1#words",
        "http://localhost:99999999/v1#words",
    ],
)
def test_addresses_that_are_none(name: str) -> None:
    with pytest.raises(InputError) as caught:
        Endpoint(name)
    assert caught.value.key == "model"
    assert "secret" not in str(caught.value)


def test_vectors_are_not_stored_on_request(server: EmbeddingServer, tmp_path: Path) -> None:
    model = endpoint(server)
    model.stores = False
    assert np.isfinite(model.encode(TEXTS[:2])).all()
    assert not list(tmp_path.rglob("*.safetensors"))


def test_every_error_is_for_the_user(server: EmbeddingServer) -> None:
    server.always = embedding_server.broken
    with pytest.raises(HarnessError):
        endpoint(server).encode(TEXTS[:1])
