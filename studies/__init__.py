"""Studies and comparisons: experiment files under `comparisons/`, hyperparameter searches beside them."""

from pathlib import Path

COMPARISONS = Path(__file__).parent / "comparisons"
