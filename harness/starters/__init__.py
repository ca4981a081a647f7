"""What `harness new` writes: a package with a method or a task, an experiment file."""
