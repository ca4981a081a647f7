"""Training text by URI: rows of files, kept as one buffer, as sentences, pairs or documents."""
