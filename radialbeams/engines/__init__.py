"""The batch step on distributed engines: Ray, and functions for the tables of any engine.

`ray` runs a whole job. `frames` has functions to apply to tables in your own engine.
"""
