"""What a row made of the texts that it was scored on, which marks it wherever it stands beside others."""

from __future__ import annotations

from reports.read.comparison_runs import ResultRow


def prompted(row: ResultRow) -> str:
    """In words, for a footnote; empty where no prompts are known of, and each text is read once."""
    training = next((record.training for record in row.finished), {})
    said = []
    if row.pooling and row.pooling.partition(":")[0] in ("echo", "echo_last"):
        said.append("reads every text twice, and pools the second copy")
    if used := training.get("prompts"):
        texts = ", ".join(f'{key} "{text}"' for key, text in used.items())
        return "; ".join([*said, f"scored with prompts before its texts: {texts}"])
    if default := training.get("default_prompt"):
        said.append(f'scored with its default prompt "{default}" before all texts')
    if unused := training.get("unused_prompts"):
        keys = ", ".join(f'"{key}"' for key in unused)
        said.append(f"its model has prompts of its own that were not used ({keys})")
    return "; ".join(said)
