"""Who watches an encoding is told of each batch, and may end it."""

from __future__ import annotations

import pytest

from harness.encoder.foreign import ForeignEncoder, open_model
from harness.encoder.model import Encoder
from harness.errors import StopRequested
from harness.machine.progress import watch_encoding
from harness.sources import resolve_model

TEXTS = [f"Sentence {number} is here." for number in range(200)]


def _models() -> list[Encoder | ForeignEncoder]:
    from sentence_transformers import SentenceTransformer

    own = open_model("embedded:mini-bert")
    return [
        own,
        ForeignEncoder(SentenceTransformer(str(resolve_model("embedded:mini-bert"))), "mean"),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_each_batch_is_told_and_a_stop_ends_the_encoding(which: int) -> None:
    model = _models()[which]
    told: list[tuple[int, int]] = []
    with watch_encoding(lambda done, total: told.append((done, total))):
        model.encode(TEXTS, batch_size=16)
    assert len(told) >= 2
    assert told == sorted(told)
    assert {total for _, total in told} == {200}
    assert told[-1][0] >= 200

    count = 0

    def stop(done: int, total: int) -> None:
        nonlocal count
        count += 1
        raise StopRequested

    with watch_encoding(stop), pytest.raises(StopRequested):
        model.encode(TEXTS, batch_size=16)
    assert count == 1
    count_before = len(told)
    model.encode(TEXTS, batch_size=16)  # nobody watches
    assert len(told) == count_before
