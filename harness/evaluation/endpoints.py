"""Models behind an HTTP endpoint that speaks OpenAI's embeddings: vLLM, TEI, Ollama, llama.cpp and
the services of companies. The client is that of the package openai, with its retries and back-off.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from harness.errors import InputError, RunError, root_cause
from harness.evaluation.outside_models import OutsideModel
from harness.evaluation.vector_cache import EmbeddingCache, StoredVectors
from harness.files.hashing import content_id
from harness.files.printable import first_line, redacted
from harness.machine.progress import encoding_bar
from harness.sources.remote.cache_folder import cache_root
from harness.tasks.base import Array

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

KEY = "OPENAI_API_KEY"  # variable of the environment
BATCH = 32  # texts of a request: the most that TEI takes by default
RETRIES = 5  # of a request, with waits of 0.5, 1, 2, 4 and 8 seconds, or as the server says
SECONDS = 120.0  # that an answer may take
_SEGMENT = 1024  # vectors are stored after so many,
_PATIENCE = 5.0  # or so many seconds, or when a request fails
_TOO_LARGE = 413
_VERSION = "1"  # of what is stored


class Endpoint(OutsideModel):
    """`http(s)://HOST/v1#NAME`: the model NAME of the endpoint with that base URL.

    Each text is sent once: its vector is stored on this machine, also where a later request fails.

    Raises:
        InputError: no host, no "#NAME", credentials in the URL, or no package openai.
    """

    timed = False
    retries = RETRIES
    seconds = SECONDS

    def __init__(self, name: str, version: str = "") -> None:
        self.base_url, _, self.model = name.partition("#")
        self.name = name
        self.version = version
        try:
            parts = urlsplit(self.base_url)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:  # brackets that are not closed, a port that is no number
            raise self._no_address() from None
        if parts.username or parts.password or parts.query:
            raise InputError(
                "an address with credentials or parameters would be written into records",
                key="model",
                remedy=f"give the key in the variable {KEY} of the environment",
            )
        if not is_address or not self.model:
            raise self._no_address()
        if importlib.util.find_spec("openai") is None:
            raise InputError(
                f'"{name}" needs the package openai',
                key="model",
                remedy='pip install "sentence-harness[endpoints]"',
            )
        self._client: openai.OpenAI | None = None
        self._stored: StoredVectors | dict[str, Array] | None = None

    def _no_address(self) -> InputError:
        said = f'expected an address as http://HOST:PORT/v1#NAME, not "{self.name}"'
        return InputError(said, key="model")

    @property
    def identity(self) -> str:
        """Its address and name: what is behind them is not known here."""
        return f"{self.name} {self.version}".strip()

    @property
    def client(self) -> openai.OpenAI:
        """The client, made on first use."""
        if self._client is None:
            import openai

            self._client = openai.OpenAI(
                base_url=self.base_url,
                api_key=os.environ.get(KEY) or "none",  # servers of one's own ask for none
                max_retries=self.retries,
                timeout=self.seconds,
            )
        return self._client

    @property
    def stored(self) -> StoredVectors | dict[str, Array]:
        """The vectors of earlier requests."""
        if self._stored is None:
            if self.stores:
                self._stored = _open_store(self.identity)
            else:
                self._stored = {}
        return self._stored

    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return the vectors of texts; those that are not stored are requested.

        Raises:
            InputError: it refuses the request.
            RunError: it gives no answer after all retries, or answers that are none.
        """
        distinct = dict.fromkeys(texts)
        missing = [text for text in distinct if text not in self.stored]
        fresh: dict[str, Array] = {}
        waiting: dict[str, Array] = {}  # not stored yet
        stored_at = time.monotonic()
        with encoding_bar(len(texts), show=False) as advance:
            try:
                for start in range(0, len(missing), BATCH):
                    batch = missing[start : start + BATCH]
                    for text, vector in self._request(batch):
                        self._check_dimension(vector, fresh)
                        fresh[text] = waiting[text] = vector
                    is_old = time.monotonic() - stored_at > _PATIENCE
                    if is_old or len(waiting) >= _SEGMENT:
                        self.stored.update(waiting.items())
                        waiting = {}
                        stored_at = time.monotonic()
                    advance(len(batch))
            finally:
                if waiting:
                    self.stored.update(waiting.items())
        vectors = []
        for text in texts:
            vectors.append(fresh[text] if text in fresh else self.stored[text])
        return np.stack(vectors)

    def _check_dimension(self, vector: Array, fresh: dict[str, Array]) -> None:
        known = next(iter(fresh.values()), None)
        width = getattr(self.stored, "width", None)
        if known is not None:
            width = len(known)
        if width is not None and width != len(vector):
            raise RunError(
                f"{self.name}: gave a vector of {len(vector):,} numbers, but of {width:,} before; "
                "if its model has changed, state another version"
            )

    def _request(self, texts: list[str]) -> Iterable[tuple[str, Array]]:
        """Return each text with its vector; a request that is too large is sent in two halves.

        Raises:
            InputError, RunError: as `vectors_of`.
        """
        import openai

        for attempt in range(self.retries + 1):
            try:
                answer = self.client.embeddings.create(
                    model=self.model,
                    input=[text or " " for text in texts],  # an empty one is refused
                    encoding_format="float",
                )
                return zip(texts, _vectors_of(answer, len(texts)), strict=True)
            except openai.APIStatusError as error:
                if error.status_code == _TOO_LARGE and len(texts) > 1:
                    half = len(texts) // 2
                    first = self._request(texts[:half])
                    second = self._request(texts[half:])
                    return [*first, *second]
                raise self._refusal(error) from None
            except openai.APIConnectionError as error:
                if _is_timeout(error):
                    why = "gave no answer in time"
                else:
                    why = _reason_of(error)
                message = f"{self.name}: {why}, after {self.retries} retries"
                raise RunError(message) from None
            except (ValueError, TypeError, openai.OpenAIError) as error:  # a whole answer, but none
                if attempt == self.retries:
                    why = f"gave an answer that cannot be read ({self._hide(error)})"
                    message = f"{self.name}: {why}, after {self.retries} retries"
                    raise RunError(message) from None
                time.sleep(min(8.0, 0.5 * 2**attempt))
        raise AssertionError("every attempt returns or raises")

    def _refusal(self, error: openai.APIStatusError) -> RunError | InputError:
        why = self._hide(error)
        said = f"{self.name}: answered {error.status_code} ({why})"
        if error.status_code in (401, 403):
            return InputError(said, key="model", remedy=f"set {KEY} in the environment")
        return RunError(said)

    def _hide(self, error: Exception) -> str:
        """Return the first line of an error without the key."""
        text = first_line(error)
        key = os.environ.get(KEY)
        if key:
            text = text.replace(key, "***")
        return redacted(text)[:200]


def _vectors_of(answer: Any, count: int) -> list[Array]:
    """Return the vectors of an answer in the order of its texts.

    Raises:
        ValueError, TypeError: it is no answer to so many texts.
    """
    items = list(getattr(answer, "data", None) or ())
    numbers = sorted(item.index for item in items)
    if numbers != list(range(count)):
        raise ValueError(f"{len(items)} vectors for {count} texts")
    vectors = []
    for item in sorted(items, key=lambda one: one.index):
        vectors.append(np.asarray(item.embedding, dtype=np.float32))
    for vector in vectors:
        is_row = vector.ndim == 1 and vector.size > 0
        if not is_row or not np.isfinite(vector).all():
            raise ValueError("a vector with no numbers")
    return vectors


def _is_timeout(error: Exception) -> bool:
    import openai

    return isinstance(error, openai.APITimeoutError)


def _reason_of(error: Exception) -> str:
    cause = root_cause(error)
    reason = redacted(first_line(cause))
    return f"cannot be reached ({type(cause).__name__}: {reason:.150})"


def _open_store(identity: str) -> StoredVectors | dict[str, Array]:
    """Return the stored vectors of an endpoint; a dictionary where nothing can be stored."""
    try:
        cache = EmbeddingCache(cache_root() / "embeddings")
    except InputError as error:
        log.warning("vectors are not stored: %s", error)
        return {}
    return StoredVectors(cache, content_id([identity, "endpoint", _VERSION], digits=32))
