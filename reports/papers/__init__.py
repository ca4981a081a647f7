"""The reports of papers: definitions, our runs beside published numbers."""
