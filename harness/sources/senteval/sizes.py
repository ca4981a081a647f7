"""How many examples each part of SentEval's sets has, so that a file cut at the end of a line does not score unseen.

From SemEval's and SentEval's own descriptions (Conneau and Kiela 2018; SNLI: Bowman et al. 2015).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.sources.senteval.labelled import PROBING

_SICK = {"train": 4500, "dev": 500, "test": 4927}
SIZES: dict[str, dict[str, int]] = {  # data set -> subset or part -> scored pairs or examples
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {
        "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750,
    },
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "STS16": {
        "answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209,
    },
    "STS-B": {"train": 5749, "dev": 1500, "test": 1379},
    "SICK-R": _SICK,
    "SICK-E": _SICK,
    "MR": {"all": 5331 + 5331},
    "CR": {"all": 2407 + 1368},
    "SUBJ": {"all": 5000 + 5000},
    "MPQA": {"all": 3312 + 7294},
    "SST2": {"train": 67_349, "dev": 872, "test": 1821},
    "SST5": {"train": 8544, "dev": 1101, "test": 2210},
    "TREC": {"train": 5452, "test": 500},
    "MRPC": {"train": 4076, "test": 1725},
    "SNLI": {"train": 549_367, "dev": 9842, "test": 9824},
    **{task: {"train": 100_000, "dev": 10_000, "test": 10_000} for task in PROBING},
}  # fmt: skip


def unusual_sizes(data: str, counts: Mapping[str, int]) -> list[str]:
    """One sentence about the parts (or subsets) of `data` whose count is not the published one; none where all are."""
    known = SIZES.get(data, {})
    others = [f"{n:,} in {part} (not {known[part]:,})" for part, n in counts.items() if n != known.get(part, n)]
    if not others:
        return []
    return [
        f"examples: {', '.join(others)}; files cut short or of another edition, not comparable with published scores"
    ]
