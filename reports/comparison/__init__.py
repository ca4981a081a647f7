"""The report of a comparison: its sections, their contents, and its conclusion."""
