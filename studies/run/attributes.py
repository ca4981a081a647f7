"""User attributes of Optuna's trials and studies: what is written beside the values."""

from __future__ import annotations

SLOT, FINAL = "slot", "final"  # of a trial: which planned one it is; that it failed by itself, and not with its process
PROPOSER = "proposer"  # of a trial, where the name of the sampler does not say it: who proposed its values
FORGIVEN = "forgiven"  # of the study: failed trials whose slots a later call tries again
