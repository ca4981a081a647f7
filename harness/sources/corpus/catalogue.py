"""Corpora by public names: the data set of the hub behind each, how much it is, and whose training text it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SIMCSE = "hf://datasets/princeton-nlp/datasets-for-simcse/"
_NLI_LICENCE = "SNLI: CC BY-SA 4.0; MultiNLI: mostly the OANC's (free), parts CC BY and CC BY-SA"


@dataclass(frozen=True)
class NamedCorpus:
    """A corpus that experiment files name.

    Attributes:
        uri: what the name stands for. kind: of its items. columns: role -> column, see `load_corpus`.
        items: how many there are, once empty ones are left out. size: of the download.
        paper: where the text comes from. purpose: whose training text it is, and what differs from theirs.
        parts: names of `?parts=` -> splits of the data set; taken when none is named: `default_parts`, or all of them.
        labels: names of whole-number labels, for data sets that do not carry them.
        untried: we had no copy of the data set to read, only a made file of the same layout.
    """

    uri: str
    kind: str
    items: int
    size: str
    licence: str
    paper: str
    purpose: str
    columns: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    default_parts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    untried: bool = False


CATALOGUE: dict[str, NamedCorpus] = {
    "wiki1m": NamedCorpus(
        uri=_SIMCSE + "wiki1m_for_simcse.txt",
        kind="sentences",
        items=1_000_000,
        size="0.13 GB",
        licence="Wikipedia: CC BY-SA",
        paper="Gao, Yao & Chen, EMNLP 2021",
        purpose="a million sentences of the English Wikipedia: the training text of SimCSE, SCD and the "
        "non-contrastive comparison",
    ),
    "nli": NamedCorpus(
        uri=_SIMCSE + "nli_for_simcse.csv",
        kind="pairs",
        items=275_601,
        size="0.05 GB",
        licence=_NLI_LICENCE,
        paper="Bowman et al., EMNLP 2015; Williams et al., NAACL 2018; triplets by Gao, Yao & Chen, EMNLP 2021",
        purpose="premise, entailed and contradicting sentence of SNLI and MultiNLI: supervised SimCSE, and the NLI "
        "pairs of the non-contrastive comparison",
        columns={"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
    ),
    "nli-sentences": NamedCorpus(
        uri=_SIMCSE + "nli_for_simcse.csv",
        kind="sentences",
        items=826_803,
        size="0.05 GB",
        licence=_NLI_LICENCE,
        paper="as nli",
        purpose="the three sentences of each triplet of nli, one after another, repeats kept: stands for the "
        "unlabelled NLI text of IS-BERT, BERT-flow, BERT-whitening and self-guided training on NLI, who take both sets "
        "whole",
        columns={"text": "sent0+sent1+hard_neg"},
    ),
    "nli-labelled": NamedCorpus(
        uri="hf://datasets/sentence-transformers/all-nli?config=pair-class",
        kind="pairs",
        items=942_069,
        size="0.07 GB",
        licence=_NLI_LICENCE,
        paper="Bowman et al., EMNLP 2015; Williams et al., NAACL 2018",
        purpose="premise, hypothesis and label (entailment, neutral, contradiction) of SNLI and MultiNLI: the "
        "classification that SBERT and InferSent learn from",
        columns={"anchor": "premise", "positive": "hypothesis", "label": "label"},
        parts={"train": "train", "dev": "dev", "test": "test"},
        default_parts=("train",),
        labels=("entailment", "neutral", "contradiction"),
        untried=True,
    ),
    "stsb-sentences": NamedCorpus(
        uri="hf://datasets/mteb/stsbenchmark-sts",
        kind="sentences",
        items=17_256,
        size="0.5 MB",
        licence="scores CC BY-SA 4.0; texts vary",
        paper="Cer et al., SemEval 2017",
        purpose="both sentences of every pair of STS-B, as written, without scores: 17,256 with repeats (train 11,498, "
        "dev 3,000, test 2,758), 15,457 without; the text that self-guided contrastive learning trains on",
        columns={"text": "sentence1+sentence2"},
        parts={"train": "train", "dev": "validation", "test": "test"},
    ),
    "wikiauto": NamedCorpus(
        uri="hf://datasets/GEM/wiki_auto_asset_turk?config=default&revision=refs/convert/parquet",
        kind="pairs",
        items=483_801,
        size="0.1 GB",
        licence="Wikipedia: CC BY-SA",
        paper="Jiang et al., ACL 2020",
        purpose="complex and simple sentence of aligned Wikipedia articles: the WikiAuto pairs of the non-contrastive "
        "comparison, whose paper states neither their number nor their part",
        columns={"anchor": "source", "positive": "target"},
        parts={"train": "train", "dev": "validation"},
        default_parts=("train",),
    ),
    "openwebtext": NamedCorpus(
        uri="hf://datasets/Skylion007/openwebtext",
        kind="documents",
        items=8_013_769,
        size="40 GB, streamed: only what is kept lies on the disk",
        licence="packaging CC0; the web pages keep their owners' rights",
        paper="Gokaslan & Cohen 2019",
        purpose="web pages; DeCLUTR trains on its 495,243 documents of at least 2,048 tokens: "
        "openwebtext?min_tokens=2048&tokenizer=FacebookAI/roberta-base, with a limit where fewer will do",
    ),
}
