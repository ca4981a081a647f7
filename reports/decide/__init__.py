"""`harness verdict` and `harness power`: which row is better, how sure that is, and how many seeds
it takes.
"""
