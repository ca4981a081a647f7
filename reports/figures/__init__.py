"""Figures of a comparison, one a file, in one style."""
