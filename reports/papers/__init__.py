"""The reports of papers: definitions, our runs next to published numbers."""
