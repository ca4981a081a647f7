"""Pages about the harness, and what writes the parts of them that come from the code."""
