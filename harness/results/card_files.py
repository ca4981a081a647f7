"""The card of a saved model: its files, which are no part of what the model computes, and the hub's tags."""

from __future__ import annotations

SCORES_FILE = "harness_scores.json"
CARD_FILES = ("README.md", SCORES_FILE)
TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction")
