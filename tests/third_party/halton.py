"""Halton's sequence: points that fill a space evenly, whatever their number."""


def halton(study, seed):
    """One sequence for all workers, so it starts from the study's seed and not from the worker's
    own.
    """
    from optuna.samplers import QMCSampler

    return QMCSampler(
        qmc_type="halton", scramble=True, seed=study.sampler_seed, warn_independent_sampling=False
    )
