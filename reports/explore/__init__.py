"""Single examples and slices of tasks: `harness examples` and the report's section."""
