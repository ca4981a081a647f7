"""Tiny random encoders of several families, saved as a base model would be."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    ModernBertConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    RobertaConfig,
    XLMRobertaConfig,
)

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "and",
    "ran",
    "fast",
    "slow",
    "red",
    "big",
    "small",
    "tree",
    "bird",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TEXTS = [
    "the cat sat on the mat",
    "a dog ran",
    "",
    "big red bird sang and the small blue bird sang",
    "xyzzy cat",
    "tree",
]
SHAPE = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 26,
    "pad_token_id": 1,
}
DISTIL = {
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 26,
    "pad_token_id": 1,
}
FAMILIES: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SHAPE),
    "roberta": RobertaConfig(**SHAPE),
    "distilbert": DistilBertConfig(vocab_size=SHAPE["vocab_size"], **DISTIL),
    "mpnet": MPNetConfig(**SHAPE),
    "xlm-roberta": XLMRobertaConfig(**SHAPE),
}

# Types whose checkpoints drop nothing by themselves. Qwen3 has no place for dropout of hidden
# states either.
NO_DROPOUT: dict[str, PreTrainedConfig] = {
    "modernbert": ModernBertConfig(**SHAPE, global_attn_every_n_layers=2, local_attention=8),
    "qwen3": Qwen3Config(**SHAPE, num_key_value_heads=2, head_dim=8),
}


def tokenizer(lower: bool = True) -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    if lower:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", **names
    )


def base_model(folder: Path, family: str = "bert", *, lower: bool = True) -> str:
    """Save a random model of `family`, weights large enough that layers and tokens matter, and
    return its folder.
    """
    torch.manual_seed(7)
    model = AutoModel.from_config({**FAMILIES, **NO_DROPOUT}[family])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer(lower).save_pretrained(folder)
    return str(folder)


def causal_model(folder: Path) -> str:
    """Save a random Qwen3 with a byte-level tokenizer, without padding token or frame, and return
    its folder.
    """
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([f"the sentence {text}" for text in TEXTS] * 4, trainer)
    torch.manual_seed(7)
    shape = {
        **SHAPE,
        "vocab_size": backend.get_vocab_size(),
        "max_position_embeddings": 128,
        "pad_token_id": None,
    }
    model = AutoModel.from_config(Qwen3Config(**shape, num_key_value_heads=2, head_dim=8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>").save_pretrained(folder)
    return str(folder)
