"""The network of the paper in torch, one file per box of its figure, in the order data flows."""
