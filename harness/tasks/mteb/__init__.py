"""Tasks of the mteb library, which is used as it comes."""
