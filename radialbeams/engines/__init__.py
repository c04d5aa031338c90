"""The batch step on distributed engines: Ray Data, and DataFrames of other engines.

`ray` runs a whole job. `frames` has functions for tables that an engine of your own holds.
"""
