"""The family of a base model: what a paper means by "BERT-base", read from its configuration, never from its name.

Type, width, depth and vocabulary decide. A model that a user has trained further, renamed or copied into a folder keeps
its family; recipes (`harness.recipes`) are declared by family.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from harness.encoder.layout import no_model
from harness.encoder.quiet import quiet_transformers

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MINI = "mini"
_MINI_WIDTH = 256  # of the embedded model; no model that a paper starts from is as narrow
_MULTILINGUAL_VOCABULARY = 100_000  # tokens of mBERT: 119,547; of BERT in one language: about 30,000

# (type, width, depth)
_FAMILIES = {
    ("bert", 768, 12): "bert-base",
    ("bert", 1024, 24): "bert-large",
    ("roberta", 768, 12): "roberta-base",
    ("roberta", 1024, 24): "roberta-large",
    ("roberta", 768, 6): "distilroberta",
    ("distilbert", 768, 6): "distilbert",
    ("xlm-roberta", 768, 12): "xlm-roberta-base",
    ("xlm-roberta", 1024, 24): "xlm-roberta-large",
    ("modernbert", 768, 22): "modernbert-base",
    ("modernbert", 1024, 28): "modernbert-large",
    ("albert", 768, 12): "albert-base",
    ("mpnet", 768, 12): "mpnet-base",
}


@cache
def family_of(base_model: str) -> str:
    """The family of "embedded:NAME", a folder or a hub id; only its configuration is read.

    "mini" is the embedded model and every model as narrow, "bert-base-multilingual" a BERT-base with a vocabulary above
    100,000; a model of none of the known families is called "TYPE-WIDTHxDEPTH".

    Raises:
        InputError: no such model, or one whose configuration transformers does not know.
    """
    config = _configuration(base_model)
    kind = str(config.model_type)
    width, depth = _dimensions(config)
    if 0 < width <= _MINI_WIDTH:
        return MINI
    family = _FAMILIES.get((kind, width, depth), f"{kind}-{width}x{depth}")
    many = int(getattr(config, "vocab_size", 0)) > _MULTILINGUAL_VOCABULARY
    return "bert-base-multilingual" if family == "bert-base" and many else family


@cache
def _configuration(base_model: str) -> PretrainedConfig:
    from transformers import AutoConfig

    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_reachable

    try:
        with quiet_transformers():
            config: PretrainedConfig = AutoConfig.from_pretrained(
                resolve_model(base_model), trust_remote_code=False, local_files_only=not hub_reachable()
            )
    except (OSError, ValueError, KeyError) as error:
        raise no_model(base_model, error) from error
    return config


def _dimensions(config: PretrainedConfig) -> tuple[int, int]:
    """Width and depth."""
    return int(getattr(config, "hidden_size", 0)), int(getattr(config, "num_hidden_layers", 0))
