"""SMAC (Lindauer et al., JMLR 2022) through its package `smac`, as a sampler of Optuna's.

SMAC's random forest and expected improvement propose; Optuna stores the trials. A SMAC is made for each proposal from
all trials, also those that are running, so that a study that was stopped resumes. With
`by`, each of its values has a SMAC of its own, with the budget of that value, as if it were a study of its own.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

if TYPE_CHECKING:
    import optuna
    from ConfigSpace import Configuration, ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

    from studies.definition.space import Parameter

FIXED = "fixed_params"  # where Optuna stores the values of a queued trial


class SmacSampler(BaseSampler):
    """Proposes the unconditional parameters together; those with a condition are drawn at random."""

    def __init__(
        self, parameters: list[Parameter], budget: int, by: Parameter | None, seed: int, own_seed: int
    ) -> None:
        """
        Args:
            parameters: those to propose, without `by`.
            budget: trials that SMAC has, which the size of its initial design follows.
            by: the parameter whose values have a SMAC each.
            seed: of SMAC, the same each time the study resumes.
            own_seed: of random draws next to SMAC, another one each time the study resumes.
        """
        self._parameters, self._budget, self._by, self._seed = parameters, budget, by, seed
        self._random = RandomSampler(seed=own_seed)

    def reseed_rng(self) -> None:
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        fixed = trial.system_attrs.get(FIXED, {})
        if all(p.name in fixed for p in self._parameters):  # a trial that is run again has its values
            return {}
        return {p.name: _distribution(p) for p in self._parameters}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        turn = self._turn(trial)
        names = {p.name for p in self._parameters}
        others = [
            t for t in study.get_trials(deepcopy=False)
            if t.number != trial.number and t.state != TrialState.WAITING and self._turn(t) == turn
        ]  # fmt: skip
        known = [t for t in others if names <= set(t.params)]
        # Begun a moment ago, without its proposal yet: it will be the one before ours.
        unknown = [t for t in others if t.state == TrialState.RUNNING and t not in known and t.number < trial.number]
        sign = -1 if study.direction.name == "MAXIMIZE" else 1
        return self._propose(
            [(t.params, sign * t.values[0]) for t in known if t.state == TrialState.COMPLETE],
            [t.params for t in known if t.state != TrialState.COMPLETE],
            seed=self._seed + 7919 * turn,
            skip=len(unknown),
        )

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def _propose(
        self, scored: list[tuple[dict[str, Any], float]], unscored: list[dict[str, Any]], *, seed: int, skip: int
    ) -> dict[str, Any]:
        """The values that SMAC would try next; none where it has tried all of them.

        Args:
            scored: configurations with their costs.
            unscored: configurations without one: running, pruned or failed; not proposed again.
            seed: of this SMAC.
            skip: proposals that other trials have.
        """
        from ConfigSpace import ConfigurationSpace
        from smac import HyperparameterOptimizationFacade, Scenario
        from smac.main.exceptions import ConfigurationSpaceExhaustedException
        from smac.random_design import ProbabilityRandomDesign
        from smac.runhistory import TrialInfo, TrialValue

        space = ConfigurationSpace(seed=seed)
        space.add([_hyperparameter(p) for p in self._parameters])
        with TemporaryDirectory() as folder:  # SMAC writes files of its own, which are not needed
            scenario = Scenario(space, deterministic=True, n_trials=self._budget, seed=seed, output_directory=folder)
            # SMAC's own share of random proposals; the same seed each time would draw all of them or none.
            design = ProbabilityRandomDesign(probability=0.2, seed=seed + len(scored) + len(unscored))
            smac = HyperparameterOptimizationFacade(
                scenario, None, random_design=design, overwrite=True, logging_level=False
            )
            seen = set()
            for values, cost in scored:
                seen.add(config := self._configuration(space, values))
                smac.tell(TrialInfo(config, seed=0), TrialValue(cost=cost), save=False)
            for values in unscored:
                if (config := self._configuration(space, values)) not in seen:
                    smac.runhistory.add_running_trial(TrialInfo(config, seed=0))
            try:
                for _ in range(skip + 1):
                    proposed = smac.ask().config
            except (StopIteration, ConfigurationSpaceExhaustedException):
                return {}
        return {p.name: _value(p, proposed[p.name]) for p in self._parameters}

    def _turn(self, trial: FrozenTrial) -> int:
        """The place of the trial's value of `by`, which it has or is queued with, among its values."""
        if self._by is None:
            return 0
        value = trial.params.get(self._by.name, trial.system_attrs.get(FIXED, {}).get(self._by.name))
        return self._by.values().index(value)

    def _configuration(self, space: ConfigurationSpace, values: dict[str, Any]) -> Configuration:
        from ConfigSpace import Configuration

        given = {p.name: p.values().index(values[p.name]) if _listed(p) else values[p.name] for p in self._parameters}
        return Configuration(space, values=given)


def _listed(p: Parameter) -> bool:
    """Does SMAC see places in a list instead of values: choices, and numbers in steps?"""
    return bool(p.choices) or p.step is not None


def _hyperparameter(p: Parameter) -> Hyperparameter:
    from ConfigSpace import CategoricalHyperparameter, OrdinalHyperparameter
    from ConfigSpace import UniformFloatHyperparameter as Floats
    from ConfigSpace import UniformIntegerHyperparameter as Integers

    if p.choices:
        return CategoricalHyperparameter(p.name, list(range(len(p.choices))))
    if p.step is not None:
        return OrdinalHyperparameter(p.name, list(range(len(p.values()))))
    if p.integer:
        return Integers(p.name, int(p.low), int(p.high), log=p.log)
    return Floats(p.name, p.low, p.high, log=p.log)


def _distribution(p: Parameter) -> BaseDistribution:
    """As `Parameter.suggest` asks for it."""
    if p.choices:
        return CategoricalDistribution(p.choices)
    if p.integer:
        return IntDistribution(int(p.low), int(p.high), log=p.log, step=int(p.step or 1))
    return FloatDistribution(p.low, p.high, log=p.log, step=p.step)


def _value(p: Parameter, proposed: Any) -> Any:
    """Of SMAC's proposal: in the bounds, from which a logarithm may stray by a last digit, and of Python's types."""
    if _listed(p):
        return p.values()[int(proposed)]
    return int(proposed) if p.integer else min(max(float(proposed), p.low), p.high)
