"""What the workers of a study write beside its trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


SLOT, OWNER, BEAT, FINAL = "slot", "owner", "beat", "final"


FORGIVEN = "forgiven"  # user attribute of the study: failed trials whose slots a later call tries again
