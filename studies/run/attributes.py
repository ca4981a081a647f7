"""User attributes of Optuna's trials and studies: what the workers of a study write beside the values."""

from __future__ import annotations

SLOT, OWNER, BEAT, FINAL = "slot", "owner", "beat", "final"  # of a trial
FORGIVEN = "forgiven"  # of the study: failed trials whose slots a later call tries again
