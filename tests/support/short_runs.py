"""Real comparisons and studies made short: pairs cut to a few, no report drawn where no test reads
it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest


def few_pairs(patch: pytest.MonkeyPatch, count: int = 20) -> None:
    """Cut every set of scored pairs to about `count`, the first ones of each subset: encoding all
    takes longest.
    """
    from harness.sources import pair_sets

    read = pair_sets.load_sts

    def few(*args: Any, **more: Any) -> pair_sets.PairSet:
        pairs = read(*args, **more)
        n = max(3, count // len(pairs.subsets))
        subsets = []
        for s in pairs.subsets:
            first = s.sentences1[:n]
            second = s.sentences2[:n]
            subsets.append(replace(s, sentences1=first, sentences2=second, gold=s.gold[:n]))
        return replace(pairs, subsets=tuple(subsets))

    patch.setattr("harness.sources.pair_sets.load_sts", few)
    patch.setattr("harness.sources.load_sts", few)


def no_report(patch: pytest.MonkeyPatch) -> None:
    """Draw no figure and write no report, neither of comparisons nor of studies."""
    patch.setattr("reports.build.build_comparison", lambda *_, **__: {})
    patch.setattr("reports.studies.study_figures.all_figures", lambda *_: ([], []))
