"""A sentence encoder without a transformer: word vectors, a recurrent layer, and the reduction of
its states to a vector.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from harness.encoder import Encoder
from harness.encoder.layout import write_json
from harness.encoder.network import Features
from harness.encoder.pooling import reduce_tokens
from harness.encoder.quiet import quiet_transformers
from harness.encoder.sentences import clean
from harness.errors import InputError
from harness.files.reading import read_json
from harness.method import load_unfitted
from harness.training import TrainedMethod
from methods.parts.array_method import new_folder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Reduce = Literal["max", "mean", "last"]
WORDS = "0_WordEmbeddings"
SETTINGS = "recurrent.json"
WEIGHTS = "model.safetensors"
UNLIMITED = 1_000_000  # what sentence-transformers takes for no bound
_LAYERS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"LSTM": nn.LSTM, "GRU": nn.GRU}


class FrozenWords(nn.Module):
    """Word vectors (words, d) that are read and never trained; no checkpoint holds them."""

    vectors: Tensor

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.register_buffer("vectors", vectors, persistent=False)

    @property
    def weight(self) -> Tensor:
        """Word vectors (words, d), by the name that `nn.Embedding` has for them."""
        return self.vectors

    def forward(self, ids: Tensor) -> Tensor:
        """(n, length) whole numbers to (n, length, d)."""
        return functional.embedding(ids, self.vectors)


class RecurrentEncoder(Encoder):
    """An `Encoder` whose vectors come from a recurrent layer; what asks for a transformer's layers
    has none here.

    Attributes:
        words: ids to word vectors, frozen or an `nn.Embedding`. layer: an LSTM or a GRU of one
            layer.
        reduce: "max" or "mean" of the states at all words, or the "last" state of each direction,
            side by side.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        words: FrozenWords | nn.Embedding,
        layer: nn.LSTM | nn.GRU,
        *,
        reduce: Reduce,
        max_length: int | None = None,
    ) -> None:
        nn.Module.__init__(self)  # and not the transformer's
        self.tokenizer = tokenizer
        self.words = words
        self.layer = layer
        self.reduce: Reduce = reduce
        self.max_length = max_length or UNLIMITED
        self.micro_batch = None
        self.train_length = None
        self.padding_side = "right"
        self._inputs: set[str] = set()

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        directions = 2 if self.layer.bidirectional else 1
        return self.layer.hidden_size * directions

    def tokenize(self, texts: Any, max_length: int | None = None) -> list[list[int]]:
        """Return ids of words, cut to `max_length` (never beyond the encoder's own) with all that follows,
        unpadded.
        """
        if not texts:
            return []
        if max_length is None:
            limit = self.max_length
        else:
            limit = min(max_length, self.max_length)
        cleaned = [clean(text, row) for row, text in enumerate(texts)]
        ids = self.tokenizer(
            cleaned, return_attention_mask=False, return_token_type_ids=False, verbose=False
        )
        return [row[:limit] for row in ids["input_ids"]]

    def _vectors(self, features: Features) -> Tensor:
        ids = features["input_ids"]
        mask = features["attention_mask"]
        # In float32: recurrent states add up small steps.
        with torch.autocast(device_type=ids.device.type, enabled=False):
            lengths = mask.sum(1).cpu()
            packed = pack_padded_sequence(
                self.words(ids).float(),
                lengths,
                batch_first=True,
                enforce_sorted=False,
            )
            states, last = self.layer(packed)
            if self.reduce != "last":
                padded, _ = pad_packed_sequence(states, batch_first=True)
                return reduce_tokens(padded, mask, self.reduce)
            # (directions, n, hidden)
            if isinstance(last, tuple):
                final: Tensor = last[0]
            else:
                final = last
            return final.transpose(0, 1).flatten(1)

    def hidden_states(self, features: Features) -> tuple[Tensor, ...]:
        """Refuse: a recurrent encoder has no hidden states of layers.

        Raises:
            InputError: always; there are no transformer layers to read.
        """
        raise InputError(
            "an encoder of word vectors and a recurrent layer has no layers of a transformer to read",
            key="layers",
        )

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write tokenizer, word vectors and layer as safetensors into a folder."""
        folder = Path(path)
        kind = type(self.layer).__name__
        (folder / WORDS).mkdir(parents=True)
        with quiet_transformers():
            self.tokenizer.save_pretrained(folder / WORDS)
        save_file({"emb_layer.weight": _plain(self.words.weight)}, folder / WORDS / WEIGHTS)
        (folder / f"1_{kind}").mkdir()
        state = self.layer.state_dict()
        weights = {}
        for name, tensor in state.items():
            weights[f"encoder.{name}"] = _plain(tensor)
        save_file(weights, folder / f"1_{kind}" / WEIGHTS)
        settings: dict[str, Any] = {
            "layer": kind,
            "inputs": self.layer.input_size,
            "hidden": self.layer.hidden_size,
            "bidirectional": self.layer.bidirectional,
            "reduce": self.reduce,
            "max_length": self.max_length,
            "trained_words": isinstance(self.words, nn.Embedding),
        }
        write_json(folder / SETTINGS, settings)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or a damaged file.
        """
        from transformers import AutoTokenizer

        folder = Path(path)
        about = read_json(folder / SETTINGS)
        try:
            kind = _LAYERS[about["layer"]]
            layer = kind(
                about["inputs"],
                about["hidden"],
                batch_first=True,
                bidirectional=about["bidirectional"],
            )
            stored = load_file(folder / f"1_{about['layer']}" / WEIGHTS)
            state = {name.removeprefix("encoder."): tensor for name, tensor in stored.items()}
            layer.load_state_dict(state)

            vectors = load_file(folder / WORDS / WEIGHTS)["emb_layer.weight"]
            words: FrozenWords | nn.Embedding = FrozenWords(vectors)
            if about["trained_words"]:
                count, d = vectors.shape
                words = nn.Embedding(count, d, _weight=vectors)
            with quiet_transformers():
                tokenizer = AutoTokenizer.from_pretrained(folder / WORDS, trust_remote_code=False)
            return cls(
                tokenizer,
                words,
                layer,
                reduce=about["reduce"],
                max_length=about["max_length"],
            )
        except (KeyError, OSError, RuntimeError, SafetensorError, ValueError) as error:
            raise InputError(
                f"damaged: {str(error).splitlines()[0]}",
                file=folder,
                remedy="save the method again",
            ) from None


class RecurrentMethod(TrainedMethod):
    """A trained method whose encoder is a `RecurrentEncoder`."""

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write what the encoder holds, with the method's configuration; modules.json names a
        module of ours.
        """
        with new_folder(self, path, card) as folder:
            self.encoder.save(folder)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = load_unfitted(cls, path)
        method._encoder = RecurrentEncoder.load(path).eval()
        return method


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().float().cpu().contiguous()
