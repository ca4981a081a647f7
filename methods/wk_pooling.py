"""WK pooling (SBERT-WK): layers weighted by how new each is to a token, tokens by how much they
change over layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import torch
from torch import Tensor

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.network import Features
from harness.errors import InputError
from harness.method import FitContext, Method, MethodConfig, load_unfitted
from harness.recipes import RecipeFile
from harness.sources import TrainingText
from methods.parts.array_method import new_folder

ENCODER = "encoder"  # the folder of the base model inside of a saved method
_NOTHING = 1e-12  # squares below this share of their vector are rounding noise


def neighbour_layers(k: int, layers: int, window: int, left: str) -> list[int]:
    """Return the indices of the layers next to layer k (0-based): `window` on each side, as far as
    there are any.

    With `left="code"` the left ones count from k >= window on: the authors' slice k - window : k
    has a negative start before that, and is empty.
    """
    uses_left = left == "available" or k >= window
    if uses_left:
        before = range(max(0, k - window), k)
    else:
        before = range(0)
    end = min(k + window + 1, layers)
    after = range(k + 1, end)
    return [*before, *after]


def triangular_factor(gram: Tensor) -> Tensor:
    """Return R (n, w, w) with R^T R = `gram` (n, w, w), upper triangular: the R of a QR of the vectors up
    to signs of rows.

    A vector that the ones before it span gets a zero on the diagonal, and later ones have nothing
    along it.
    """
    w = gram.shape[-1]
    tiny = torch.finfo(gram.dtype).tiny
    r = torch.zeros_like(gram)
    for j in range(w):
        for i in range(j):
            above = r[:, :i, i] * r[:, :i, j]
            rest = gram[:, i, j] - above.sum(1)
            pivot = r[:, i, i]
            entry = rest / pivot.clamp_min(tiny)
            r[:, i, j] = torch.where(pivot > 0, entry, 0.0)
        above = r[:, :j, j] ** 2
        square = gram[:, j, j] - above.sum(1)
        independent = square > _NOTHING * gram[:, j, j]
        entry = square.clamp_min(0.0).sqrt()
        r[:, j, j] = torch.where(independent, entry, 0.0)
    return r


def scale_to_shares(values: Tensor) -> Tensor:
    """Scale rows (n, K) to sum 1; a row of sum 0 becomes uniform."""
    total = values.sum(1, keepdim=True)
    is_scaled = total != 0
    divisor = torch.where(is_scaled, total, 1.0)
    uniform = 1.0 / values.shape[1]
    return torch.where(is_scaled, values / divisor, uniform)


def layer_weights(gram: Tensor, *, window: int, left: str) -> Tensor:
    """Weights (n, K), sum 1, of the K layers of n tokens, from the tokens' Gram matrices (n, K, K).

    Wang & Kuo 2020, section III-B. For layer k, R is the triangular factor of [neighbours, v_k] (w
    columns) and r its last column. Alignment a_k = 1 / (2 w g), g the mean cosine between the
    neighbours' columns of R and r without its last entry; novelty n_k = |last entry of r| / |r|.
    Both are scaled to sum 1 over layers, added, and scaled again.
    """
    layers = gram.shape[-1]
    alignment: list[Tensor] = []
    novelty: list[Tensor] = []
    for k in range(layers):
        columns = [*neighbour_layers(k, layers, window, left), k]
        of_columns = gram[:, columns][:, :, columns]
        r = triangular_factor(of_columns)
        others = r[:, :-1, :-1]
        current = r[:, :, -1]
        lengths = others.norm(dim=1, keepdim=True)
        unit = others / lengths.clamp_min(_NOTHING)
        inside = current[:, :-1]
        along = (unit.mean(2) * inside).sum(1)
        length_inside = inside.norm(dim=1)
        g = along / length_inside.clamp_min(_NOTHING)
        # At a right angle to all neighbours a layer gets all the weight.
        g = torch.where(g.abs() > _NOTHING, g, _NOTHING)
        twice = 2 * len(columns)
        alignment.append(1 / (twice * g))
        apart = current[:, -1].abs()
        length = current.norm(dim=1)
        novelty.append(apart / length.clamp_min(_NOTHING))
    by_alignment = scale_to_shares(torch.stack(alignment, 1))
    by_novelty = scale_to_shares(torch.stack(novelty, 1))
    return scale_to_shares(by_alignment + by_novelty)


def wk_vectors(
    states: Sequence[Tensor],
    mask: Tensor,
    *,
    window: int = 2,
    left: str = "code",
) -> Tensor:
    """Sentence vectors (n, d) of K layers' `states`, each (n, length, d); `mask` (n, length) is 1
    at tokens, padding follows them.

    The last token of each sentence ([SEP]) is left out. A token's vector is the weighted sum of its
    layers (`layer_weights`); its weight in the sentence is the variance over layers of the cosine
    between one layer and the next (section III-C), scaled to sum 1. Computed in float64: the
    weights are ratios of small differences.
    """
    lengths = mask.sum(1)
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (lengths - 1).clamp_min(1)
    is_before_last = places < last.unsqueeze(1)
    kept = mask.bool() & is_before_last
    of_states = [state[kept] for state in states]
    tokens = torch.stack(of_states, 1).double()  # (T, K, d)
    sentence = kept.nonzero()[:, 0]
    gram = tokens @ tokens.transpose(1, 2)
    of_layers = layer_weights(gram, window=window, left=left)
    vectors = (of_layers.unsqueeze(2) * tokens).sum(1)

    norms = gram.diagonal(dim1=1, dim2=2).sqrt()
    products = gram.diagonal(1, 1, 2)
    lengths_of_both = norms[:, :-1] * norms[:, 1:]
    cosines = products / lengths_of_both.clamp_min(_NOTHING)
    weights = tokens.new_zeros(mask.shape)
    weights[kept] = cosines.var(1, correction=0)
    total = weights.sum(1, keepdim=True)
    tiny = torch.finfo(total.dtype).tiny
    shares = weights / total.clamp_min(tiny)
    # Where no token changes over layers, all have the same weight.
    equal = kept / kept.sum(1, keepdim=True)
    shares = torch.where(total > 0, shares, equal)

    out = tokens.new_zeros(len(mask), tokens.shape[2])
    of_tokens = shares[kept].unsqueeze(1)
    sums = out.index_add(0, sentence, vectors * of_tokens)
    return sums.float()


class WKPoolingConfig(MethodConfig):
    """Layers that are used, and the window of neighbours around each."""

    pooling: Literal["none"] = option("none", "this method is a pooling of its own")
    layer_start: int = option(
        4, "the first layer used, 0 for the embedding block; all above it are used too", ge=0
    )
    window: int = option(
        2, "layers to the left and right of a layer that it is compared with", ge=1
    )
    left: Literal["code", "available"] = option(
        "code",
        "left neighbours of the first layers: none, as in the authors' code, or those that there are",
    )


class WKEncoder(Encoder):
    """An encoder whose vectors come from several layers by `wk_vectors`."""

    settings: WKPoolingConfig

    def _vectors(self, features: Features) -> Tensor:
        settings = self.settings
        is_mps = self.device.type == "mps"  # has no float64
        if is_mps:
            device = torch.device("cpu")
        else:
            device = self.device
        states, last = self._run(features, every_layer=True)
        layers = (*states[:-1], last)[settings.layer_start :]
        layers = tuple(layer.to(device) for layer in layers)
        mask = features["attention_mask"].to(device)
        vectors = wk_vectors(layers, mask, window=settings.window, left=settings.left)
        return vectors.to(self.device)

    def use(self, settings: WKPoolingConfig) -> Self:
        """Take these settings and return self.

        Raises:
            InputError: the model has too few layers for them.
        """
        depth = int(self.transformer.config.num_hidden_layers)
        wanted = max(3, settings.window + 1)
        if depth + 1 - settings.layer_start < wanted:
            raise InputError(
                f"wk_pooling: layer_start {settings.layer_start} leaves "
                f"{max(0, depth + 1 - settings.layer_start)} of the layers 0 to {depth}, and "
                f"window {settings.window} needs {wanted}",
                key="layer_start",
                remedy="lower layer_start or window",
            )
        self.settings = settings
        return self


class WKPooling(Method):
    """v = sum over tokens of weight times (sum over layers of weight times hidden state); nothing
    is learnt.
    """

    name = "wk_pooling"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = WKPoolingConfig

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Load the base model; there is nothing to learn, a corpus is ignored.

        Raises:
            InputError: no such model, or one with too few layers.
        """
        encoder = WKEncoder.from_pretrained(self.base_model, max_length=self.config.max_length)
        self._encoder = encoder.use(self.config).to(context.device if context else "cpu").eval()
        return self

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the base model (as a SentenceTransformer of mean pooling) and how its layers are
        combined.
        """
        about = card.strip() or f"# {self.card.title}"
        note = f"The folder `{ENCODER}/` alone gives plain mean pooling."
        with new_folder(self, path, f"{about}\n\n{note}\n") as folder:
            self.encoder.save(folder / ENCODER)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = load_unfitted(cls, path)
        method._encoder = WKEncoder.load(Path(path) / ENCODER).use(method.config).eval()
        return method
