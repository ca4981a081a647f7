"""An answer that is read, computed with and shown: a verdict, what differences a number of seeds
can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """What a question about a comparison came to.

        >>> answer = harness.verdict(work, "mean", "cls")
        >>> answer.data["verdict"], len(answer.frame())
        ('better', 1)

    Attributes:
        text: as the command prints it; also what `str` and a notebook show.
        data: every number of it as plain values, as the command's `--json` writes it.
    """

    text: str
    data: Any = field(repr=False)
    rows: Sequence[Mapping[str, Any]] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """One row a pair of rows (`harness.verdict`), a number of seeds (`harness.power`), an
        example (`harness.examples`) or an own file (`harness.pack`); differences in points.
        """
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if "\n" not in self.text:
            return f"<p>{escape(self.text)}</p>"
        return f"<pre>{escape(self.text)}</pre>"
