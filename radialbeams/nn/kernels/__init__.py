"""Triton kernels for inference on a GPU; import the modules only where Triton is installed."""
