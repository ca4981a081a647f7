"""Where the runs of a study are made."""

from __future__ import annotations

from pathlib import Path

from harness import registry
from harness.errors import InputError
from harness.executors.executor import Executor, ExecutorSettings
from studies.definition.study import ENUMERATED, Study

INDEPENDENT = (*ENUMERATED, "random", "qmc")  # samplers that learn nothing from what was tried


def executor_for(study: Study, settings: ExecutorSettings, workdir: Path, trials: int) -> Executor:
    """The executor of a study of so many trials. Several workers without a name are processes of this machine.

    Raises:
        InputError: an unknown executor, or one that does not say how many trials are asked for at a time.
    """
    if settings.name == "serial" and (settings.workers or 1) > 1:
        settings = settings.model_copy(update={"name": "processes"})
    kind: type[Executor] = registry.load(registry.EXECUTORS, settings.name)
    executor = kind(settings, workdir)
    if not executor.elsewhere:
        return executor
    if not executor.here and settings.workers is None and study.sampler not in INDEPENDENT:
        raise InputError(
            f'executor "{settings.name}": sampler "{study.sampler}" learns from the trials that have ended: say how '
            "many are to run at a time, with --workers N"
        )
    if executor.here and settings.cpus_per_cell is None:
        # The same threads for the last trial of a study that goes on as for the first one: they change the last digits.
        settings = settings.model_copy(update={"cpus_per_cell": executor.threads(trials)})
    return kind(settings, workdir)
