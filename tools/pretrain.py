"""Make the embedded model, or one like it: masked language modelling of a small BERT with
transformers' Trainer.

    python tools/pretrain.py TEXT... --out my-base [--steps 26000] [--vocabulary 16000]

TEXT are files with one text per line. The defaults are the recipe of `embedded:mini-bert`,
vocabulary included: 4 layers, 256 wide, sequences of 64 tokens packed without padding, 15 % masked
tokens (Devlin et al. 2019), AdamW with a linear decay, no dropout, weights saved in half precision.
`--base-model` continues a model instead, with its own shape, vocabulary and dropout. A run that was
interrupted resumes with the same command. Needs the package accelerate.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, load_dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
    set_seed,
)

EMBEDDED = Path(__file__).resolve().parents[1] / "harness" / "embedded" / "model"


def parse_args() -> argparse.Namespace:
    """The options; their defaults are the recipe of the embedded model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="+", help="text files, one text per line")
    parser.add_argument(
        "--out", required=True, type=Path, help="folder of the saved model; checkpoints: OUT.steps"
    )
    parser.add_argument(
        "--base-model",
        help="continue this model (hub id or folder) instead of starting from scratch",
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        help="learn so many tokens from the text; default: the base model's",
    )
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--steps", type=int, default=26_000, help="training steps")
    parser.add_argument("--batch-size", type=int, default=32, help="sequences of a training step")
    parser.add_argument(
        "--learning-rate", type=float, default=1e-3, help="the peak, after 2 %% of the steps"
    )
    parser.add_argument(
        "--hold-out", type=float, default=0.005, help="share of the sequences for validation"
    )
    parser.add_argument(
        "--bf16", action="store_true", help="bf16 autocast: faster where the processor has it"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def load_model(
    args: argparse.Namespace, texts: Dataset
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model to train and its tokenizer; a model from scratch has no dropout."""
    tokenizer = AutoTokenizer.from_pretrained(args.base_model or EMBEDDED)
    if args.base_model:
        model = AutoModelForMaskedLM.from_pretrained(
            args.base_model, dtype=torch.float32, use_safetensors=True
        )
        return model, tokenizer
    if args.vocabulary:
        batches = (texts[i : i + 1000]["text"] for i in range(0, len(texts), 1000))
        tokenizer = tokenizer.train_new_from_iterator(
            batches, args.vocabulary, min_frequency=2, show_progress=False
        )
    tokenizer.model_max_length = args.length
    shape = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.width,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.width,
        max_position_embeddings=args.length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForMaskedLM(shape), tokenizer


def pack(texts: Dataset, tokenizer: PreTrainedTokenizerBase, length: int) -> Dataset:
    """Sequences of `length` tokens, [CLS] ... [SEP]: the texts one after the other, with [SEP]
    between them.
    """
    body = length - 2

    def sequences(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
        rows = tokenizer(batch["text"], add_special_tokens=False, verbose=False)["input_ids"]
        tokens = list(chain.from_iterable([*row, tokenizer.sep_token_id] for row in rows))
        starts = range(0, len(tokens) - body + 1, body)
        return {
            "input_ids": [
                [tokenizer.cls_token_id, *tokens[i : i + body], tokenizer.sep_token_id]
                for i in starts
            ]
        }

    return texts.map(sequences, batched=True, batch_size=4096, remove_columns=texts.column_names)


def main() -> None:
    """Train, or continue from the last checkpoint, and save a Hugging Face folder."""
    args = parse_args()
    set_seed(args.seed)
    texts = load_dataset("text", data_files=args.text, split="train").filter(
        lambda row: row["text"].strip()
    )
    model, tokenizer = load_model(args, texts)
    parts = pack(texts, tokenizer, args.length).train_test_split(args.hold_out, seed=args.seed)
    checkpoints = Path(f"{args.out}.steps")
    settings = TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=args.steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=max(1, args.steps // 50),
        weight_decay=0.01,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        bf16=args.bf16,
        logging_steps=50,
        use_cpu=not torch.accelerator.is_available(),
        eval_strategy="steps",
        eval_steps=500,
        eval_on_start=True,
        save_steps=1000,
        save_total_limit=1,
        seed=args.seed,
        report_to="none",
        remove_unused_columns=False,
    )
    trainer = Trainer(
        model=model,
        args=settings,
        data_collator=DataCollatorForLanguageModeling(
            tokenizer, mlm_probability=0.15, seed=args.seed
        ),
        train_dataset=parts["train"],
        eval_dataset=parts["test"],
    )
    trainer.train(resume_from_checkpoint=any(checkpoints.glob("checkpoint-*")) or None)
    print(f"validation loss {trainer.evaluate()['eval_loss']:.3f} nats per masked token")
    if not args.base_model:
        model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = (
            0.1  # for fine-tuning
        )
        model.half()
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


if __name__ == "__main__":
    main()
