"""A rehearsal: the same file on a laptop, every row and task of it, with a small model, little text and few updates."""

from __future__ import annotations

from typing import Any

from harness.comparison.budget import BudgetSettings
from harness.comparison.experiment import CorpusSettings, DevSettings, Experiment, Rehearsal
from harness.comparison.plan import LoadedData
from harness.errors import HarnessError
from harness.sources import Corpus

SUFFIX = "-rehearsal"
ALWAYS = "Embedded-STS-natural"  # what every row is scored on and selected by, whatever cannot be had


class StandIns(LoadedData):
    """The beginning of each text, or embedded text of its kind where it cannot be had."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        super().__init__()
        self.rehearsal: Rehearsal = rehearsal

    def corpus(self, c: CorpusSettings) -> Corpus:
        """The text itself as far as the rehearsal reads it, else embedded text.

        Raises:
            InputError: neither can be had: no embedded text is of this kind.
        """
        limit = min(self.rehearsal.limit, c.limit or self.rehearsal.limit)
        given = self.rehearsal.corpora.get(c.uri)
        wanted = {"limit": limit} if given is None else {"limit": limit, "uri": given, "columns": None}
        try:
            return super().corpus(c.model_copy(update=wanted))
        except HarnessError:
            embedded = {"limit": limit, "uri": f"embedded:{c.kind}", "columns": None}
            return super().corpus(c.model_copy(update=embedded))


def rehearsed(experiment: Experiment, data: StandIns) -> Experiment:
    """The experiment as it is rehearsed, under a name of its own; `data` is what its plan reads."""
    r = experiment.rehearsal
    whole: dict[str, Any] = {"base_models": [], "max_steps": None}  # of a row or block: as all others
    update = {
        "name": f"{experiment.name}{SUFFIX}",
        "title": f"Rehearsal: {experiment.title or experiment.name}",
        "base_models": [r.base_model],
        "family": None,  # that of the model which stands in
        "seeds": experiment.seeds[: r.seeds],
        "max_steps": min(r.max_steps, experiment.max_steps or r.max_steps),
        "budget": BudgetSettings(),  # its own bound is enough
        "suites": [*experiment.suites, ALWAYS],
        "dev": _dev(experiment.dev, data),
        "keep": "none",
        "blocks": {
            name: block.model_copy(
                update={**whole, "seeds": block.seeds[: r.seeds], "suites": block.suites and [*block.suites, ALWAYS]}
            )
            for name, block in experiment.blocks.items()
        },
        "methods": [
            entry.model_copy(update={**whole, "seeds": entry.seeds[: r.seeds], "family": None})
            for entry in experiment.methods
        ],
    }
    return experiment.model_copy(update=update)


def _dev(dev: DevSettings | None, data: StandIns) -> DevSettings | None:
    """The selection set, or the embedded one where it cannot be had."""
    if dev is None:
        return None
    try:
        data.dev_set(dev)
    except HarnessError:
        return DevSettings(task=ALWAYS, every=dev.every)
    return dev
