"""What a run costs that nobody has measured here: the arithmetic of its model, from the model's
configuration, and how fast this machine multiplies matrices.

`typical_costs.json` ships with the package. `python -m tools.benchmarks.typical_costs` makes it:
the share of the machine's speed that encoding reaches by the width of the model, the cost of a
training step of each method in encodings of its batch, and the texts of the public tasks.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.files.model_names import kind_of_model
from harness.files.reading import read_json
from harness.sources.embedded import cached_by_model

_FILE = Path(__file__).with_suffix(".json")
_CHARACTERS = 4.5  # of a token of English text, with the blank behind it
_FRAME = 2  # tokens that a model puts around a text
_PRODUCT = 512  # rows of the matrices that are multiplied: they stay in a core's cache
_GIGA = 1e9


@dataclass(frozen=True)
class Texts:
    """Texts of a corpus or a task.

    Attributes:
        count: how many there are.
        characters: of one, on the mean.
        fitting: GFLOP for each dimension of their vectors, of the classifiers that are fitted.
    """

    count: int
    characters: float
    fitting: float = 0.0

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Count texts and characters."""
        characters = sum(map(len, texts)) / max(len(texts), 1)
        return cls(len(texts), characters)

    @property
    def tokens(self) -> float:
        """Tokens of a text, roughly."""
        return self.characters / _CHARACTERS + _FRAME


@dataclass(frozen=True)
class Shape:
    """The size of a transformer.

        >>> shape = Shape.of({"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072,
        ...     "num_attention_heads": 12, "vocab_size": 30522, "model_type": "bert"})
        >>> round(shape.body / 1e6), round(shape.parameters / 1e6)
        (85, 108)

    Attributes:
        width: of the hidden states.
        depth: number of layers.
        body: weights that every token is multiplied with.
        vocabulary: tokens.
        positions: the longest text, in tokens.
        shared: do all layers have the same weights?
    """

    width: int
    depth: int
    body: int
    vocabulary: int
    positions: int = 512
    shared: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """The shape that a config.json of transformers declares.

        Raises:
            KeyError: it declares none.
        """
        width = _first(config, "hidden_size", "dim", "d_model", "n_embd")
        depth = _first(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer")
        inner = _first(
            config, "intermediate_size", "hidden_dim", "d_ff", "n_inner", usual=4 * width
        )
        heads = _first(config, "num_attention_heads", "n_heads", "num_heads", "n_head", usual=1)
        head = _first(config, "head_dim", "d_kv", usual=width // heads)
        read = _first(config, "num_key_value_heads", usual=heads)
        attention = 2 * width * head * (heads + read)
        feed_forward = (3 if _is_gated(config) else 2) * width * inner
        return cls(
            width=width,
            depth=depth,
            body=depth * (attention + feed_forward),
            vocabulary=_first(config, "vocab_size", usual=0),
            positions=_first(config, "max_position_embeddings", "n_positions", usual=512),
            shared=config.get("model_type") == "albert",
        )

    @property
    def parameters(self) -> int:
        """All weights, roughly."""
        if self.shared:
            body = self.body // self.depth
        else:
            body = self.body
        return body + self.vocabulary * self.width

    def giga(self, tokens: float) -> float:
        """GFLOP of the forward pass of one text of so many tokens."""
        attention = 4 * self.depth * self.width * tokens**2
        return (2 * self.body * tokens + attention) / _GIGA


def _first(config: Mapping[str, Any], *names: str, usual: int | None = None) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and value > 0:
            return value
    if usual is None:
        raise KeyError(names[0])
    return usual


def _is_gated(config: Mapping[str, Any]) -> bool:
    """True where the feed-forward layer has a third matrix, a gate, as in Llama and its kin."""
    activation = str(config.get("feed_forward_proj", ""))
    kind = config.get("model_type")
    return "rms_norm_eps" in config or kind == "modernbert" or activation.startswith("gated")


@cached_by_model
def read_shape(name: str) -> Shape | None:
    """The shape of a model; None where it is not a transformer that is here.

    >>> read_shape("embedded:mini-bert").width
    256
    >>> read_shape("http://localhost:8080/v1#bge") is None
    True
    """
    settings = read_settings(name)
    if settings is None:
        return None
    try:
        return Shape.of(settings)
    except KeyError:
        return None


def read_settings(name: str) -> dict[str, Any] | None:
    """Return the `config.json` of a model, without an import of transformers; None where it is not
    a transformer that is here.

    >>> read_settings("embedded:mini-bert")["model_type"]
    'bert'
    """
    from harness.sources.embedded import resolve_model
    from harness.sources.remote.hub import hub_file

    if kind_of_model(name):
        return None
    try:
        where = Path(resolve_model(name))
        if where.is_dir():
            files = [where / "config.json", where / "0_Transformer" / "config.json"]
            file = next(file for file in files if file.is_file())
        else:
            file = hub_file(str(where), "config.json", kind="model")
        return read_json(file)
    except (HarnessError, StopIteration):
        return None


@dataclass(frozen=True)
class MethodCost:
    """What a method costs, in encodings of the same texts by its transformer alone.

    Attributes:
        step: a training step, in encodings of its batch.
        encode: an encoding by the method.
        fit: what fitting takes besides steps, in encodings of its text.
    """

    step: float
    encode: float
    fit: float


@cache
def _read_table() -> Any:
    return json.loads(_FILE.read_text("utf-8"))


def method_cost(name: str) -> MethodCost:
    """The measured cost of a method; that of SimCSE for one that is not in the table.

    >>> method_cost("simcse").step > method_cost("simcse").encode
    True
    """
    methods = _read_table()["methods"]
    return MethodCost(**methods.get(name, methods["simcse"]))


def overhead() -> tuple[float, float]:
    """Seconds that the first run of a process takes besides training, encoding and scoring, and any
    other.

    >>> first, other = overhead()
    >>> first > other
    True
    """
    seconds = _read_table()["overhead"]
    return seconds["start"] + seconds["run"], seconds["run"]


def count_public(tasks: Iterable[str]) -> dict[str, Texts]:
    """The texts of those of some tasks that are in the table.

    >>> count_public(["senteval:STS-B", "plugin:mine"])["senteval:STS-B"].count > 2000
    True
    """
    known = _read_table()["tasks"]
    return {key: Texts(**known[key]) for key in tasks if key in known}


@cache
def measure_products() -> float:
    """GFLOP/s of products of matrices in float32 on this processor, by the fastest of several in
    processor time: what else the machine does then matters little.
    """
    import torch

    matrix = torch.ones(_PRODUCT, _PRODUCT)
    fastest = math.inf
    for _ in range(12):
        started = time.process_time()
        matrix @ matrix
        fastest = min(fastest, time.process_time() - started)
    return float(torch.get_num_threads() * 2 * _PRODUCT**3 / fastest / _GIGA)


def encoding_speed(width: int) -> float:
    """GFLOP/s that encoding reaches on this processor with a model of this width, between the
    measured widths on a straight line over the logarithm.
    """
    import numpy as np

    table = _read_table()["encoding"]
    share = np.interp(math.log(width), np.log(table["width"]), table["share"])
    return float(share) * measure_products()


def text_seconds(shape: Shape, texts: Texts, longest: int = 512) -> float:
    """Seconds in which one of some texts is encoded on this processor.

    >>> shape = read_shape("embedded:mini-bert")
    >>> text_seconds(shape, Texts(100, 60.0)) < text_seconds(shape, Texts(100, 120.0))
    True
    """
    tokens = min(texts.tokens, longest, shape.positions)
    return shape.giga(tokens) / encoding_speed(shape.width)


def fitting_work(task: Any) -> float:
    """Return the GFLOP for each dimension of the vectors that SentEval's classifier takes on a task;
    0 for a task without it.
    """
    from harness.tasks.senteval.transfer import SINGLE, ClassificationTask

    if not isinstance(task, ClassificationTask):
        return 0.0
    parts = task.data.parts.values()
    sides = 1 if task.features == SINGLE else 2
    giga: float = _read_table()["classifier"][str(len(parts))]
    return giga * sides * sum(map(len, parts))
