"""Statistics of runs: estimates, significance, ranks, aggregates, searches. Numbers in, numbers
out.
"""
