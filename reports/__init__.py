"""Reports built from the records of runs: statistics, tables, figures and pages."""

from pathlib import Path

PUBLISHED = Path(__file__).parent / "published"  # numbers that papers print
