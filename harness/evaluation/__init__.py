"""Encode once, score all tasks; vectors kept between runs."""
