"""MTEB's English benchmarks as lists of names: what belongs to them, in which category, and their
averages.

The names are mteb's own. Nothing here needs the library, whose import takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.files.reading import read_toml
from harness.results.record import Score
from harness.tasks.averages import Average, mean_of

PREFIX = "mteb:"
BENCHMARK = "mteb-benchmark:"
EMBEDDED = (
    "Embedded-"  # tasks of mteb's kinds over the embedded data, which mteb does not know by name
)
# The embedded data of those: queries of the natural part share words with their passage, of the
# contrast parts almost none; topics are labelled in the contrast parts.
RETRIEVAL_GROUPS = {"natural": ("d", "e"), "contrast": ("a", "b", "c")}
TOPIC_PARTS = ("a", "b", "c")
SENTENCES_A_TOPIC = 25  # of some 88: enough to tell models apart, at a third of the cost
Categories = Mapping[str, tuple[str, ...]]


def _load_suites() -> dict[str, Categories]:
    """Return the categories of each suite, as the file next to this one lists them."""
    suites: dict[str, Categories] = {}
    for suite, categories in read_toml(Path(__file__).with_suffix(".toml")).items():
        suites[suite] = {category: tuple(names) for category, names in categories.items()}
    return suites


MTEB_SUITES: dict[str, Categories] = _load_suites()
EN_V1 = MTEB_SUITES["mteb-en-v1"]
EN_V2 = MTEB_SUITES["mteb-en-v2"]

# Which part of a multilingual set the English benchmarks take.
_MULTILINGUAL = """
    AmazonCounterfactualClassification AmazonReviewsClassification MassiveIntentClassification
    MassiveScenarioClassification MTOPDomainClassification MTOPIntentClassification STS22 STS22.v2
"""
ENGLISH = {**dict.fromkeys(_MULTILINGUAL.split(), "en"), "STS17": "en-en"}
SPLITS = {"MSMARCO": "dev"}  # all others of the benchmarks: test

# mteb 1.x averaged each text's correlation together with its p-value, so SummEval's number in every
# v1 table is (mean rho + mean p) / 2. mteb keeps that defect in "SummEval" and corrects it in a
# task of its own.
SUMMEVAL = "SummEval"
SUMMEVAL_METRIC = "summeval_v1"
SUMMEVAL_CORRECTED = "SummEvalSummarization.v2"


# What people score in mteb's main metric, where it was published: embeddings-benchmark/results, the
# model "Human", 2025-09-25 (SICK-R and toxic conversations: v1.0). Of STS22 the English part.
HUMAN = {
    "HUMEArxivClusteringP2P": 0.4922,
    "HUMECore17InstructionReranking": 0.8522,
    "HUMEEmotionClassification": 0.4583,
    "HUMERedditClusteringP2P": 0.6881,
    "HUMERobust04InstructionReranking": 0.8845,
    "HUMESICK-R": 0.8265,
    "HUMESTS12": 0.9121,
    "HUMESTS22": 0.7836,
    "HUMESTSBenchmark": 0.8035,
    "HUMEToxicConversationsClassification": 0.7333,
    "HUMETweetSentimentExtractionClassification": 0.8444,
    "HUMEWikiCitiesClustering": 0.9757,
}

# Version 1 printed the average precision by cosine; the library's own number is the best of five
# similarities.
PAIRS_METRIC_V1 = "cosine_ap"


def names_of(categories: Categories) -> tuple[str, ...]:
    """All names of a benchmark, category by category."""
    return tuple(name for names in categories.values() for name in names)


def mteb_scores(scores: Iterable[Score], suite: str = "") -> dict[str, Score]:
    """The score of each mteb task that the table of `suite` prints, by mteb's name of the task
    (with its subset, if one was requested). Without a suite: mteb's main score, SummEval's with the
    defect of version 1.
    """
    printed: dict[str, Score] = {}
    for score in scores:
        if score.task.startswith(PREFIX):
            name = score.task.removeprefix(PREFIX)
            if name not in printed or (suite == "mteb-en-v1" and score.metric == PAIRS_METRIC_V1):
                printed[name] = score
    return printed


def mteb_values(scores: Iterable[Score], suite: str = "") -> dict[str, float]:
    """Those of `mteb_scores`, in percent."""
    values = {}
    for name, score in mteb_scores(scores, suite).items():
        values[name] = 100 * score.value
    return values


def mteb_averages(
    scores: Iterable[Score],
    suite: str,
    categories: Categories | None = None,
) -> tuple[dict[str, Average], Average]:
    """The average of each category of a suite, and that over all its data sets. One that lacks a
    set has no value.

    Args:
        categories: of a suite that is not of `MTEB_SUITES`.
    """
    if categories is None:
        categories = MTEB_SUITES[suite]
    values = mteb_values(scores, suite)
    return {name: mean_of(values, tasks) for name, tasks in categories.items()}, mean_of(
        values, names_of(categories)
    )
