"""Points on files and models of other tools: filters of lm-evaluation-harness (filters), values that
mteb leaves out (nulls), local models of mteb (local), encoders of T5 and Funnel (kinds), files of
sentencepiece (pieces), cross-encoders (pairs-of-texts), tables of spreadsheets as tasks
(spreadsheets), and tables in comparisons (tables).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harness.encoder.foreign import open_model
from harness.errors import InputError
from harness.sources import corpus_of
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_models import (
    SOURCE,
    TEXTS,
    is_equal,
    save_encoder,
    save_plain,
    their_vectors,
    update,
)
from tools.campaigns.reported_models import is_refused as is_error
from tools.campaigns.reported_scores import is_refused, mteb_result, write

# ----------------------------------------------------------------------------- logs of other tools


def _samples(room: Path, row: str, filters: tuple[str, ...], **more: Any) -> Path:
    """Write a log of lm-evaluation-harness: eight samples, each once for each filter."""
    lines: list[dict[str, Any]] = []
    for name in filters:
        for number in range(8):
            one = {"doc_id": number, "metrics": ["exact_match"], "exact_match": number % 2}
            lines.append({**one, "filter": name, **more})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return write(room, f"org__{row}/samples_gsm8k_2026.jsonl", text)


@point("filters")
def filters_of_lm_eval(folder: Path, room: Path) -> Iterator[Finding]:
    """Samples that a log holds once for each filter are a task for each."""
    from reports.read.score_tables import read_scores

    two = ("strict-match", "flexible-extract")
    for name, of_row, expected in (
        ("two filters", {"a": two, "b": two}, [f"gsm8k ({one})" for one in two]),
        ("three filters", {"a": (*two, "none"), "b": two}, [*two, "none"]),
        ("one filter", {"a": ("none",), "b": ("none",)}, ["gsm8k"]),
        ("one filter in one row", {"a": two, "b": two[:1]}, [f"gsm8k ({one})" for one in two]),
        ("a filter with a line break", {"a": ("x\ny", "z"), "b": ("z",)}, ["x", "z"]),
    ):
        place = room / name
        for row, filters in of_row.items():
            _samples(place, row, filters)
        try:
            tasks = sorted(set(read_scores(place)["task"]))
        except InputError as error:
            tasks = [str(error)]
        ok = len(tasks) == len(expected) and all(
            wanted in task for wanted, task in zip(sorted(expected), tasks, strict=False)
        )
        yield Finding(name, str(sorted(expected)), str(tasks)[:300], ok)
    _samples(room / "twice", "a", ("x", "x"))
    yield is_refused("a filter twice", room / "twice", "samples_gsm8k_2026.jsonl")


@point("nulls")
def values_that_mteb_leaves_out(folder: Path, room: Path) -> Iterator[Finding]:
    """A null is refused with its file and key."""
    for name, changes, words in (
        ("main_score", {"score": None}, ("main_score",)),
        ("scores", {"scores": None}, ("scores",)),
        ("a split", {"scores": {"test": None}}, ("scores",)),
        ("a part", {"scores": {"test": [None]}}, ("scores",)),
        ("task_name", {"task_name": None}, ("task_name",)),
    ):
        place = room / name
        mteb_result(place, "org__a", **changes)
        mteb_result(place, "org__b", **changes)
        yield is_refused(f"{name} is null", place, "STS12.json", *words)
    write(room, "whole/org__a/revision/STS12.json", "null")
    yield is_refused("the file is null", room / "whole")


@point("local")
def local_models_of_mteb(folder: Path, room: Path) -> Iterator[Finding]:
    """Models without a name are rows named by their folders."""
    from reports.read.score_tables import read_scores

    def rows_of(*sources: Path) -> list[str]:
        return sorted(set(read_scores([str(one) for one in sources])["row"]))

    for name, places in {
        "two labs": ("lab one/results", "lab two/results"),
        "two folders of one name": ("one/x/results", "two/x/results"),
        "one in the other": ("out", "out/again/results"),
    }.items():
        sources = [room / name / place for place in places]
        for number, source in enumerate(sources):
            score = 0.6 + number / 10
            part = {"cosine_spearman": score, "cosine_pearson": 0.1}
            row = "no_model_name__available"
            mteb_result(source, row, score=score, part=part, at="no_revision")
        if name == "one in the other":
            sources = sources[:1]
        try:
            found = rows_of(*sources)
        except InputError as error:
            found = [str(error)]
        yield Finding(name, "two rows", str(found)[:300], len(found) == 2)


# ---------------------------------------------------------------------------------------- models


def _t5(dtype: torch.dtype, **shape: Any) -> Callable[[Path], Path]:
    def save(place: Path) -> Path:
        from transformers import T5Config, T5EncoderModel

        torch.manual_seed(1)
        sizes = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
        config = T5Config(vocab_size=16000, **{**sizes, **shape})
        plain = place.with_name(f"{place.name} plain")
        T5EncoderModel(config).to(dtype).save_pretrained(plain)
        AutoTokenizer.from_pretrained(SOURCE).save_pretrained(plain)
        return save_encoder(place, plain, modules.Pooling(32, "mean"))

    return save


def _funnel(sizes: list[int]) -> Callable[[Path], Path]:
    def save(place: Path) -> Path:
        from transformers import FunnelBaseModel, FunnelConfig

        torch.manual_seed(1)
        config = FunnelConfig(
            vocab_size=16000, block_sizes=sizes, d_model=32, n_head=2, d_head=16, d_inner=48
        )
        FunnelBaseModel(config).save_pretrained(place)
        AutoTokenizer.from_pretrained(SOURCE).save_pretrained(place)
        return place

    return save


@point("kinds")
def models_of_other_kinds(folder: Path, room: Path) -> Iterator[Finding]:
    """Encoders of T5 and Funnel have the vectors of sentence-transformers."""
    for name, save in {
        "T5": _t5(torch.float32),
        "T5 in half precision": _t5(torch.float16),
        "T5 with gates": _t5(torch.float32, feed_forward_proj="gated-gelu"),
        "Funnel": _funnel([1, 1]),
        "Funnel of three blocks": _funnel([2, 1, 1]),
        "Funnel of one block": _funnel([2]),
    }.items():
        place = save(room / name)

        def theirs(place: Path = place) -> Any:
            if (place / "modules.json").exists():
                return their_vectors(place)
            reader = modules.Transformer(str(place))
            both = [reader, modules.Pooling(32, "mean")]
            return SentenceTransformer(modules=both, device="cpu").encode(TEXTS)

        yield is_equal(name, theirs, lambda place=place: open_model(str(place)).encode(TEXTS))


@point("pieces")
def files_of_sentencepiece(folder: Path, room: Path) -> Iterator[Finding]:
    """A tokenizer that cannot be read without sentencepiece names what to install."""
    is_there = find_spec("sentencepiece") is not None
    for kind, tokenizer, file in (
        ("xlm-roberta", "XLMRobertaTokenizer", "sentencepiece.bpe.model"),
        ("albert", "AlbertTokenizer", "spiece.model"),
        ("camembert", "CamembertTokenizer", "sentencepiece.bpe.model"),
    ):
        place = save_plain(room / kind, kind)
        for one in place.glob("tokenizer*"):
            one.unlink()
        (place / file).write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
        write(place, "tokenizer_config.json", json.dumps({"tokenizer_class": tokenizer}))
        found = is_error(kind, lambda place=place: open_model(str(place)))
        ok = found.ok and (is_there or "pip install sentencepiece" in found.seen)
        yield Finding(kind, "one line with pip install sentencepiece", found.seen[-160:], ok)


@point("pairs-of-texts")
def models_that_score_pairs(folder: Path, room: Path) -> Iterator[Finding]:
    """A cross-encoder has no vector of a sentence: refused."""
    plain = save_plain(room / "plain")

    def with_head(place: Path, labels: int) -> Path:
        model = AutoModelForSequenceClassification.from_pretrained(plain, num_labels=labels)
        model.save_pretrained(place)
        AutoTokenizer.from_pretrained(SOURCE).save_pretrained(place)
        return place

    library = room / "library"
    CrossEncoder(str(plain), num_labels=1, device="cpu").save(str(library))
    old = with_head(room / "old", 3)
    update(old / "config.json", sbert_ce_default_activation_function="torch.nn.Identity")
    places = {"of the library": library, "one label": with_head(room / "one", 1), "old": old}
    for name, place in places.items():
        yield is_error(name, lambda place=place: open_model(str(place)))


# ---------------------------------------------------------------------------------------- tables


@point("spreadsheets")
def tables_of_spreadsheets(folder: Path, room: Path) -> Iterator[Finding]:
    """Files as spreadsheets write them are read, or refused in one line."""
    from harness.tasks.catalogue import resolve_tasks

    head = "sentence1,sentence2,score"
    rows = [f"A dog runs {n} miles.,A dog walks {n * n} miles.,{n % 5}" for n in range(40)]
    plain = "\r\n".join([head, *rows]) + "\r\n"
    empty_rows = plain + ",,\r\n" * 3
    read = {
        "a byte-order mark": ("\ufeff" + plain).encode(),
        "semicolons": plain.replace(",", ";").encode(),
        "tabs": plain.replace(",", "\t").encode(),
        "empty rows at the end": empty_rows.encode(),
        "columns beside": "\r\n".join(f"{n},{line}" for n, line in enumerate([head, *rows])).encode(),
    }  # fmt: skip
    refused = {
        "UTF-16": plain.encode("utf-16"),
        "a comma in a number": plain.replace(",4\r\n", ',"4,5"\r\n').encode(),
        "an error of a formula": plain.replace(",3\r\n", ",#DIV/0!\r\n").encode(),
        "no header": "\r\n".join(rows).encode(),
        "a workbook": b"PK\x03\x04" + b"\0" * 200,
    }
    for name, content in read.items():
        file = write(room, f"{name}.csv", content)
        try:
            seen = f"{len(resolve_tasks([str(file)])[0].texts())} texts"
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
        yield Finding(name, "80 texts", seen[:200], seen == "80 texts")
    for name, content in refused.items():
        suffix = "xlsx" if name == "a workbook" else "csv"
        file = write(room, f"{name}.{suffix}", content)
        yield is_error(name, lambda file=file: resolve_tasks([str(file)])[0].texts())


@point("tables")
def tables_in_comparisons(folder: Path, room: Path) -> Iterator[Finding]:
    """Tables of libraries are suites, dev sets and text of a comparison, or one line."""
    import datasets
    import polars

    import harness

    pairs = {
        "sentence1": [f"A dog runs {n} miles." for n in range(40)],
        "sentence2": [f"A dog walks {n * n} miles." for n in range(40)],
        "score": [n % 5 for n in range(40)],
    }
    base = {"methods": [{"method": "pooling"}]}
    quiet: dict[str, Any] = {"tracking_uri": "none", "formats": []}

    def compared(**keys: Any) -> str:
        place = room / f"work{len(list(room.iterdir()))}"
        found = harness.compare(base, workdir=place, dev=None, **quiet, **keys)
        return f"{found.records[0].scores[0].n} examples"

    makers: dict[str, Callable[[Any], Any]] = {
        "pandas": pd.DataFrame,
        "polars": polars.DataFrame,
        "datasets": datasets.Dataset.from_dict,
    }
    for name, make in makers.items():
        try:
            seen = compared(suites=make(pairs))
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
        yield Finding(f"{name} as suite", "40 examples", seen[:200], seen == "40 examples")
        table = make({"text": pairs["sentence1"]})
        yield is_equal(
            f"{name} as text",
            lambda: pairs["sentence1"],
            lambda table=table: list(corpus_of(table, "sentences")),
        )
    for name, value in {"a set": {"a", "b"}, "numbers": [1, 2], "bytes": b"abc"}.items():
        for key in ("suites", "corpus", "dev"):
            keys = {"suites": ["Embedded-STS-contrast"], key: value}
            yield is_error(
                f"{name} as {key}",
                lambda keys=keys: harness.compare(base, workdir=room / "no", **quiet, **keys),
            )
