"""Where text comes from: the embedded suite, hub data sets, SentEval's files, MTEB's STS sets and
local files.
"""

from harness.sources.corpus.corpus import Corpus, Pair, TrainingText, corpus_of, load_corpus
from harness.sources.corpus.selected_texts import Kind
from harness.sources.embedded import EMBEDDED_MODELS, embedded_rows, resolve_model
from harness.sources.pair_sets import PairSet, Subset, load_sts

__all__ = [
    "EMBEDDED_MODELS",
    "Corpus",
    "Kind",
    "Pair",
    "PairSet",
    "Subset",
    "TrainingText",
    "corpus_of",
    "embedded_rows",
    "load_corpus",
    "load_sts",
    "resolve_model",
]
