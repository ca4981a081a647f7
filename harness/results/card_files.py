"""The card of a saved model: its files, which are no part of what the model computes, and the hub's tags."""

from __future__ import annotations

from pathlib import Path

SCORES_FILE = "harness_scores.json"
RESULTS_FOLDER = ".eval_results"  # the hub's community evaluations
TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction")


def is_card(file: Path) -> bool:
    """Whether a file of a saved model belongs to its card, which people may edit."""
    return file.name in ("README.md", SCORES_FILE) or file.parent.name == RESULTS_FOLDER
