"""Which settings make the difference between two rows: `harness why`."""
