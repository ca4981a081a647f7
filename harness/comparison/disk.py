"""What a comparison needs of a disk, from the architectures of its base models: no weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from harness.comparison.estimate import texts_of
from harness.comparison.plan import Plan, PlannedCell
from harness.errors import InputError
from harness.evaluation.vector_cache import DEFAULT_LIMIT

_FLOAT = 4  # bytes of a number, in weights and vectors alike
_IN_TRAINING = 4  # weights, two moments of Adam, the best weights so far: a checkpoint, in numbers a parameter


@dataclass(frozen=True)
class Disk:
    """Bytes of a work directory.

    Attributes:
        models: saved weights that stay.
        passing: of the run at work, its weights and its checkpoint, and of runs that may be removed.
        vectors: the embedding cache. unknown: base models whose architecture cannot be read.
    """

    models: int = 0
    passing: int = 0
    vectors: int = 0
    unknown: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """All of it at the same time."""
        return self.models + self.passing + self.vectors


def disk_of(plan: Plan, cells: list[PlannedCell]) -> Disk:
    """What `cells` of a plan, those that still have to be run, will add to its work directory."""
    kept: dict[tuple[str, str], int] = {}
    passing = models = vectors = 0
    unknown = dict[str, None]()
    for cell in {cell.id: cell for cell in cells if not cell.fault}.values():
        try:
            parameters, width = architecture(cell.row.base_model)
        except InputError:
            unknown[cell.row.base_model] = None
            continue
        if cell.row.trained:
            saved = _FLOAT * parameters
            models += saved
            kept[cell.row.label, cell.base_model] = saved
            waiting = cell.seeds if plan.experiment.keep == "selected" else 1  # until the best of them is known
            passing = max(passing, (waiting + _IN_TRAINING) * saved)
        own = _FLOAT * width * len(texts_of(plan, cell))
        vectors = vectors + own if plan.experiment.keep_vectors else max(vectors, own)
    stays = {"all": models, "selected": sum(kept.values()), "none": 0}[plan.experiment.keep]
    return Disk(stays, passing, min(vectors, DEFAULT_LIMIT), tuple(unknown))


@cache
def architecture(base_model: str) -> tuple[int, int]:
    """Parameters and width of a base model, from its configuration alone.

    Raises:
        InputError: there is no such model, or transformers does not know its kind.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    from harness.encoder.quiet import quiet_transformers
    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_reachable

    try:
        with quiet_transformers(), torch.device("meta"):
            config = AutoConfig.from_pretrained(
                resolve_model(base_model), trust_remote_code=False, local_files_only=not hub_reachable()
            )
            model = AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f'base model "{base_model}": {str(error).splitlines()[0]}') from None
    return sum(p.numel() for p in model.parameters()), int(config.hidden_size)
