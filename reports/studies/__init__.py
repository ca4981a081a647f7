"""What a study found: tables, figures, files and a report."""
