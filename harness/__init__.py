"""A benchmark and comparison harness for self-supervised sentence embeddings.

    import harness as h

    found = h.compare(["simcse", "scd"], seeds=[1, 2, 3], max_steps=24, workdir="work/mine")
    found.verdict("simcse", "scd")     # which is better, and how sure that is
    found.scores()                     # a pandas frame; also pairs(), outcomes(), curves(), costs()
    found.table("embedded")            # of the report; found.tables names all
    found.plot("overview")             # found.plots names all

`compare`, `study`, `train`, `evaluate` and `sensitivity` run something; `load` and `load_model` open
what was saved; `verdict`, `power` and `gate` decide from records, or from scores that others made;
`why` and `examples` say where two rows differ; `report` writes a report, `pack` an archive; `loss`
makes a method of a loss, and `register` names a class of yours. They are imported on first use.
"""

# ruff: noqa: F405 - the names of `__all__` are imported on first use
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import *  # noqa: F403

__version__ = "0.2.0.dev0"

# Threads that spin while they wait make training four times slower as soon as another process wants
# a core. Read when torch is loaded, so `import harness` has to come before it; processes that are
# started later have it in any case.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = [
    "Answer",
    "Budget",
    "Comparison",
    "Experiment",
    "Reporter",
    "Scores",
    "Until",
    "compare",
    "evaluate",
    "examples",
    "gate",
    "load",
    "load_model",
    "loss",
    "pack",
    "power",
    "register",
    "report",
    "sensitivity",
    "study",
    "train",
    "verdict",
    "why",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("harness.api"), name)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
