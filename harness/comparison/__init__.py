"""From an experiment file to a plan of cells, and each cell to its record."""
