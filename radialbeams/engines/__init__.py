"""The batch step on distributed engines: Ray Data, and functions for other engines' DataFrames.

`ray` runs a whole job. `frames` has functions to apply to tables in your own engine.
"""
