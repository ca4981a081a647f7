"""Tables of a comparison, one kind a file; `builder` is what another package brings its own by."""
