"""Contamination: which texts of the tasks were in the text that a row was trained on."""
