"""Speed on a GPU: inference against its floor, in front of a classifier, beams, training."""
