"""What all rows of a comparison get alike: updates, sentences seen, seconds of a device, or trials of a search."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from harness.config import Config, option

# kind -> the key that says how much, and whether others may stand beside it
_AMOUNTS: dict[str, tuple[str, ...]] = {
    "own": (),
    "updates": ("updates",),
    "sentences": ("sentences",),
    "seconds": ("seconds", "device"),
    "trials": ("trials", "updates"),
}
BOUNDING = ("updates", "sentences", "seconds")  # the kinds that say how long a row trains


class BudgetSettings(Config):
    """What every row gets as much of as every other."""

    kind: Literal["own", "updates", "sentences", "seconds", "trials"] = option(
        "own",
        "what is equal: updates, sentences (or pairs, documents) seen, seconds of the training device, or trials of "
        "--tune; own: nothing, each row trains as its method, preset and max_steps say",
    )
    updates: int | None = option(None, "updates of every row; of kind trials: of every trial", ge=1)
    sentences: int | None = option(None, "items of text of every row: as many updates as see them, rounded up", ge=1)
    seconds: float | None = option(
        None,
        "of every row: processor time of its updates, or time on the GPU; its update is timed once, and what was "
        "measured is kept in the work directory",
        gt=0,
    )
    device: str | None = option(
        None, "whose measured seconds count, as budget.json of the work directory names it; empty: this machine's"
    )
    trials: int | None = option(None, "trials of the search of every row that can be searched, as --tune", ge=1)

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _amount_of_its_kind(self) -> Self:
        keys = _AMOUNTS[self.kind]
        strange = [key for key in type(self).model_fields if key not in ("kind", *keys) and getattr(self, key)]
        if strange:
            raise ValueError(f'expected no key "{strange[0]}" beside kind = "{self.kind}"')
        if keys and getattr(self, keys[0]) is None:
            raise ValueError(f'expected the key "{keys[0]}" beside kind = "{self.kind}"')
        return self

    @property
    def bounds(self) -> bool:
        """Does it say how many updates a row makes?"""
        return self.kind in BOUNDING

    def said(self, clock: str = "") -> tuple[str, str]:
        """The amount, and what it is of: ("30 s", "of processor time a row"); empty texts where nothing is equal.

        Args:
            clock: what the seconds are of ("processor time"), where that is known.
        """
        if self.kind == "updates":
            return f"{self.updates:,}", "updates a row"
        if self.kind == "sentences":
            return f"{self.sentences:,}", "sentences seen a row"
        if self.kind == "seconds":
            return f"{self.seconds:g} s", f"of {clock or 'training time'} a row"
        if self.kind == "trials":
            return f"{self.trials:,}", "trials of a search a row"
        return "", ""
