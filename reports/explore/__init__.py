"""Single examples of tasks: `harness examples` and the report's section."""
