"""Triton kernels for inference on a GPU."""
