"""Every experiment of the paper, one file each, and what they share.

`registry` names them, `reproduce` runs one from settings to files, `trainings` runs many small
trainings that can be killed and shared between processes, `figures` is the common look. Only
`figures` needs matplotlib, and only `registry` and `settings` do without torch.
"""
