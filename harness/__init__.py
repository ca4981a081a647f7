"""A benchmark and comparison harness for self-supervised sentence embeddings.

The ground floor: it knows no method, study or report by name; they come in by entry points. Importing it is free: the
names below are those of `harness.api`, and are imported on first use.

    import harness as h

    found = h.compare("demo", workdir="work/demo")
    found.table("sts"), found.plot("alignment-uniformity"), h.verdict(found, "SimCSE", "SCD")
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import *  # noqa: F403

__version__ = "0.2.0.dev0"

# Threads that spin while they wait make training four times slower as soon as another process wants a core. Read when
# torch is loaded, so `import harness` has to come before it; processes that are started later have it in any case.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_API = {
    "Answer", "Budget", "Comparison", "Experiment", "Reporter", "Scores", "Until", "compare", "evaluate",
    "gate", "load", "load_model", "power", "register", "report", "study", "train", "verdict",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("harness.api"), name)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *_API})
