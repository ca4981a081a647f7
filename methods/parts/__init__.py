"""What methods are built from; the objectives stand in `methods.objectives`."""
