"""LLM2Vec: a causal model that is made to look both ways, first by masked next-token prediction,
then by SimCSE.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.masked_lm import IGNORED, mask_tokens, masked_lm_loss, pad_labels
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError
from harness.method import POOLING_HELP, FitContext
from harness.recipes import RecipeFile
from harness.sources import TrainingText, resolve_model
from harness.training import Batch, TrainedMethod, TrainingConfig
from harness.views.settings import both
from methods.objectives import nt_xent

BLANK = "_"  # what masks a token where the tokenizer has no mask token


def masked_next_token_loss(states: Tensor, labels: Tensor, vocabulary: Tensor) -> Tensor:
    """Mean cross-entropy in nats of the masked tokens, each read from the state of the token before
    it.

    L = -mean over masked t of log softmax(V h_(t-1))[x_t]

    Args:
        states: (n, length, d). labels: (n, length), -100 where nothing is predicted. vocabulary: V
            (size, d).

    Source: BehnamGhader et al., COLM 2024, section 2.
    """
    truth = labels[:, 1:]
    chosen = truth != IGNORED
    return masked_lm_loss(functional.linear(states[:, :-1][chosen], vocabulary), truth[chosen])


def load_output_embeddings(name: str) -> Tensor | None:
    """Load the output embeddings of a causal model (size, d); None where they are its input
    embeddings, too, or where the checkpoint has none.
    """
    from transformers import AutoModelForCausalLM

    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            resolve_model(name),
            output_loading_info=True,
            dtype=torch.float32,
            trust_remote_code=False,
            use_safetensors=True,
        )
    model, report = loaded
    outputs = model.get_output_embeddings()
    if outputs is None or outputs.weight is model.get_input_embeddings().weight:
        return None
    missing = any("head" in key or "output" in key for key in report["missing_keys"])
    return None if missing else outputs.weight.detach().clone()


def add_lora(encoder: Encoder, rank: int, alpha: float, dropout: float) -> None:
    """Put low-rank adapters on all linear layers of the transformer; nothing else is trained.

    Raises:
        InputError: peft is not installed.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise InputError(
            'llm2vec: key "lora" needs peft: pip install "sentence-harness[lora]"', key="lora"
        ) from None
    settings = LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear"
    )
    inject_adapter_in_model(settings, encoder.transformer)


def merge_lora(encoder: Encoder) -> None:
    """Add the adapters to the weights that they adapt; the transformer is of its own type again."""
    from peft.tuners.lora import LoraLayer

    for name, module in list(encoder.transformer.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            parent, _, leaf = name.rpartition(".")
            setattr(encoder.transformer.get_submodule(parent), leaf, module.get_base_layer())
    encoder.requires_grad_(True)


def _warm_up(step: int, warm: int) -> float:
    """Return the share of the peak rate: from 0 to 1 over `warm` steps, then 1."""
    if warm:
        return min(1.0, step / warm)
    return 1.0


class LLM2VecConfig(TrainingConfig):
    """Defaults: the paper's, but for LoRA, which needs an extra."""

    pooling: str = option("mean", POOLING_HELP)
    batch_size: int = option(128, "sentences per training step", ge=2, sweep=[32, 64, 128])
    train_length: int = option(
        128, "maximum number of tokens in training, special tokens included", ge=4
    )
    bidirectional: bool = option(True, "every token attends to all others, also when encoding")
    mntp_steps: int = option(
        1000, "first training steps, of masked next-token prediction; 0: SimCSE alone", ge=0
    )
    mntp_learning_rate: float = option(5e-5, "peak learning rate of those steps", gt=0)
    mask: float = option(0.2, "share of the tokens that are masked and predicted", gt=0, lt=1)
    masking: Literal["all", "bert"] = option(
        "bert",
        "how: all become the mask token, or as BERT has it 80 %, 10 % a random one, and 10 % stay",
    )
    attention_rate: float = option(
        0.3, "dropout of attention probabilities in both views", gt=0, lt=1
    )
    temperature: float = option(0.05, "divides the cosines", gt=0, sweep=(0.01, 1.0), log=True)
    lora: int | None = option(
        None, "rank of adapters that are trained alone (paper: 16; extra lora); empty: all", ge=1
    )
    lora_alpha: float = option(32.0, "scale of the adapters, divided by their rank", gt=0)
    lora_dropout: float = option(0.05, "dropout of what enters the adapters", ge=0, lt=1)


class LLM2Vec(TrainedMethod):
    """`masked_next_token_loss` for the first training steps, then NT-Xent of two views that differ by
    attention dropout.
    """

    name = "llm2vec"
    version = 2  # 1: all chosen tokens were masked, and both rates fell to 0
    sheet = RecipeFile.beside(__file__)
    Config = LLM2VecConfig

    def load_base(self) -> Encoder:
        """Load the base model, in which each token attends to all others."""
        encoder = super().load_base()
        if self.config.bidirectional:
            # transformers' own switch, which a saved model keeps.
            encoder.transformer.config.is_causal = False
        return encoder

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return the vocabulary that masked tokens are predicted over; also put the adapters into the
        encoder.
        """
        c = self.config
        heads = nn.Module()
        if c.mntp_steps:
            heads.register_buffer("vocabulary", load_output_embeddings(self.base_model))
        if c.lora is not None:
            add_lora(encoder, c.lora, c.lora_alpha, c.lora_dropout)
        return heads

    def schedule(self, step: int, steps: int) -> float:
        """Share of the peak rate: linear warm-up to a constant in each phase, the first at its own."""
        c: LLM2VecConfig = self.config
        first = min(c.mntp_steps, steps)
        if step < first:
            peak = c.mntp_learning_rate / c.learning_rate
            return _warm_up(step, c.warm_updates(first)) * peak
        return _warm_up(step - first, c.warm_updates(steps - first))

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        c: LLM2VecConfig = self.config
        if batch.step < c.mntp_steps:
            ids = encoder.tokenize(batch.texts, max_length=c.train_length)
            return {"loss": self._predict_masked(encoder, heads, ids, batch)}
        rate = both(c.attention_rate, c.attention_rate)
        h_a, h_b = encoder.two_views(
            batch.texts, attention_dropout=rate, differ_by="raise attention_rate"
        )
        return {"loss": nt_xent(h_a, h_b, temperature=c.temperature)}

    def _predict_masked(
        self,
        encoder: Encoder,
        heads: Any,
        ids: list[list[int]],
        batch: Batch,
    ) -> Tensor:
        tokenizer = encoder.tokenizer
        mask = tokenizer.mask_token_id
        if mask is None:
            mask = tokenizer.convert_tokens_to_ids(BLANK)
        if mask is None:
            raise InputError(
                f'llm2vec: the base model\'s tokenizer has neither a mask token nor "{BLANK}"'
            )
        if self.config.masking == "bert":
            shares = (0.8, 0.1)
        else:
            shares = (1.0, 0.0)
        masked, labels = mask_tokens(
            ids,
            tokenizer,
            batch.rng,
            probability=self.config.mask,
            shares=shares,
            mask=int(mask),
        )
        states = encoder.hidden_states(encoder.collate(masked))[-1]

        vocabulary = heads.vocabulary
        if vocabulary is None:
            inputs: Any = encoder.transformer.get_input_embeddings()
            vocabulary = inputs.weight.detach()
        return masked_next_token_loss(states, pad_labels(labels).to(states.device), vocabulary)

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Train, and merge the adapters into the weights at the end."""
        super().fit(corpus, context)
        if self.config.lora is not None:
            merge_lora(self.encoder)
        return self
