"""Trials: where they are kept, how one is run, whose weights stay."""
