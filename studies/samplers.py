"""Samplers and pruners by name, and which of them fit a space.

A sampler is a function `make(study, seed)` that gives one of Optuna (entry points `harness.samplers`). `seed` is
another one each time a study goes on; `study.sampler_seed` stays.

One process asks them, also while other trials run: TPE counts these as bad (constant liar), the Gaussian process leaves
room around them, SMAC proposes none of them twice; CMA-ES and NSGA-II ask for a generation before they need its values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness import registry
from harness.errors import InputError
from studies.definition.study import ENUMERATED

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

    from studies.definition.space import Space
    from studies.definition.study import Study


def check(study: Study, space: Space, where: str) -> list[str]:
    """Refuse a sampler that does not fit the space; returns remarks for the user.

    Raises:
        InputError: one line with what does not fit and what would.
    """
    name, remarks = study.sampler, list[str]()
    if name in ENUMERATED:
        endless = [p.name for p in space.parameters if not p.finite]
        if endless:
            raise InputError(
                f'{where}: sampler "{name}" needs values to list, but "{endless[0]}" is a range; '
                "give it a list or a step, or take random, qmc, tpe or gp"
            )
        if study.where and not space.points():
            raise InputError(f'{where}: where: no configuration of the space meets "{study.where}"')
        if name == "grid" and study.trials is not None:
            raise InputError(f'{where}: sampler "grid" runs every cell; leave trials out, or take brute_force')
        return remarks
    if study.where:
        raise InputError(
            f'{where}: sampler "{name}" proposes what "where" would refuse; where goes with grid, brute_force'
        )
    if study.trials is None:
        raise InputError(f'{where}: trials is missing: sampler "{name}" needs to know how many')
    numbers = [p.name for p in space.parameters if not p.choices and not p.when]
    if name == "cmaes":
        if len(numbers) < 2:
            raise InputError(f'{where}: sampler "cmaes" needs two or more ranges of numbers; take tpe or gp for lists')
        if find_spec("cmaes") is None:
            raise InputError(f'{where}: sampler "cmaes" needs a package: pip install cmaes')
    if name == "qmc" and not numbers:
        raise InputError(f'{where}: sampler "qmc" needs a range of numbers; take random or grid for lists')
    if name == "smac" and not smac_is_there():
        remarks.append("sampler smac: the package smac is not installed; Optuna's GP sampler stands for it")
    if name in ("cmaes", "qmc") and len(numbers) < len(space.parameters):
        rest = ", ".join(n for n in space.names if n not in numbers)
        remarks.append(f"sampler {name}: {rest}: drawn at random, as it is no unconditional range of numbers")
    if name == "smac" and smac_is_there() and (rest := ", ".join(p.name for p in space.parameters if p.when)):
        remarks.append(f"sampler smac: {rest}: drawn at random, as it has a condition")
    return remarks


def make_sampler(study: Study, begun: int = 0) -> BaseSampler:
    """The sampler.

    Args:
        begun: trials that the study had begun before this call. A study that goes on must not draw again what it drew
            at its beginning.

    Raises:
        InputError: the package that brings the sampler is damaged.
    """
    import optuna

    name = "random" if study.sampler in ENUMERATED else study.sampler
    make: Callable[[Study, int], BaseSampler] = registry.load(registry.SAMPLERS, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return make(study, (study.sampler_seed + 104729 * begun) % 2**32)


def random(study: Study, seed: int) -> BaseSampler:
    """Independent draws."""
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)


def qmc(study: Study, seed: int) -> BaseSampler:
    """One sequence, from the study's seed: its places come from the storage."""
    from optuna.samplers import QMCSampler

    return QMCSampler(seed=study.sampler_seed, scramble=True, warn_independent_sampling=False)


def tpe(study: Study, seed: int) -> BaseSampler:
    """Tree-structured Parzen estimators (Bergstra et al. 2011)."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, constant_liar=True)


def gp(study: Study, seed: int) -> BaseSampler:
    """Bayesian optimisation with a Gaussian process."""
    from optuna.samplers import GPSampler

    return GPSampler(seed=seed, warn_independent_sampling=False)


def smac(study: Study, seed: int) -> BaseSampler:
    """SMAC itself where its package is installed (pip install smac), or `gp` in its place."""
    if not smac_is_there():
        return gp(study, seed)
    from studies.definition.space import make_space
    from studies.smac_sampler import SmacSampler

    space = make_space(study, f'study "{study.name}"')
    parameters = [p for p in space.parameters if not p.when and p.name != study.by]
    by = space[study.by] if study.by is not None else None
    return SmacSampler(parameters, study.trials or 1, by, study.sampler_seed, seed)


def smac_is_there() -> bool:
    """Is SMAC's package installed?"""
    return find_spec("smac") is not None


def proposer(sampler: BaseSampler) -> str:
    """What proposed a trial of a study whose sampler is called "smac", for its pages."""
    from importlib.metadata import version

    return f"SMAC {version('smac')}" if type(sampler).__name__ == "SmacSampler" else "Optuna's GP sampler"


def cmaes(study: Study, seed: int) -> BaseSampler:
    """Evolution of a normal distribution's covariance (Hansen 2016); needs the package cmaes."""
    from optuna.samplers import CmaEsSampler

    return CmaEsSampler(seed=seed, warn_independent_sampling=False)


def nsgaii(study: Study, seed: int) -> BaseSampler:
    """A genetic algorithm for several objectives (Deb et al. 2002)."""
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=seed, population_size=min(50, max(4, (study.trials or 8) // 4)))


def make_pruner(study: Study, steps: int) -> BasePruner:
    """The pruner; dev scores are reported at update numbers, of which a trial has up to `steps`."""
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner, PercentilePruner

    if study.pruner == "median":
        return MedianPruner(n_startup_trials=5)
    if study.pruner == "percentile":
        return PercentilePruner(25.0, n_startup_trials=5)
    if study.pruner == "hyperband":
        return HyperbandPruner(min_resource=max(1, steps // 9), max_resource=max(1, steps), reduction_factor=3)
    return NopPruner()
