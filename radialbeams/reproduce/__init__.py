"""The experiments of the paper, one file each, and what they share.

`registry` lists them, `runner` runs one from settings to files, `trainings` runs many small
trainings that can be resumed and shared between processes, `figures` is the common style. A long
experiment has its figures in a file of their own. Only the figures need matplotlib, and only
`registry` and `settings` work without torch.
"""
