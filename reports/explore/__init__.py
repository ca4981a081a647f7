"""What one explores beside the tables: single examples, slices of them, a map of the space."""
