"""A model from a folder of one's own: what is in it, how it is split, cached and trained on."""
