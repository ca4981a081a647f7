"""What stood before the texts that a row was scored on, which marks it wherever it stands beside others."""

from __future__ import annotations

from reports.read.comparison_runs import ResultRow


def prompted(row: ResultRow) -> str:
    """In words, for a footnote; empty where no prompts are known of."""
    training = next((record.training for record in row.finished), {})
    if used := training.get("prompts"):
        return "scored with prompts before its texts: " + ", ".join(f'{key} "{text}"' for key, text in used.items())
    said = []
    if default := training.get("default_prompt"):
        said.append(f'scored with its default prompt "{default}" before all texts')
    if unused := training.get("unused_prompts"):
        keys = ", ".join(f'"{key}"' for key in unused)
        said.append(f"its model has prompts of its own that were not used ({keys})")
    return "; ".join(said)
