"""Points on models and text that are not what was meant (f): adapters, prompts, starts, precision,
segments, tables, frames, padding, empty rows; and hostile folders of models.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer

import harness
from harness.encoder.foreign import open_model
from harness.errors import InputError
from harness.evaluation.any_model import open_for_evaluation
from harness.sources import corpus_of, load_corpus
from harness.sources.embedded import EMBEDDED_MODELS, model_fingerprint
from methods.pretrained import Pretrained, PretrainedConfig
from tools.campaigns.reported import Finding, point

TEXTS = ["A dog runs.", "It rains in the hills, and nobody is outside.", "Chess is a game."]
SOURCE = EMBEDDED_MODELS["mini-bert"]
TRAIN = {"max_steps": 1, "batch_size": 2, "pooling": "mean", "learning_rate": 1e-9}


def is_refused(name: str, act: Callable[[], Any]) -> Finding:
    """Finding: an InputError of one line."""
    try:
        act()
    except InputError as error:
        return Finding(name, "one line", str(error)[:200], "\n" not in str(error))
    except Exception as error:
        return Finding(name, "one line", f"{type(error).__name__}: {error}"[:200], ok=False)
    return Finding(name, "one line", "accepted", ok=False)


def is_equal(name: str, expected: Callable[[], Any], seen: Callable[[], Any]) -> Finding:
    """Finding: two values are equal, vectors up to rounding."""
    try:
        a, b = expected(), seen()
    except Exception as error:
        return Finding(name, "equal", f"{type(error).__name__}: {error}"[:200], ok=False)
    if isinstance(a, np.ndarray):
        apart = float(np.abs(a - np.asarray(b)).max())
        return Finding(name, "distance below 1e-5", f"{apart:.1e}", apart < 1e-5)
    return Finding(name, str(a)[:100], str(b)[:100], a == b)


def save_plain(folder: Path, kind: str = "bert", **shape: Any) -> Path:
    """Save a small random transformer with the tokenizer of the embedded model."""
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"intermediate_size": 48, "vocab_size": 16000, "max_position_embeddings": 64}
    config = AutoConfig.for_model(kind, **{**sizes, **more, **shape})
    AutoModel.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(SOURCE).save_pretrained(folder)
    return folder


def save_encoder(folder: Path, plain: Path, *after: Any, length: int = 64, **options: Any) -> Path:
    """Save a sentence encoder of a transformer and more modules."""
    reader = modules.Transformer(str(plain), max_seq_length=length, model_kwargs=options)
    SentenceTransformer(modules=[reader, *after], device="cpu").save(str(folder))
    return folder


def their_vectors(folder: Path, texts: list[str] = TEXTS, **options: Any) -> np.ndarray:
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    return np.asarray(model.encode(texts, **options))


def update(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def save_adapter(folder: Path, base: Path, **options: Any) -> Path:
    import peft

    model = AutoModel.from_pretrained(base)
    torch.manual_seed(2)
    kind = options.pop("kind", peft.LoraConfig)
    settings = {"target_modules": ["query", "value"], **options}
    peft.get_peft_model(model, kind(**settings)).save_pretrained(folder)
    update(folder / "adapter_config.json", base_model_name_or_path=str(base))
    return folder


@point("f-adapters")
def adapters(folder: Path, room: Path) -> Iterator[Finding]:
    import peft

    plain = save_plain(room / "plain")
    lora = {"r": 4, "lora_alpha": 32, "init_lora_weights": False}
    kinds: dict[str, dict[str, Any]] = {
        "LoRA": lora,
        "DoRA": {**lora, "use_dora": True},
        "rank-stabilised LoRA": {**lora, "use_rslora": True},
        "LoRA of a feed-forward layer": {**lora, "target_modules": ["intermediate.dense"]},
        "LoRA with biases": {**lora, "bias": "lora_only"},
        "IA3": {
            "kind": peft.IA3Config,
            "feedforward_modules": [],
            "init_ia3_weights": False,
        },
    }
    for name, options in kinds.items():
        adapter = save_adapter(room / name, plain, **options)

        def reference(adapter: Path = adapter) -> np.ndarray:
            model = peft.PeftModel.from_pretrained(AutoModel.from_pretrained(plain), adapter)
            tokenizer = AutoTokenizer.from_pretrained(plain)
            with torch.no_grad():
                rows = [
                    model.eval()(**tokenizer(text, return_tensors="pt"))
                    .last_hidden_state[0]
                    .mean(0)
                    for text in TEXTS
                ]
            return torch.stack(rows).numpy()

        def seen(adapter: Path = adapter) -> np.ndarray:
            found: np.ndarray = open_model(str(adapter)).encode(TEXTS)
            return found

        yield is_equal(name, reference, seen)
    prompt = peft.PrefixTuningConfig(task_type="FEATURE_EXTRACTION", num_virtual_tokens=3)
    model = peft.get_peft_model(AutoModel.from_pretrained(plain), prompt)
    model.save_pretrained(room / "prefix")
    update(room / "prefix" / "adapter_config.json", base_model_name_or_path=str(plain))
    yield is_refused("prefix tuning", lambda: open_model(str(room / "prefix")))
    both = room / "LoRA"
    before = model_fingerprint(str(both))
    update(plain / "config.json", layer_norm_eps=1e-3)
    yield is_equal(
        "identity knows the base", lambda: True, lambda: model_fingerprint(str(both)) != before
    )


@point("f-prompts")
def prompts(folder: Path, room: Path) -> Iterator[Finding]:
    plain = save_plain(room / "plain")
    for mode in ("mean", "max", "cls", "lasttoken"):
        for prompt in ("query: ", "Represent the text:", "?"):
            pooling = modules.Pooling(32, mode, include_prompt=False)
            place = save_encoder(room / f"{mode}{len(prompt)}", plain, pooling)
            update(place / "config_sentence_transformers.json", prompts={"STS": prompt})
            config = PretrainedConfig(model=str(place), prompts="own")
            yield is_equal(
                f"{mode}, {prompt}",
                lambda place=place, prompt=prompt: their_vectors(place, prompt=prompt),
                lambda config=config, prompt=prompt: (
                    Pretrained(config).fit().encode([prompt + text for text in TEXTS])
                ),
            )


@point("f-starts")
def starts(folder: Path, room: Path) -> Iterator[Finding]:
    plain = save_plain(room / "plain")

    def train(start: Path) -> Any:
        return harness.train("simcse", base_model=str(start), corpus=TEXTS, config=TRAIN, dev=None)

    texts = [*TEXTS, "It rains in the hills. " * 30]
    for length in (8, 31, 64):
        after = (modules.Pooling(32, "mean"), modules.Normalize())
        start = save_encoder(room / f"start{length}", plain, *after, length=length)
        yield is_equal(
            f"unit vectors, cut at {length}",
            lambda start=start: their_vectors(start, texts),
            lambda start=start: train(start).encode(texts),
        )
    for name, module in (
        ("Dense", modules.Dense(32, 16)),
        ("LayerNorm", modules.LayerNorm(32)),
    ):
        start = save_encoder(room / name, plain, modules.Pooling(32, "mean"), module)
        yield is_refused(name, lambda start=start: train(start))


@point("f-precision")
def precision(folder: Path, room: Path) -> Iterator[Finding]:
    plain = save_plain(room / "plain")
    for dtype in (torch.float16, torch.bfloat16):
        for mode in ("weightedmean", "mean_sqrt_len_tokens", "mean"):
            place = room / f"{mode}{dtype}"
            save_encoder(place, plain, modules.Pooling(32, mode), dtype=dtype)
            yield is_equal(
                f"{mode} in {dtype}",
                lambda place=place: their_vectors(place),
                lambda place=place: open_model(str(place)).encode(TEXTS),
            )


@point("f-segments")
def segments(folder: Path, room: Path) -> Iterator[Finding]:
    from tokenizers import processors

    for template, side in (
        ("[CLS]:2 $A:1 [SEP]:1", "right"),
        ("$A:0 [SEP]:0 [CLS]:2", "left"),
        ("$A:1", "right"),
        ("[CLS]:0 $A:0 [SEP]:0", "left"),
    ):
        place = save_plain(room / str(abs(hash(template))), type_vocab_size=3)
        tokenizer = AutoTokenizer.from_pretrained(place, padding_side=side)
        names = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("[SEP]", "[CLS]")]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=names
        )
        tokenizer.save_pretrained(place)
        update(place / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")

        def reference(place: Path = place) -> np.ndarray:
            model = AutoModel.from_pretrained(place).eval()
            own = AutoTokenizer.from_pretrained(place)
            with torch.no_grad():
                rows = [
                    model(**own(text, return_tensors="pt")).last_hidden_state[0].mean(0)
                    for text in TEXTS
                ]
            return torch.stack(rows).numpy()

        yield is_equal(
            template, reference, lambda place=place: open_model(str(place)).encode(TEXTS)
        )


@point("hostile-models")
def hostile(folder: Path, room: Path) -> Iterator[Finding]:
    def made(name: str) -> Path:
        plain = save_plain(room / f"{name} plain")
        return save_encoder(room / name, plain, modules.Pooling(32, "mean"))

    changes: dict[str, Callable[[Path], Any]] = {
        "layers": lambda f: update(f / "config.json", num_hidden_layers=10**9),
        "layers below 0": lambda f: update(f / "config.json", num_hidden_layers=-1),
        "width of a text": lambda f: update(f / "config.json", hidden_size="x"),
        "length -1": lambda f: update(f / "tokenizer_config.json", model_max_length=-1),
        "length x": lambda f: update(f / "tokenizer_config.json", model_max_length="x"),
        "length NaN": lambda f: update(f / "tokenizer_config.json", model_max_length=float("nan")),
        "modules nested": lambda f: (f / "modules.json").write_text("[" * 100_000),
        "modules of numbers": lambda f: (f / "modules.json").write_text("[1, 2]"),
        "tokenizer nested": lambda f: (f / "tokenizer.json").write_text('{"a":' * 100_000),
        "a list as configuration": lambda f: (f / "config.json").write_text("[]"),
        "prompts as long as a book": lambda f: update(
            f / "config_sentence_transformers.json", prompts={"a": "b " * 10**6}
        ),
    }
    for name, change in changes.items():
        place = made(name)
        change(place)
        yield is_refused(name, lambda place=place: open_for_evaluation(str(place)))
    for device in ("/dev/zero", "/dev/stdin"):
        place = made(device.replace("/", "_"))
        file = place / "1_Pooling" / "config.json"
        file.unlink()
        file.symlink_to(device)
        yield is_refused(f"a link to {device}", lambda place=place: open_model(str(place)))
    plain = save_plain(room / "plain")
    for labels, refused in ((1, True), (3, False)):
        place = room / f"head{labels}"
        model = AutoModelForSequenceClassification.from_pretrained(plain, num_labels=labels)
        model.save_pretrained(place)
        AutoTokenizer.from_pretrained(SOURCE).save_pretrained(place)
        if refused:
            yield is_refused("a cross-encoder", lambda place=place: open_model(str(place)))
        else:
            said = open_for_evaluation(str(place)).remark
            yield Finding("a classifier", "its head is named", said, "Classification" in said)


@point("f-padding")
def padding(folder: Path, room: Path) -> Iterator[Finding]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(SOURCE / "tokenizer.json"))
    texts = list(load_corpus("embedded:sentences"))
    lengths = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    for length, direction in ((None, "right"), (128, "right"), (64, "left")):
        tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=length, direction=direction)
        tokenizer.enable_truncation(length or 128)
        tokenizer.save(str(room / "tokenizer.json"))
        for least in (12, 30):
            uri = f"embedded:sentences?min_tokens={least}&tokenizer={room}"
            yield is_equal(
                f"padding to {length}, {direction}, {least} tokens",
                lambda least=least: sum(count >= least for count in lengths),
                lambda uri=uri: len(load_corpus(uri)),
            )


@point("f-frames")
def frames(folder: Path, room: Path) -> Iterator[Finding]:
    import polars
    import pyarrow
    from datasets import Dataset

    columns = {"n": [1, 2, 3], "text": [TEXTS[0], None, TEXTS[1]], "source": ["web"] * 3}
    forms = (pd.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.table, Dataset.from_dict)
    for form in forms:
        yield is_equal(
            getattr(form, "__qualname__", str(form)),
            lambda: TEXTS[:2],
            lambda form=form: list(corpus_of(form(columns), "sentences")),
        )
    by_key = pd.DataFrame(columns).set_index("n")
    yield is_equal("an index", lambda: TEXTS[:2], lambda: list(corpus_of(by_key, "sentences")))
    others: dict[str, Any] = {
        "a set": set(TEXTS),
        "numbers": pd.DataFrame({"text": [1, 2]}),
        "no column of text": pd.DataFrame({"body": TEXTS}),
        "a dictionary": dict(enumerate(TEXTS)),
        "names of files": [str(SOURCE / "tokenizer.json"), str(SOURCE / "config.json")],
        "lists of words": [text.split() for text in TEXTS],
        "groups": pd.DataFrame(columns).groupby("source"),
    }
    (room / "a.txt").write_text("a\nb\n")
    others["names of files"] = [str(room / "a.txt")] * 2
    for name, given in others.items():
        yield is_refused(name, lambda given=given: corpus_of(given, "sentences"))


@point("f-tables")
def tables(folder: Path, room: Path) -> Iterator[Finding]:
    texts = ['He said "no".', '"Quoted."', "a\ttab", "two\nlines", "semi; colon, comma", "null"]
    frame = pd.DataFrame({"id": range(len(texts)), "text": texts})
    forms: dict[str, dict[str, Any]] = {
        "tabs": {"sep": "\t"},
        "tabs, all quoted": {"sep": "\t", "quoting": 1},
        "tabs, byte-order mark": {"sep": "\t", "encoding": "utf-8-sig"},
        "tabs, CRLF": {"sep": "\t", "lineterminator": "\r\n"},
        "semicolons": {"sep": ";"},
        "commas": {"sep": ","},
    }
    for name, options in forms.items():
        file = room / ("x.tsv" if options["sep"] == "\t" else "x.csv")
        frame.to_csv(file, index=False, **options)
        yield is_equal(name, lambda: texts, lambda file=file: list(load_corpus(str(file))))
    stray = ['"Never closed', 'She said "no', '"Yes" is a word.']
    content = "text\tid\n" + "".join(f"{text}\t1\n" for text in stray)
    (room / "stray.tsv.gz").write_bytes(gzip.compress(content.encode()))
    yield is_equal(
        "stray quotes", lambda: stray, lambda: list(load_corpus(str(room / "stray.tsv.gz")))
    )
    (room / "cut.csv").write_text("id,text\n1,Hello,\n")
    yield is_refused("a comma at the end of a text", lambda: load_corpus(str(room / "cut.csv")))


@point("f-empty-rows")
def empty_rows(folder: Path, room: Path) -> Iterator[Finding]:
    for name, content, count in (
        ("x.txt", "a\n\n \nb\n", 2),
        ("x.jsonl", '{"text": "a"}\n{"text": null}\n{"text": "b"}\n', 1),
        ("x.csv", "id,text\n1,a\n2,\n3, \n4,b\n", 2),
        ("x.tsv", "id\ttext\n1\ta\n2\t\n3\tb\n", 1),
    ):
        (room / name).write_text(content)
        yield is_equal(
            name,
            lambda count=count: count,
            lambda name=name: load_corpus(str(room / name)).describe().get("empty"),
        )
    yield is_equal(
        "a frame",
        lambda: 1,
        lambda: corpus_of(pd.DataFrame({"text": ["a", None, "b"]}), "sentences").describe()[
            "empty"
        ],
    )
