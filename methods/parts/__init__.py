"""What methods are built from; the objectives are in `methods.objectives`."""
