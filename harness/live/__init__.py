"""A comparison or a study while it runs: what is told of it, its page, when it will end, and how it is paused."""
