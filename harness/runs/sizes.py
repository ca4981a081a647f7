"""What an experiment leaves to its text and base model, resolved: a budget by the size of the text,
and pooling and length of texts as the base model has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.runs.conditions import CorpusSettings
from harness.runs.experiment import BudgetSettings, Experiment

if TYPE_CHECKING:
    from harness.sources import Corpus

OWN = "own"  # the value of a key of `shared`: as the base model has it
FEWEST = 3_200  # sentences that a row sees, by the size of the text: 100 steps of 32
MOST = 6_400  # 200 steps: minutes with a small model on a laptop
LOOKS = 8  # scores on the dev set in that budget


def resolve_sizes(
    experiment: Experiment, load_text: Callable[[CorpusSettings], Corpus]
) -> Experiment:
    """Return the experiment with numbers in place of what follows from text and base model.

    Args:
        load_text: opens a text.

    Raises:
        InputError: several base models whose own pooling is wanted, or text or model that is not
            available.
    """
    update: dict[str, Any] = {}
    own = [key for key in ("pooling", "max_length") if experiment.shared.get(key) == OWN]
    if own:
        update["shared"] = {**experiment.shared, **_read_own(experiment, own)}
    if experiment.budget.by_text:
        most = experiment.budget.sentences or MOST
        sentences = min(max(len(load_text(experiment.corpus)), FEWEST), most)
        update["budget"] = BudgetSettings(sentences=sentences)
        dev = experiment.dev
        batch = experiment.shared.get("batch_size")
        if dev is not None and dev.every is None and isinstance(batch, int):
            every = max(1, sentences // batch // LOOKS)
            update["dev"] = dev.model_copy(update={"every": every})
    if update:
        return experiment.model_copy(update=update)
    return experiment


def _read_own(experiment: Experiment, keys: list[str]) -> dict[str, Any]:
    """Return pooling and length of the base model."""
    from harness.encoder import Encoder

    if len(experiment.base_models) > 1:
        message = f'"{OWN}" goes with one base model'
        raise InputError(message, key=f'[shared] key "{keys[0]}"', remedy="name the value")
    encoder = Encoder.from_pretrained(experiment.base_models[0])
    values = {"pooling": encoder.pooling.name, "max_length": encoder.max_length}
    return {key: values[key] for key in keys}
