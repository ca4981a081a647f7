"""Contamination: which texts of the tasks occur in the text that a row was trained or selected on."""
