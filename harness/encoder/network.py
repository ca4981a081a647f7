"""From token ids to vectors: a transformer, a module over tokens, a pooling rule, dense layers, an
affine map.

No files here: `harness.encoder.loading` and `harness.encoder.model` read and write them.
"""

from __future__ import annotations

import copy
import inspect
import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from harness.encoder.dropout import Rates, attach, packs, run_packed
from harness.encoder.pooling import Normalize, Pooling, average_layers, one_token, reduce_tokens
from harness.encoder.precision import autocast, convert
from harness.encoder.prefixes import replay_pass
from harness.encoder.prompts import EchoFrame, frame_of
from harness.encoder.quiet import evaluation, quiet_transformers
from harness.encoder.sentences import clean, token_budget_batches
from harness.encoder.token_count import add_tokens
from harness.errors import InputError
from harness.files.printable import first_line
from harness.machine.progress import encoding_bar

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_LOG = logging.getLogger(__name__)
# Tokens a batch holds per unit of `batch_size`. Sentences average some 25 tokens, so short ones
# make wider batches. Small batches stay in a CPU's cache; a GPU needs wide ones to be busy.
_TOKENS_PER_ROW = {"cpu": 24, "cuda": 256}
DIFFER_BY = (
    "give rates (hidden_dropout, attention_dropout) or other texts for the second view, or "
    "differ_by=None if equal views are meant"
)
"""What the error on equal views advises where a method does not say."""
_SAME = 1e-3  # distance of two views, as a share of their length, that rounding may explain; dropout makes it 0.1
TokenIds = Sequence[Sequence[int]]
"""The token ids of some texts."""
Rows = Sequence[str] | TokenIds
Features = dict[str, Tensor]
"""What a transformer reads: `input_ids`, `attention_mask` and so on, each (texts, tokens)."""
AT_ONCE = 4096  # texts in one call of a tokenizer, which holds far more of each than its ids until it returns
WINDOW = (
    65_536  # distinct sentences tokenised at a time, which bounds the memory of a million of them
)


PROMPT = "prompt_length"  # of features: tokens (n,) at the beginning that the pooling leaves out


class PromptedRow(list[int]):
    """Token ids of a text, and how many at their beginning are a prompt that is not pooled."""

    def __init__(self, ids: Sequence[int], prompt: int) -> None:
        super().__init__(ids)
        self.prompt = prompt


class Network(nn.Module):
    """Sentences to vectors; also two differently dropped views of a batch in one forward pass.

    Attributes:
        transformer, tokenizer: of Hugging Face transformers; weights in float32.
        pooling: the frozen rule that makes one vector of the hidden states.
        token_module: maps token vectors (n, length, d) and mask (n, length) to (n, length, d')
            before they are pooled, d' its `out_features`; None for none. Assign a
            `TokenConvolution` to set it.
        head: modules applied to the pooled vector (the checkpoint's tanh pooler, dense layers,
            normalisation).
        affine: a linear map applied last, such as a whitening; None for none. Assign an `nn.Linear`
            to set it.
        max_length: tokens of the longest row, special tokens included; longer sentences are cut.
        train_length: the same for texts that are given to `forward` and `two_views`; None for
            `max_length`.
        micro_batch: sentences (with both views) that `forward` and `two_views` encode at a time
            where a gradient is wanted, so that a large batch needs the memory of a small one; None
            for all.
        include_prompt: does the pooling count the tokens of a prompt? As sentence-transformers'
            Pooling states it.
        left_out: the prompts that it then does not count, at the beginning of texts.
        ends_normalized: does the sentence encoder that this one starts from end with unit vectors?
            They are a part of it again after `finish`; a loss sees the vectors before.
        packed: does the transformer read batches without their padding in training? Set it by
            `pack_batches`.
    """

    # Of encoders that are made without this constructor, too.
    ends_normalized = False
    view_dropout: float | None = None  # of views whose caller names no rates
    used_view_dropout = False
    token_module: nn.Module | None
    affine: nn.Linear | None

    dtype: str = "fp32"

    def __init__(
        self,
        transformer: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        pooling: Pooling,
        max_length: int,
        token_module: nn.Module | None = None,
        head: nn.Sequential | None = None,
        affine: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.max_length = max_length
        self.register_module("token_module", token_module)
        if head is not None:
            self.head = head
        else:
            self.head = nn.Sequential()
        self.register_module("affine", affine)
        self.view_rates = attach(transformer)
        self._inputs = set(inspect.signature(transformer.forward).parameters)
        self._depth = int(transformer.config.num_hidden_layers)
        self.train_length: int | None = None
        self.micro_batch: int | None = None
        self.packed = False
        self.padding_side = "right"
        self.include_prompt = True
        self.left_out: tuple[str, ...] = ()
        self._views_differ = False  # known after the first batch of training
        self._checkpoints_rates = False

    def set_dtype(self, dtype: str) -> None:
        """Have the transformer compute in `dtype` ("fp32", "bf16" or "fp16"); pooling and what
        comes after it stay in float32.

        Raises:
            InputError: an unknown name, or there is no transformer.
        """
        transformer = getattr(self, "transformer", None)
        if transformer is None:
            raise InputError(f"there is no transformer to compute in {dtype}", key="dtype")
        convert(transformer, dtype)
        self.dtype = dtype

    def set_attention(self, kernel: str) -> None:
        """Have the transformer compute attention by a kernel of transformers, as "eager".

        Raises:
            InputError: an unknown kernel, or one that is not installed or does not suit the model.
        """
        try:
            with quiet_transformers():
                self.transformer.set_attn_implementation(kernel)
        except (ValueError, ImportError) as error:
            message = f'attention "{kernel}": {first_line(error):.200}'
            raise InputError(message, key="attention") from None

    def checkpoint_gradients(self) -> None:
        """Keep of each layer its input alone in training, and compute the rest again in the
        backward pass.

        Raises:
            InputError: transformers cannot do that for this model.
        """
        model = self.transformer  # the switch has a new name in later versions of transformers
        enable = (
            getattr(model, "activation_checkpointing_enable", None)
            or model.gradient_checkpointing_enable
        )
        try:
            enable({"use_reentrant": False, "context_fn": self.view_rates.again})
        except ValueError:
            raise InputError(
                f'a model of type "{model.config.model_type}" has no gradient checkpointing '
                "in transformers",
                key="gradient_checkpointing",
                remedy="leave gradient_checkpointing at false, or take another base model",
            ) from None
        # Only reentrant checkpointing needs what the switch does to the embeddings.
        model.disable_input_require_grads()
        self._checkpoints_rates = True
        self.view_rates.jagged = False

    def warn_without_dropout(self, remedy: str) -> None:
        """Log one line where the checkpoint drops nothing in training (ModernBERT, Qwen3), and what
        to do about it.
        """
        rates = [
            module.p for module in self.transformer.modules() if isinstance(module, nn.Dropout)
        ]
        rates += [
            getattr(module, "attention_dropout", 0.0) for module in self.transformer.modules()
        ]
        if not any(isinstance(rate, float) and rate > 0 for rate in rates):
            kind = self.transformer.config.model_type
            _LOG.warning(
                'a base model of type "%s" has no dropout of its own, which this method learns by; %s',
                kind,
                remedy,
            )

    def pack_batches(self, *, where_possible: bool = False) -> None:
        """In training, give the transformer the real tokens of a batch alone; its vectors are the
        same, but for rounding and for which of them are dropped.

        Args:
            where_possible: encode padded batches, with one line in the log, if the model cannot
                read packed ones.

        Raises:
            InputError: the model cannot read such a batch (tried with three short rows), unless
                `where_possible`.
        """
        rows = []
        for length in (3, 8, 5):
            rows.append([token % 7 + 2 for token in range(length)])
        features = self._to_device(self.collate(rows))
        self.packed = packs(self.transformer, self.view_rates, features)
        if not self.packed:
            why = f'a model of type "{self.transformer.config.model_type}" cannot read a batch without padding'
            if not where_possible:
                raise InputError(
                    f"{why}: its tokens are mixed outside of transformers' attention functions",
                    key="packed",
                    remedy="leave packed at auto or false, or choose another base model",
                )
            _LOG.warning("packed: %s; its batches are padded", why)

    @property
    def dimension(self) -> int:
        """d of the vectors."""
        tokens: int = getattr(
            self.token_module, "out_features", self.transformer.config.hidden_size
        )
        sizes = [tokens]
        for module in self.head:
            if isinstance(module, nn.Linear):
                sizes.append(module.out_features)
        if self.affine is not None:
            return self.affine.out_features
        return sizes[-1]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @cached_property
    def echo_frame(self) -> EchoFrame | None:
        """Where the copies of a sentence are, for a pooling that reads the second of two."""
        if self.pooling.echo is not None:
            return EchoFrame.of(self.tokenizer)
        return None

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Token ids with special tokens, cut to `max_length` (never beyond the encoder's own),
        unpadded.
        """
        if not texts:
            return []
        if max_length is None:
            limit = self.max_length
        else:
            limit = min(max_length, self.max_length)
        if self.echo_frame is not None:
            limit = self.echo_frame.halve(limit)
        whole = [clean(text, row) for row, text in enumerate(texts)]
        options = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        ids: list[list[int]] = []
        for start in range(0, len(whole), AT_ONCE):
            part = whole[start : start + AT_ONCE]
            encoded = self.tokenizer(part, truncation=True, max_length=limit, **options)
            ids += encoded["input_ids"]
        # A tokenizer without special tokens makes nothing of an empty string; it gets one unknown
        # token.
        if not all(ids):
            unknown = int(self.tokenizer.unk_token_id or 0)
            ids = [row or [unknown] for row in ids]
        if not self.left_out:
            return ids
        return [
            PromptedRow(row, self._prompt_length(text))
            for row, text in zip(ids, whole, strict=True)
        ]

    def _prompt_length(self, text: str) -> int:
        """Number of tokens of the longest prompt of `left_out` that a text begins with, counted as
        sentence-transformers does: with the special tokens before it.
        """
        found = [prompt for prompt in self.left_out if text.startswith(prompt)]
        if not found:
            return 0
        longest = max(found, key=len)
        ids = self.tokenizer(longest, verbose=False)["input_ids"]
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def collate(self, ids: TokenIds) -> Features:
        """Pad to the longest, on `padding_side`: `input_ids`, `attention_mask` (n, length),
        `token_type_ids` if the model takes them.
        """
        longest = max((len(row) for row in ids), default=0)
        shape = (len(ids), longest)
        pad = self.tokenizer.pad_token_id or 0
        input_ids = torch.full(shape, pad, dtype=torch.long)
        mask = torch.zeros(shape, dtype=torch.long)
        for position, row in enumerate(ids):
            first = 0
            if self.padding_side == "left":
                first = longest - len(row)
            places = slice(first, first + len(row))
            input_ids[position, places] = torch.tensor(row, dtype=torch.long)
            mask[position, places] = 1
        features = {"input_ids": input_ids, "attention_mask": mask}
        if (
            "token_type_ids" in self._inputs
            and "token_type_ids" in self.tokenizer.model_input_names
        ):
            features["token_type_ids"] = self._segments(ids, longest)
        prompts = [getattr(row, "prompt", 0) for row in ids]
        if any(prompts):
            features[PROMPT] = torch.tensor(prompts)
        return features

    def _segments(self, ids: TokenIds, longest: int) -> Tensor:
        """Segments (n, length) as the tokenizer numbers them; most give 0 to every token."""
        first, inner, last = self._segments_of_frame
        if not any((*first, inner, *last)):
            return torch.zeros((len(ids), longest), dtype=torch.long)
        padding = int(self.tokenizer.pad_token_type_id)
        segments = torch.full((len(ids), longest), padding)
        for position, row in enumerate(ids):
            length = len(row)
            between = max(length - len(first) - len(last), 0)
            own = [*first, *[inner] * between, *last]
            of_row = torch.tensor(own[:length], dtype=torch.long)
            segments[position, :length] = of_row
        return segments

    @cached_property
    def _segments_of_frame(self) -> tuple[list[int], int, list[int]]:
        """Segments of the tokens before a text, of those of a text, and of those after it."""
        segments = self.tokenizer("a", return_token_type_ids=True)["token_type_ids"]
        if not any(segments):
            return [], 0, []
        before, after = frame_of(self.tokenizer)
        end = len(segments) - len(after)
        begin = len(before)
        return segments[:begin], segments[begin], segments[end:]

    @replay_pass(cut=True)
    def forward(self, given: Rows | Features) -> Tensor:
        """Vectors (n, d) of texts, token rows or collated features, head and affine applied; the
        checkpoint's own dropout in training.
        """
        if isinstance(given, dict):
            features = given
        else:
            features = self.collate(self._ids(given))
        add_tokens(features["attention_mask"])
        slices = _cuts(len(features["attention_mask"]), self.micro_batch)
        parts = []
        for rows in slices:
            of_rows = {name: tensor[rows] for name, tensor in features.items()}
            parts.append(self._to_device(of_rows))
        if len(parts) == 1:
            return self._vectors(parts[0])
        # Those in force now: a part is encoded again when they no longer are.
        now = {"hidden": self.view_rates.hidden, "attention": self.view_rates.attention}

        def encode(features: Features) -> Tensor:
            with self.view_rates.during(rows=len(features["attention_mask"]), **now):
                return self._vectors(features)

        return torch.cat(self._in_parts(encode, parts))

    @replay_pass(cut=True)
    def two_views(
        self,
        a: Rows,
        b: Rows | None = None,
        *,
        hidden_dropout: Rates | None = None,
        attention_dropout: Rates | None = None,
        differ_by: str | None = DIFFER_BY,
    ) -> tuple[Tensor, Tensor]:
        """Vectors (n, d) of both views of n sentences from one forward pass of 2n rows.

            >>> from harness.encoder import Encoder
            >>> encoder = Encoder.from_pretrained("embedded:mini-bert")
            >>> a, b = encoder.two_views(["A dog runs.", "It rains."])
            >>> a.shape == b.shape == (2, encoder.dimension)
            True

        `a` and `b` are texts, cut to `train_length` tokens, or rows of token ids; without `b` both
        views have those of `a`, and dropout alone tells them apart.

        A pair of rates is (view a, view b): `hidden_dropout` for embedding, attention-output and
        feed-forward-output dropout, `attention_dropout` for attention probabilities; None keeps the
        checkpoint's own, or takes `view_dropout` where both are None. In evaluation mode nothing is
        dropped.

        Most objectives mean nothing on equal views, so the first batch in training is checked:
        checkpoints of newer models (ModernBERT, Qwen3) drop nothing by themselves, and training
        would collapse without a word. `differ_by` names the setting that makes views differ, for
        the message; None is for an objective that is meant for equal views.

        Raises:
            InputError: views of different counts, a rate outside [0, 1), a model that cannot drop
                per view, gradient checkpointing that would repeat its layers at other rates, or
                views that are equal for every sentence, unless `differ_by` is None.
        """
        if self.view_dropout is not None and hidden_dropout is attention_dropout is None:
            hidden_dropout = attention_dropout = (self.view_dropout, self.view_dropout)
            self.used_view_dropout = True
        ids_a = self._ids(a)
        if b is None:
            ids_b = ids_a
        else:
            ids_b = self._ids(b)
        if len(ids_a) != len(ids_b) or not len(ids_a):
            raise InputError(
                f"two views need as many sentences each, and one at least: {len(ids_a)}, {len(ids_b)}"
            )
        self._check_checkpoints()
        add_tokens([*ids_a, *ids_b])
        slices = _cuts(len(ids_a), self.micro_batch)
        parts = []
        for rows in slices:
            both = self.collate([*ids_a[rows], *ids_b[rows]])
            parts.append(self._to_device(both))

        def encode(features: Features) -> Tensor:
            rows = len(features["attention_mask"])
            with self.view_rates.inside(rows, hidden_dropout, attention_dropout):
                vectors = self._vectors(features)
                if self.training:
                    self.view_rates.check_used(str(self.transformer.config.model_type))
            return vectors.reshape(2, rows // 2, -1)

        encoded = self._in_parts(encode, parts)
        view_a, view_b = torch.cat(encoded, dim=1)
        if differ_by is not None and self.training and not self._views_differ:
            self._check_views(view_a, view_b, differ_by)
            self._views_differ = True
        return view_a, view_b

    def _check_checkpoints(self) -> None:
        """Raises:
        InputError: gradient checkpointing would repeat the layers at other rates.
        """
        if self._checkpoints_rates:
            return
        for module in self.transformer.modules():
            if getattr(module, "gradient_checkpointing", False):
                raise InputError(
                    "gradient checkpointing that knows the views' dropout is Encoder.checkpoint_gradients()"
                )

    def _check_views(self, view_a: Tensor, view_b: Tensor, differ_by: str) -> None:
        """Raises:
        InputError: the views (n, d) are equal for every sentence.
        """
        difference = view_a - view_b
        apart = difference.detach().float().norm(dim=1)
        length = view_a.detach().float().norm(dim=1)
        if bool((apart <= _SAME * length).all()):
            raise InputError(
                "the two views of every sentence of the first batch are equal, so nothing can be learned from "
                f'them (base model of type "{self.transformer.config.model_type}"); {differ_by}'
            )

    @replay_pass()  # what a loss compares with, as the vectors of a teacher, is not cut
    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        device: str | torch.device | None = None,
        precision: str | None = None,
    ) -> Any:
        """Vectors (n, d) in float32, (d,) for a single string: an array, or a tensor on `device`
        with `convert_to_tensor` (or without `convert_to_numpy`).

        Each distinct sentence is encoded once, in batches of similar length; the result does not
        depend on order or batch size. `batch_size` is in sentences of ordinary length: short ones
        come in wider batches, long ones in narrower. Nothing is dropped, and modules in training
        mode are left so. `precision` None computes in float32. Besides the vectors, the distinct
        sentences and the ids of some of them are held. Several devices ("cuda:0,cuda:1") encode
        shares of the sentences, each in a process of its own, with the same vectors up to rounding.

        Raises:
            InputError: something that is not a string, named by its position.
        """
        as_tensor = convert_to_tensor or not convert_to_numpy
        if isinstance(device, str) and "," in device:
            return self._encode_on_devices(
                sentences,
                device.split(","),
                as_tensor=as_tensor,
                batch_size=batch_size,
                show_progress_bar=show_progress_bar,
                normalize_embeddings=normalize_embeddings,
                precision=precision,
            )
        single = isinstance(sentences, str)
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}", key="batch_size")
        listed = [sentences] if isinstance(sentences, str) else sentences
        places, again, firsts = _find_equal(listed)
        count = len(places) + len(again)
        if device is not None:
            self.to(device)
        where = self.device if as_tensor else torch.device("cpu")
        out = torch.empty(count, self.dimension, device=where)
        per_row = _TOKENS_PER_ROW.get(self.device.type, _TOKENS_PER_ROW["cuda"])
        budget = batch_size * per_row
        with evaluation(self), encoding_bar(len(places), show=show_progress_bar) as advance:
            distinct = iter(places.items())
            while window := list(islice(distinct, WINDOW)):
                ids = self.tokenize([text for text, _ in window])
                rows = torch.tensor([row for _, row in window], device=where)
                lengths = [len(row) for row in ids]
                for batch in token_budget_batches(lengths, budget):
                    of_texts = [ids[row] for row in batch]
                    vectors = self._encode_batch(of_texts, precision, normalize_embeddings)
                    of_batch = rows[torch.tensor(batch, device=where)]
                    out[of_batch] = vectors.to(where)
                    advance(len(batch))
        _copy_rows(out, firsts, again)
        result = out[0] if single else out
        return result if as_tensor else result.numpy()

    @torch.inference_mode()
    def _encode_batch(
        self,
        ids: TokenIds,
        precision: str | None,
        normalize: bool,
    ) -> Tensor:
        """Return vectors (n, d) in float32."""
        with autocast(precision, self.device):
            features = self.collate(ids)
            vectors = self.forward(features).float()
            if normalize:
                vectors = functional.normalize(vectors, dim=-1)
            return vectors

    def _encode_on_devices(
        self,
        sentences: str | Iterable[str],
        devices: Sequence[str],
        *,
        as_tensor: bool,
        **options: Any,
    ) -> Any:
        from harness.encoder.several_devices import encode_on_devices

        single = isinstance(sentences, str)
        listed = [sentences] if isinstance(sentences, str) else sentences
        texts = [clean(text, row) for row, text in enumerate(listed)]
        if texts:
            vectors = encode_on_devices(self, texts, devices, **options)
        else:
            vectors = self.encode(texts, **options)
        if single:
            vectors = vectors[0]
        return torch.from_numpy(vectors) if as_tensor else vectors

    @replay_pass()
    def hidden_states(self, features: Features) -> tuple[Tensor, ...]:
        """(H_0 .. H_L) of collated `features`, each (n, length, d); the checkpoint's own dropout in
        training.

        H_0 is the output of the embedding block, H_L what the last layer gives, its final
        normalisation included.
        """
        add_tokens(features["attention_mask"])
        states, last = self._run(self._to_device(features), every_layer=True)
        return (*states[:-1], last)

    @replay_pass()
    def token_states(self, features: Features) -> Tensor:
        """What pooling reduces over tokens (n, length, d): H_L, or the average of the layers that
        the pooling names, after the token module if there is one; the checkpoint's own dropout in
        training.
        """
        add_tokens(features["attention_mask"])
        return self._tokens(self._to_device(features))

    @replay_pass(cut=True)
    def pool(self, tokens: Tensor, attention_mask: Tensor) -> Tensor:
        """Vectors (n, d) of token vectors (n, length, d): reduced over tokens, head and affine
        applied.

        `pool(token_states(features), counted(features))` is `forward(features)`.
        """
        return self._pool(tokens, attention_mask)

    def _pool(self, tokens: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask.to(tokens.device)
        vectors: Tensor = self.head(reduce_tokens(tokens, mask, self.pooling.mode))
        return vectors if self.affine is None else self.affine(vectors)

    def pooling_mask(self, features: Features) -> Tensor:
        """The tokens that the pooling counts (n, length): the real ones, those of a second copy, or
        of each row the one that it reads.
        """
        mask = features["attention_mask"]
        if PROMPT in features:
            places = torch.arange(mask.shape[1], device=mask.device)
            length = features[PROMPT].to(mask.device)
            mask = mask * (places >= length[:, None])
        if self.echo_frame is not None:
            mask = self.echo_frame.second(features["input_ids"], mask)
        if self.pooling.reads == "all":
            return mask
        if self.pooling.reads == "mask":
            at = features["input_ids"] == self.tokenizer.mask_token_id
        else:
            at = None
        counted = one_token(mask, at)
        several = self.pooling.prompt is not None and self.pooling.prompt.several_masks
        return one_token(counted) if several else counted

    def copy(self) -> Self:
        """An independent copy: own weights and own dropout rates; only the tokenizer is shared."""
        return copy.deepcopy(self, {id(self.tokenizer): self.tokenizer})

    def _ids(self, given: Rows) -> TokenIds:
        """Token rows of texts; token rows as they are."""
        texts = [row for row in given if isinstance(row, str)]
        return self.tokenize(texts, self.train_length) if texts else given  # type: ignore[return-value]

    def _vectors(self, features: Features) -> Tensor:
        tokens = self._tokens(features)
        mask = self.pooling_mask(features)
        if PROMPT in features and self.pooling.mode == "cls":  # the first token that counts
            first = mask.argmax(dim=1)
            tokens = tokens[torch.arange(len(tokens)), first].unsqueeze(1)
        return self._pool(tokens, mask)

    def finish(self) -> Self:
        """End with unit vectors where the sentence encoder does that training started from."""
        if self.ends_normalized:
            self.head.append(Normalize())
            self.ends_normalized = False
        return self

    def _to_device(self, features: Features) -> Features:
        device = self.device
        moved = {}
        for name, tensor in features.items():
            moved[name] = tensor.to(device, non_blocking=True)
        return moved

    def _tokens(self, features: Features) -> Tensor:
        layers = self.pooling.layers(self._depth)
        last_alone = layers == (self._depth,)
        states, last = self._run(features, every_layer=not last_alone)
        tokens = last if last_alone else average_layers(states, layers)
        return (
            tokens
            if self.token_module is None
            else self.token_module(tokens, features["attention_mask"])
        )

    def _run(
        self,
        features: Features,
        *,
        every_layer: bool = False,
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """What the transformer gives as its hidden states (of every layer, or none) and as the last
        one.
        """
        options = {"output_hidden_states": True} if every_layer else {}
        mask = features["attention_mask"]
        features = {name: tensor for name, tensor in features.items() if name != PROMPT}
        packs_batch = self.packed and self.training and len(mask) > 1
        if packs_batch and not bool(mask.all()):
            return run_packed(self.transformer, self.view_rates, features, **options)
        output = self.transformer(**features, **options)
        states = output.hidden_states if every_layer else ()
        last = output.last_hidden_state
        if self.dtype == "fp32":  # under autocast, and in float64: as it computed them
            return states, last
        return tuple(state.float() for state in states), last.float()

    def _in_parts(
        self,
        encode: Callable[[Features], Tensor],
        parts: Sequence[Features],
    ) -> list[Tensor]:
        """`encode` of every part; of several only the results are stored, and the backward pass
        encodes each once more.

        GradCache (Gao et al., RepL4NLP 2021): the memory of the layers is that of one part, the
        gradient is that of the whole batch. PyTorch's checkpointing restores for each part the
        random numbers of CPU and device and the autocast of the first pass, and complains where the
        second differs in shape.

        Args:
            encode: a function of its argument, the weights and the generators of random numbers
                alone.
            parts: on the device that encodes them, whose generator is restored.
        """
        if len(parts) == 1 or not torch.is_grad_enabled():
            return [encode(features) for features in parts]
        self.view_rates.jagged = False  # what is computed again must have plain tensors
        return [checkpoint(encode, features, use_reentrant=False) for features in parts]


def _find_equal(sentences: Iterable[str]) -> tuple[dict[str, int], array[int], array[int]]:
    """Find equal sentences.

    Returns:
        Each distinct sentence, cleaned, with the row of the first of its kind; the rows of the
        others; and for each of these the row of the first that it equals.

    Raises:
        InputError: something that is not a string.
    """
    places: dict[str, int] = {}
    again = array("q")
    firsts = array("q")
    for row, text in enumerate(sentences):
        first = places.setdefault(clean(text, row), row)
        if first != row:
            again.append(row)
            firsts.append(first)
    return places, again, firsts


def _copy_rows(out: Tensor, originals: array[int], copies: array[int]) -> None:
    """Copy rows of `out` (n, d) to the rows of equal sentences, some at a time."""
    for start in range(0, len(copies), WINDOW):
        end = start + WINDOW
        to = torch.tensor(copies[start:end], device=out.device)
        of = torch.tensor(originals[start:end], device=out.device)
        out[to] = out[of]


def _cuts(rows: int, size: int | None) -> list[slice]:
    """0 .. rows - 1 in slices of `size`, the last one shorter; one slice where `size` is None."""
    size = size or max(rows, 1)
    cuts = []
    for start in range(0, max(rows, 1), size):
        cuts.append(slice(start, min(start + size, rows)))
    return cuts
