"""Samplers and pruners by name, and which of them fit a space.

A sampler is a function `make(study, seed)` that returns one of Optuna (entry points
`harness.samplers`). `seed` is another one each time a study resumes; `study.sampler_seed` stays.

One process uses them, also while other trials run: TPE counts these as bad (constant liar), the
Gaussian process leaves room around them; CMA-ES and NSGA-II propose a generation before they need
its values.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from optuna import pruners, samplers
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from harness import registry
from harness.errors import InputError
from harness.files.exits import calling
from studies.definition.space import EVERYTHING, Space
from studies.definition.study import ENUMERATED, Study


def check(study: Study, space: Space, where: str) -> None:
    """Refuse a space of which a part is never searched, and a sampler that does not fit the space.

    Raises:
        InputError: one line with what does not fit and what would.
    """
    for parameter in study.space:
        if parameter not in (EVERYTHING, *space.names):
            message = "is never searched: no configuration meets its condition (when)"
            raise InputError(message, file=where, key=f"space: {parameter}")
    name = study.sampler
    place = f'{where}: sampler "{name}"'
    if name in ENUMERATED:
        _check_enumerated(study, space, where, place)
        return
    if study.where:
        raise InputError(
            f'{place} cannot refuse what it proposes: the key "where" goes with grid, brute_force',
            key="where",
        )
    if study.trials is None:
        raise InputError(
            f'key "trials": is missing; {name} needs to know how many', file=where, key="trials"
        )
    if name == "cmaes" and (len(space.numbers) < 2 or find_spec("cmaes") is None):
        raise InputError(
            f"{place} needs two or more ranges of numbers, and its package: pip install cmaes",
            key="sampler",
        )
    if name == "qmc" and not space.numbers:
        raise InputError(
            f"{place} needs a range of numbers",
            key="sampler",
            remedy="take random or grid for lists",
        )


def _check_enumerated(study: Study, space: Space, where: str, place: str) -> None:
    """Refuse a sampler that lists all configurations where the space cannot be listed."""
    if space.endless:
        raise InputError(
            f'{place} needs values to list, but "{space.endless[0]}" is a range',
            key="sampler",
            remedy="give it a list or a step, or take random, qmc, tpe or gp",
        )
    if study.where and not space.points():
        raise InputError(f'where: no configuration of the space meets "{study.where}"', file=where)
    if study.sampler == "grid" and study.trials is not None:
        raise InputError(
            f"{place} runs every cell",
            key="sampler",
            remedy="leave trials out, or take brute_force",
        )


def make_sampler(study: Study, begun: int = 0) -> BaseSampler:
    """The sampler.

    Args:
        begun: trials that the study had begun before this call. A study that goes on must not draw
            again what it drew at its beginning.

    Raises:
        InputError: the package that brings the sampler is damaged. RunError: it gives no sampler.
    """
    if study.sampler in ENUMERATED:
        name = "random"
    else:
        name = study.sampler
    make: Callable[[Study, int], BaseSampler] = registry.load(registry.SAMPLERS, name)
    with calling(f'sampler "{name}"'):
        sampler = make(study, (study.sampler_seed + 104729 * begun) % 2**32)
        if not isinstance(sampler, BaseSampler):
            raise TypeError(f"expected a sampler of Optuna, not {type(sampler).__name__}")
    return sampler


def random(study: Study, seed: int) -> BaseSampler:
    """Independent draws."""
    return samplers.RandomSampler(seed=seed)


def qmc(study: Study, seed: int) -> BaseSampler:
    """One sequence, from the study's seed: its places come from the storage."""
    return samplers.QMCSampler(
        seed=study.sampler_seed, scramble=True, warn_independent_sampling=False
    )


def tpe(study: Study, seed: int) -> BaseSampler:
    """Tree-structured Parzen estimators (Bergstra et al. 2011)."""
    return samplers.TPESampler(seed=seed, constant_liar=True)


def gp(study: Study, seed: int) -> BaseSampler:
    """Bayesian optimisation with a Gaussian process."""
    return samplers.GPSampler(seed=seed, warn_independent_sampling=False)


def cmaes(study: Study, seed: int) -> BaseSampler:
    """Evolution of a normal distribution's covariance (Hansen 2016); needs the package cmaes."""
    return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)


def nsgaii(study: Study, seed: int) -> BaseSampler:
    """A genetic algorithm (Deb et al. 2002)."""
    return samplers.NSGAIISampler(
        seed=seed, population_size=min(50, max(4, (study.trials or 8) // 4))
    )


def make_pruner(study: Study, steps: int) -> BasePruner:
    """The pruner; dev scores are reported at training steps, of which a trial has up to `steps`."""
    if study.pruner == "median":
        return pruners.MedianPruner(n_startup_trials=5)
    if study.pruner == "percentile":
        return pruners.PercentilePruner(25.0, n_startup_trials=5)
    if study.pruner == "hyperband":
        return pruners.HyperbandPruner(
            min_resource=max(1, steps // 9),
            max_resource=max(1, steps),
            reduction_factor=3,
        )
    return pruners.NopPruner()
