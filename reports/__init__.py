"""Reports built from the records of runs: statistics, tables, figures and pages."""
