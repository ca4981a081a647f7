"""`harness fetch`: fill the caches with what an experiment needs from the hub."""

from __future__ import annotations

import argparse

from harness.commands import options
from harness.files.printable import tell, tell_error

_GIB = 2**30


def register(commands: options.Commands) -> None:
    """Add the command to the command line."""
    fetch = options.add_command(
        commands,
        "fetch",
        run_fetch,
        options.CONDITIONS,
        options.SET,
        help="download all models and data that an experiment needs, for machines without a network",
        description="Read every model, text and task of an experiment file, so that the caches have them (HF_HOME and "
        "HARNESS_CACHE), and list what was downloaded. The experiment then runs with HF_HUB_OFFLINE=1, also on another "
        "machine to which both folders are copied.",
        example="harness fetch demo",
    )
    fetch.add_argument(
        "experiment", help="a TOML file, or the name of a preset (see: harness list presets)"
    )


def run_fetch(args: argparse.Namespace) -> int:
    """Exit code 1 when something could not be had."""
    from harness.api.experiments import plan_comparison
    from harness.runs.fetch import cached_bytes, fetch_plan
    from harness.sources.remote.cache_folder import cache_root

    overrides = options.conditions_of(args)
    before = cached_bytes()
    plan = plan_comparison(args.experiment, to_run=False, overrides=overrides).plan
    _tell_taken("base models, texts and dev set", cached_bytes() - before)
    missing = 0
    for one in fetch_plan(plan):
        if one.fault:
            missing += 1
            tell_error(f"{one.kind} {one.name}: {one.fault}")
        else:
            _tell_taken(f"{one.kind} {one.name}", one.taken)
    _tell_taken("all", cached_bytes() - before)
    tell(f"the caches: HF_HOME and {cache_root()}")
    if missing:
        return 1
    tell("the experiment now runs with HF_HUB_OFFLINE=1")
    return 0


def _tell_taken(what: str, size: int) -> None:
    if size > 0:
        tell(f"{what}: {size / _GIB:.3f} GiB downloaded")
    else:
        tell(f"{what}: nothing to download")
