"""Fused layers: refused in words wherever they cannot run."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from radialbeams.nn.architectures import build
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training.fusing import fuse


def convolutional() -> Convolutional:
    return Convolutional(ConvolutionalConfig(variant="lite0", view_size=64))


def test_a_network_of_beams_has_no_fused_layers() -> None:
    ring = build(RingConfig())
    with pytest.raises(ValueError, match="for the convolutional network only"):
        fuse(ring, torch.device("cuda"))


def test_fused_layers_are_refused_on_a_cpu() -> None:
    with pytest.raises(ValueError, match="need a GPU; got cpu"):
        fuse(convolutional(), torch.device("cpu"))


def test_fused_layers_are_refused_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="need Triton: install it"):
        fuse(convolutional(), torch.device("cuda"))
