"""A benchmark and comparison harness for self-supervised sentence embeddings.

The ground floor: it knows no method, study or report by name; they come in by entry points. Importing it is free: what
`harness.api` defines stands here too (`harness.compare`, `harness.evaluate`, ...), and is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import Budget as Budget
    from harness.api import ComparisonResult as ComparisonResult
    from harness.api import Evaluation as Evaluation
    from harness.api import Experiment as Experiment
    from harness.api import Reporter as Reporter
    from harness.api import Until as Until
    from harness.api import compare as compare
    from harness.api import evaluate as evaluate
    from harness.api import load as load
    from harness.api import report as report
    from harness.api import train as train

__version__ = "0.1.0"

_API = {
    "Budget", "ComparisonResult", "Evaluation", "Experiment", "Reporter", "Until",
    "compare", "evaluate", "load", "report", "train",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("harness.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
