"""A report before it has a format: sections, tables, figures, facts."""
