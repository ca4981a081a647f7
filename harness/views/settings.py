"""The settings of a view, to be mixed into a method's config."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from harness.config import Config, nearest, option
from harness.views.documents import CropPair, crops_needed, sentence_crops
from harness.views.eda import Operations

DOCUMENT_VIEWS = ("sentence_crop", "token_crop")
WORD_VIEWS = ("word_crop", "word_deletion", "synonym")
TEXT_VIEWS = ("paraphrase", "sentence_crop", "eda", *WORD_VIEWS, "token_crop")
TOKEN_VIEWS = ("shuffle", "deletion", "repetition", "crop")
VIEWS = ("dropout", *TEXT_VIEWS, *TOKEN_VIEWS)


_Share = Annotated[float, Field(gt=0, le=1)]


def both(rate_a: float | None, rate_b: float | None) -> tuple[float, float] | None:
    """The dropout rates of both views; None, the checkpoint's own, unless both are given."""
    if rate_a is None or rate_b is None:
        return None
    return (rate_a, rate_b)


class ViewConfig(Config):
    """How the two views of a sentence differ. Rates of views that `view` does not name have no
    effect.
    """

    view: str = option(
        "dropout",
        f"how the two views differ: {', '.join(VIEWS)}; several, in this order of making, as in crop+shuffle",
    )
    dropout: float | None = option(
        0.1,
        "dropout view: rate of both views; empty: of hidden states, the checkpoint's own",
        ge=0,
        lt=1,
        sweep=[0.05, 0.1, 0.2],
        when={"view": "dropout"},
    )
    dropout_b: float | None = option(
        None, "dropout view: rate of the second view; empty: as the first", ge=0, lt=1
    )
    attention_dropout: Literal["views", "checkpoint"] = option(
        "views",
        "dropout view: attention probabilities get the views' rates, or the checkpoint's own",
    )
    attention_rate: float | None = option(
        None,
        "dropout view: rate of attention probabilities in both views; empty: as attention_dropout says",
        ge=0,
        lt=1,
    )
    native_dropout: bool = option(
        False, "views without dropout: keep the checkpoint's own (default: none)"
    )
    shuffle: float = option(
        0.1,
        "shuffle view: share of the ordinary tokens permuted",
        gt=0,
        le=1,
        sweep=[0.05, 0.1, 0.2, 0.3, 0.5],
        when={"view": "shuffle"},
    )
    eda: float = option(
        0.1,
        "eda view: share of the words changed (alpha)",
        gt=0,
        lt=1,
        sweep=[0.1, 0.2],
        when={"view": "eda"},
    )
    eda_operations: Operations = option(
        "one", "eda view: one of the four operations, drawn for each view, or all"
    )
    deletion: float = option(
        0.1,
        "deletion view: probability of a token's loss",
        gt=0,
        lt=1,
        sweep=(0.05, 0.5),
        when={"view": "deletion"},
    )
    repetition: float = option(
        0.32,
        "repetition view: largest share of tokens doubled",
        gt=0,
        le=1,
        sweep=(0.05, 0.5),
        when={"view": "repetition"},
    )
    crop: float = option(
        0.1,
        "crop view: share of the tokens cut off the two ends",
        gt=0,
        lt=1,
        sweep=(0.05, 0.5),
        when={"view": "crop"},
    )
    word_crop: float = option(
        0.1,
        "word_crop view: share of the words cut off the two ends",
        gt=0,
        lt=1,
        sweep=(0.05, 0.5),
        when={"view": "word_crop"},
        later=True,
    )
    word_deletion: float = option(
        0.1,
        "word_deletion view: share of the words deleted, of any sentence at least one; 0: one word",
        ge=0,
        lt=1,
        sweep=(0.0, 0.5),
        when={"view": "word_deletion"},
        later=True,
    )
    synonyms: int = option(
        1,
        "synonym view: words that WordNet's synonyms replace",
        ge=1,
        sweep=[1, 2, 3],
        when={"view": "synonym"},
        later=True,
    )
    pairs_are_labelled: bool = option(
        True,
        "paraphrase view: people judged or wrote the pairs (the row then counts as supervised)",
    )
    sentence_crop: int = option(
        2,
        "sentence_crop view: sentences of a crop",
        ge=1,
        sweep=[1, 2, 3],
        when={"view": "sentence_crop"},
        later=True,
    )
    shortest: int = option(
        100, "sentence_crop view: characters of the shortest sentence used", ge=1, later=True
    )
    longest: int = option(
        250, "sentence_crop view: characters of the longest sentence used", ge=1, later=True
    )
    crop_pair: CropPair = option(
        "different",
        "sentence_crop view: different crops, disjoint ones (no common sentence), or the same one twice",
        later=True,
    )
    token_crop: tuple[_Share, _Share] = option(
        (0.05, 0.5),
        "token_crop view: least and largest share of a chunk that a crop takes",
        later=True,
    )
    chunk: int = option(256, "token_crop view: tokens of the chunk of a document", ge=1, later=True)

    @field_validator("token_crop")
    @classmethod
    def _least_first(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise ValueError("the first share must not be larger than the second")
        return value

    @field_validator("view", mode="before")
    @classmethod
    def _chain_as_text(cls, value: Any) -> Any:
        if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
            return "+".join(value)
        return value

    @field_validator("view")
    @classmethod
    def _check_views(cls, value: str) -> str:
        names = value.split("+")
        for name in names:
            if name not in VIEWS:
                raise ValueError(
                    f'no view "{name}"{nearest(name, list(VIEWS))}; views: {", ".join(VIEWS)}'
                )
        if len(set(names)) < len(names):
            raise ValueError("names a view twice")
        words = {"eda", *WORD_VIEWS} & set(names)
        if len({"paraphrase", *DOCUMENT_VIEWS} & set(names)) > 1 or (
            "token_crop" in names and words
        ):
            raise ValueError(
                "joins two of paraphrase, sentence_crop and token_crop, or a view of words "
                f"({', '.join(('eda', *WORD_VIEWS))}) and token_crop"
            )
        first = [view for view in TEXT_VIEWS if view in names]
        then = [name for name in names if name in TOKEN_VIEWS]
        order = [*first, *then]
        if [name for name in names if name != "dropout"] != order:
            raise ValueError(f'words come before tokens: write it as "{"+".join(order)}"')
        return value

    @model_validator(mode="after")
    def _second_rate_has_a_first(self) -> Self:
        if self.dropout is None and self.dropout_b is not None:
            raise ValueError('keys "dropout" and "dropout_b": give both, or leave both empty')
        return self

    @property
    def views(self) -> tuple[str, ...]:
        """The chain, in order."""
        return tuple(self.view.split("+"))

    @property
    def needs_wordnet(self) -> bool:
        """True if synonyms of words are needed."""
        return not {"eda", "synonym"}.isdisjoint(self.views)

    @property
    def of_documents(self) -> bool:
        """Are the views made from documents?"""
        return not {*DOCUMENT_VIEWS}.isdisjoint(self.views)

    @property
    def of_tokens(self) -> bool:
        """Are the views made from token ids?"""
        return not {*TOKEN_VIEWS, "token_crop"}.isdisjoint(self.views)

    def crops(self, text: str) -> list[str]:
        """The sentence crops of a document; none where it has too few for a pair."""
        crops = sentence_crops(text, self.sentence_crop, self.shortest, self.longest)
        if len(crops) >= crops_needed(self.sentence_crop, self.crop_pair):
            return crops
        return []

    @property
    def dropout_rates(self) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
        """(hidden, attention) dropout: a rate for each view, or None for the checkpoint's own."""
        if "dropout" not in self.views:
            # "Augmentations are not combined" (Farina & Pappadopulo, section 3), read literally
            if self.native_dropout:
                return (None, None)
            return ((0.0, 0.0), (0.0, 0.0))
        hidden = both(self.dropout, self.dropout if self.dropout_b is None else self.dropout_b)
        if self.attention_rate is not None:
            return hidden, (self.attention_rate, self.attention_rate)
        return hidden, hidden if self.attention_dropout == "views" else None

    @property
    def differ_by(self) -> str:
        """What to set where the two views turn out to be equal."""
        if "dropout" in self.views:
            return "set dropout, or attention_rate alone, to a rate above 0, such as 0.1"
        if self.view == "paraphrase":
            return "give pairs whose two sides are not the same text"
        if self.of_documents:
            return "set native_dropout = true, or crop_pair to another than same"
        changes = (*TOKEN_VIEWS, "eda", *WORD_VIEWS)
        names = (name for name in self.views if name in changes)
        rates = " or ".join("synonyms" if name == "synonym" else name for name in names)
        return (
            f"raise {rates}, or set native_dropout = true where the checkpoint has rates of its own"
        )
