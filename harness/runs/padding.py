"""What random batches cost where batches are padded: a line of the dry run."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.files.printable import join_some
from harness.runs.typical_costs import read_settings
from harness.sources.embedded import cached_by_model

if TYPE_CHECKING:
    from harness.runs.plan import Plan
    from harness.runs.rows import Row
    from harness.training import BatchStream

LIKE = 32  # the megabatch that random batches are compared with
_BATCHES = 50  # of each order
_LEAST = 1.05  # times the tokens: less is not worth a line
# Types of models that were tried: to build one takes seconds.
PACKED_TYPES = frozenset({"bert", "roberta", "xlm-roberta", "distilbert", "modernbert"})


def describe_padding(plan: Plan) -> str:
    """Say how many more tokens the random batches of rows have whose base model cannot be packed, or
    whose `packed` is false; "" where that is little.
    """
    from harness.machine.environment import pick_device

    found: dict[str, float] = {}
    device = plan.experiment.device
    if device == "auto":
        device = pick_device(device)
    on_gpu = device != "cpu"
    for row in plan.rows:
        why = _why_padded(row, on_gpu)
        if why:
            times = _times_the_tokens(row, plan)
            if times is not None and times >= _LEAST:
                found[f"{row.label} ({why})"] = times
    if not found:
        return ""
    most = max(found.values())
    return (
        f"padded batches: {join_some(list(found))}; random ones have up to {most:.2f} times the "
        f"tokens of batches of like length (bucket = {LIKE})"
    )


def _why_padded(row: Row, on_gpu: bool) -> str:
    """Return why a row's random batches are padded; "" where they are not, or nothing is trained."""
    config: Any = row.config
    is_random = getattr(config, "bucket", 0) == 1
    if not is_random or not hasattr(config, "packed"):
        return ""
    if config.packed is False:
        return "packed = false"
    if on_gpu and config.packed == "auto":
        return "on a GPU"
    if can_pack(row.base_model):
        return ""
    return f"{row.base_model} cannot be packed"


@cached_by_model
def can_pack(base_model: str) -> bool:
    """True if models of this type read batches without padding. Of a model without a configuration:
    True, for nothing is known.
    """
    settings = read_settings(base_model)
    if settings is not None and settings.get("model_type") in PACKED_TYPES:
        return True
    from harness.encoder.loading import read_config  # which imports transformers

    try:
        config = read_config(base_model)
    except HarnessError:
        return True
    return config.model_type in PACKED_TYPES or try_packing(config)


def try_packing(config: Any) -> bool:
    """Return whether one layer of this configuration, with random weights, gives packed texts the
    states of padded ones.
    """
    import torch
    from transformers import AutoModel

    from harness.encoder.dropout import attach, packs
    from harness.encoder.quiet import quiet_transformers

    config.num_hidden_layers = 1
    lengths = (3, 8, 5)
    rows = [[int(place < length) for place in range(8)] for length in lengths]
    mask = torch.tensor(rows)
    numbers = torch.arange(24).reshape(3, 8)
    ids = (numbers % 7 + 2) * mask
    features = {"input_ids": ids, "attention_mask": mask}
    try:
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            transformer = AutoModel.from_config(config).float()
            return packs(transformer, attach(transformer), features)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return False


def _times_the_tokens(row: Row, plan: Plan) -> float | None:
    """Return how many times the tokens of batches of like length random batches have, padding
    included, by the lengths of the texts; None where the row has batches of its own.
    """
    from harness.runs.inputs import load_text
    from harness.training import BatchStream

    if row.corpus is None:
        return None
    corpus = load_text(row.corpus)
    sizes = []
    for bucket in (1, LIKE):
        config = row.config.model_copy(update={"bucket": bucket})
        method: Any = row.method(config, base_model=row.base_model)
        stream: BatchStream = method.stream(corpus, 0)
        if type(stream) is not BatchStream:
            return None
        sizes.append(_measure_padding(stream))
    return sizes[0] / sizes[1]


def _measure_padding(stream: BatchStream) -> float:
    """Return rows x longest row over the sum of all lengths, of the first batches, in characters
    cut as the stream cuts them.
    """
    whole = real = 0
    batches = map(stream.batch, range(stream.steps_per_epoch))
    for batch in islice(batches, _BATCHES):
        lengths = [min(len(text), stream.length_cap) for text in batch.texts]
        whole += len(lengths) * max(lengths)
        real += sum(lengths)
    return whole / max(real, 1)
