"""Documents as Markdown, CSV, LaTeX, PDF, HTML."""
