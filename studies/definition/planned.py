"""Which trials a study is to have, before any of them is run."""

from __future__ import annotations

import random
from typing import Any

from studies.definition.space import Space
from studies.definition.study import ENUMERATED, Study


def planned_trials(study: Study, space: Space) -> list[dict[str, Any]]:
    """The fixed values of each trial: whole configurations for grids and defaults, the value of `by`, or nothing."""
    if study.sampler in ENUMERATED:
        points = space.points()
        if study.sampler == "brute_force":
            random.Random(study.sampler_seed).shuffle(points)  # noqa: S311 - an order, not a secret
            points = points[: study.trials]
        return [dict(point) for point in points]
    assert study.trials is not None
    turns: list[dict[str, Any]] = [{}]
    if study.by is not None:  # taking turns, so that a study that was stopped has all values to the same extent
        turns = [{study.by: value} for value in space[study.by].values()]
    planned = [dict(turn) for _ in range(study.trials) for turn in turns]
    if study.defaults_first:
        planned[0] = space.defaults() | planned[0]
    return planned
