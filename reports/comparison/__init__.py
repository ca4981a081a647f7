"""The report of a comparison: its sections, what stands in each, and its conclusion."""
