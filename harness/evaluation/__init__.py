"""Encode once, score all tasks; vectors cached between runs."""
