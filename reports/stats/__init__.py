"""Statistics of runs: bootstrap, significance, ranks, aggregates, searches. Numbers in, numbers out."""
