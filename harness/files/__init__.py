"""The file system and what leaves for a terminal: atomic writes, hashes, locks, printable text."""
