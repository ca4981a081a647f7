"""User attributes of Optuna's trials and studies: what the workers of a study write beside the values."""

from __future__ import annotations

SLOT, OWNER, BEAT, FINAL = "slot", "owner", "beat", "final"  # of a trial
PROPOSER = "proposer"  # of a trial, where the name of the sampler does not say it: who proposed its values
FORGIVEN = "forgiven"  # of the study: failed trials whose slots a later call tries again
