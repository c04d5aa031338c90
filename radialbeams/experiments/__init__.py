"""Deprecated: the experiments are in `radialbeams.reproduce`, the rest in `radialbeams.front`."""
