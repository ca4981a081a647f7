"""RetroMAE: a decoder of one layer writes a sentence from its vector, which the encoder made of a
masked copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.dropout import position_ids
from harness.encoder.masked_lm import IGNORED, MaskedLM, mask_tokens, masked_lm_loss, pad_labels
from harness.errors import InputError
from harness.recipes import RecipeFile
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views.make import markers

_BEGIN = ("Ġ", "▁")  # how tokens of byte-level BPE and SentencePiece begin where a word does
_MOST_MASKS = 256  # of a text, from which its places draw


def word_numbers(tokens: Sequence[str], special: Sequence[bool]) -> np.ndarray:
    """Return the number of the word that each token is a part of; -1 for special tokens.

    >>> word_numbers(["[CLS]", "un", "##happy", "dog", "[SEP]"], [True, False, False, False, True]).tolist()
    [-1, 0, 0, 1, -1]
    """
    marked = any(token.startswith(_BEGIN) for token in tokens)
    begins: list[bool] = []
    for i, token in enumerate(tokens):
        if marked:
            new = token.startswith(_BEGIN)
        else:
            new = not token.startswith("##")
        follows_special = i == 0 or special[i - 1]
        begins.append(not special[i] and (new or follows_special))
    return np.where(special, -1, np.cumsum(begins) - 1)


def draw_words(words: np.ndarray, share: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `count` times whole words of a text, in random order as long as they fit into `share` of
    its tokens.

    Args:
        words: of each token (length,), as `word_numbers`. The share is of all tokens, and of one at
            least.

    Returns (count, length), True where a token is of a drawn word. As DataCollatorForWholeWordMask
    of transformers.
    """
    sizes = np.bincount(words[words >= 0])
    most = max(1, round(len(words) * share))
    every = np.arange(count)
    drawn = np.zeros((count, len(sizes) + 1), dtype=bool)  # the last one is that of special tokens
    filled = np.zeros(count, dtype=np.int64)
    for word in rng.random((count, len(sizes))).argsort(axis=1).T:
        fits = filled + sizes[word] <= most
        drawn[every, word] = fits
        filled += sizes[word] * fits
    return drawn[:, words]


def hidden_from_places(
    words: Sequence[np.ndarray],
    share: float,
    rng: np.random.Generator,
) -> Tensor:
    """Return the attention mask (n, length, length): True where a place of a text may not look.

    Each place draws one of the text's masks of whole words, and never sees itself. A place that
    would see nothing, which is padding, sees the first token.
    """
    longest = max(map(len, words))
    hidden = np.ones((len(words), longest, longest), dtype=bool)
    for row, text in enumerate(words):
        length = len(text)
        masks = draw_words(text, share, min(length, _MOST_MASKS), rng)
        choice = masks[rng.integers(len(masks), size=length)]
        hidden[row, :length, :length] = choice | np.eye(length, dtype=bool)
    hidden[..., 0] &= ~hidden.all(axis=2)
    return torch.from_numpy(hidden)


class Decoder(nn.Module):
    """One layer of BERT, initialised as in BERT, whose queries differ from its keys and values."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        d = int(config.hidden_size)
        eps = float(getattr(config, "layer_norm_eps", 1e-12))
        inner = int(getattr(config, "intermediate_size", 4 * d))
        rate = float(getattr(config, "attention_probs_dropout_prob", 0.1))
        self.heads = int(config.num_attention_heads)
        self.attention = nn.MultiheadAttention(d, self.heads, dropout=rate, batch_first=True)
        self.attended = nn.LayerNorm(d, eps)
        self.out = nn.LayerNorm(d, eps)
        self.wide = nn.Linear(d, inner)
        self.narrow = nn.Linear(inner, d)
        self.dropout = nn.Dropout(float(getattr(config, "hidden_dropout_prob", 0.1)))
        for name, p in self.named_parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, queries: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """Return states (n, length, d) of `queries` that look at `memory`, both (n, length, d), where
        `hidden` is False.
        """
        mask = hidden.to(memory.device).repeat_interleave(self.heads, dim=0)
        seen, _ = self.attention(queries, memory, memory, attn_mask=mask, need_weights=False)
        states = self.attended(queries + self.dropout(seen))
        feed_forward = self.narrow(functional.gelu(self.wide(states)))
        result: Tensor = self.out(states + self.dropout(feed_forward))
        return result


class RetroMAEConfig(TrainingConfig):
    """Defaults: the paper's pre-training."""

    pooling: Literal["cls", "mean", "max"] = option("cls", "cls (the paper), mean or max")
    learning_rate: float = option(
        1e-4,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-3),
        log=True,
    )
    batch_size: int = option(256, "sentences per training step", ge=2, sweep=[64, 128, 256])
    epochs: int = option(8, "passes over the corpus", ge=1)
    train_length: int = option(
        512, "maximum number of tokens in training, special tokens included", ge=4
    )
    warmup: float = option(0.1, "share of the training steps with rising learning rate", ge=0, lt=1)
    weight_decay: float = option(
        0.01, "decoupled weight decay (none on biases and LayerNorm)", ge=0
    )
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    encoder_mask: float = option(
        0.3,
        "share of the tokens masked for the encoder",
        gt=0,
        lt=1,
        sweep=[0.15, 0.3, 0.5],
    )
    decoder_mask: float = option(
        0.5,
        "share of the tokens hidden from each place of the decoder",
        gt=0,
        lt=1,
        sweep=[0.3, 0.5, 0.7, 0.9],
    )


class RetroMAE(TrainedMethod):
    """L = MLM of the encoder + mean over all tokens of -log p(x_i | h, words that place i sees), h
    = the vector.
    """

    name = "retromae"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = RetroMAEConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        transformer: Any = encoder.transformer
        places = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
        if places is None or places.weight.shape[1] != encoder.dimension:
            raise InputError(
                f'retromae: a base model of type "{transformer.config.model_type}" does not '
                "add position embeddings as wide as its states, by which the decoder asks",
                remedy="use one of type bert, roberta, xlm-roberta, distilbert or mpnet",
            )
        heads = {
            "mlm": MaskedLM.from_base(self.base_model, encoder),
            "decoder": Decoder(transformer.config),
        }
        return nn.ModuleDict(heads)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config: RetroMAEConfig = self.config
        tokenizer = encoder.tokenizer
        frame = markers(tokenizer)
        ids = encoder.tokenize(batch.texts, max_length=config.train_length)
        words = []
        truth = []
        for row in ids:
            tokens = tokenizer.convert_ids_to_tokens(row)
            in_frame = [i in frame for i in row]
            words.append(word_numbers(tokens, in_frame))
            truth.append([IGNORED if i in frame else i for i in row])
        places = []
        for text in words:
            drawn = draw_words(text, config.encoder_mask, 1, batch.rng)
            places.append(drawn[0])
        masked, labels = mask_tokens(ids, tokenizer, batch.rng, places=places)
        features = encoder.collate(masked)
        states = encoder.hidden_states(features)[-1]
        vectors = encoder.pool(states, features["attention_mask"])
        encoding = _prediction(heads.mlm, states, pad_labels(labels))
        hidden = hidden_from_places(words, config.decoder_mask, batch.rng)
        input_ids = encoder.collate(ids)["input_ids"]
        decoded = decode(encoder, heads.decoder, vectors, input_ids, hidden)
        decoding = _prediction(heads.mlm, decoded, pad_labels(truth))
        return {"loss": encoding + decoding, "encoder": encoding, "decoder": decoding}


def decode(
    encoder: Encoder,
    decoder: nn.Module,
    vectors: Tensor,
    ids: Tensor,
    hidden: Tensor,
) -> Tensor:
    """Return the decoder's states (n, length, d) for the sentences `ids` (n, length) with `vectors`
    (n, d).

    The query of a place is the vector plus the place's embedding. It looks at the vector, in the
    place of the first token, and at the embeddings of the other tokens, where `hidden` (n, length,
    length) is False.
    """
    transformer: Any = encoder.transformer
    ids = ids.to(vectors.device)
    positions = transformer.embeddings.position_embeddings(position_ids(transformer, ids))
    sentence = vectors.unsqueeze(1)
    words = transformer.embeddings(input_ids=ids)[:, 1:]
    memory = torch.cat([sentence, words], dim=1)
    states: Tensor = decoder(sentence + positions, memory, hidden)
    return states


def _prediction(mlm: nn.Module, states: Tensor, truth: Tensor) -> Tensor:
    """Mean cross-entropy of the tokens `truth` (n, length) that are to be predicted, from states
    (n, length, d).
    """
    chosen = truth != IGNORED
    return masked_lm_loss(mlm(states[chosen.to(states.device)]), truth[chosen])
