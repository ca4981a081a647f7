"""Records of a work directory as reports read them."""
