"""Configs: what of them stands in ids."""

from __future__ import annotations

from harness.config import Config, option


class Before(Config):
    rate: float = option(0.1, "a rate")


class After(Before):
    window: int | None = option(None, "a new option; empty: as without it", neutral=None)
    inner: tuple[Before, ...] = option((), "further ones")


def test_a_neutral_option_leaves_ids_alone() -> None:
    assert After().for_id() == {"rate": 0.1, "inner": []}
    assert After(window=3, inner=(After(), Before())).for_id() == {
        "rate": 0.1, "window": 3, "inner": [{"rate": 0.1, "inner": []}, {"rate": 0.1}]
    }  # fmt: skip
    assert Before().for_id() == Before().model_dump()
