"""From an image to labels, with a detector that is not robust to rotation.

    python examples/detector.py [--out detector.png]

Detector → crop → canonicalise → downstream step → back into the image. The detector finds faces;
the downstream step finds eyes and classifies whether a face smiles. All three are cascades whose
weights are part of the package opencv-python-headless (below 5), and all three work on upright
faces only. The picture shows one public-domain portrait, pasted three times at different angles.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from radialbeams.demo import PICTURES
from radialbeams.front import Canonicalizer, Pose

TURNED = (40.0, 158.0, 275.0)  # degrees, counter-clockwise, of the portraits in the picture
TURNS = 12  # rotations of the image that the detector is run on
SIZE = 192  # pixels of an upright face with its margin
MARGIN = 0.35  # around the detector's box, so that it contains the chin


# --- the picture ---


def picture() -> Image.Image:
    """Three rotated portraits on a table; none is upright."""
    portrait = Image.open(PICTURES / "astronaut.webp").convert("RGB")
    size = portrait.width
    disc = Image.new("L", (4 * size, 4 * size), 0)
    ImageDraw.Draw(disc).ellipse((24, 24, 4 * size - 24, 4 * size - 24), fill=255)
    disc = disc.resize((size, size), Image.Resampling.LANCZOS)
    table = Image.new("RGB", (3 * size + 40, size + 40), (164, 149, 129))
    for place, degrees in enumerate(TURNED):
        turned = portrait.rotate(degrees, Image.Resampling.BICUBIC)
        table.paste(turned, (10 + place * (size + 10), 20), disc)
    return table


def as_tensor(image: Image.Image) -> Tensor:
    """(1, 3, H, W) in [0, 1]."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None] / 255


def grey(image: Tensor) -> NDArray[np.uint8]:
    """(3, H, W) in [0, 1] → (H, W) bytes, as the cascades expect them."""
    weights = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    return ((image * weights).sum(0) * 255).clamp(0, 255).round().byte().numpy()


# --- 1. the detector ---


def cascade(name: str) -> cv2.CascadeClassifier:
    folder = cv2.data.haarcascades  # type: ignore[attr-defined]  # missing from OpenCV's stubs
    return cv2.CascadeClassifier(f"{folder}haarcascade_{name}.xml")


def faces(image: Tensor) -> Tensor:
    """(K, 4) as x₀, y₀, x₁, y₁: the faces of an image (1, 3, H, W), at any rotation.

    The detector misses faces that are rotated by more than about 20°, so it runs on twelve
    rotations of the image, and the pose of each maps its boxes back.
    """
    detector = cascade("frontalface_alt2")
    boxes, votes = [], []
    for turn in range(TURNS):
        angle = torch.tensor([2 * math.pi * turn / TURNS])
        pose = Pose.from_angles(angle, (image.shape[-2], image.shape[-1]), canvas="expand")
        turned = grey(pose.apply_images(image)[0])
        rectangles, _, sure = detector.detectMultiScale3(turned, 1.1, 8, outputRejectLevels=True)
        for (x, y, width, height), vote in zip(rectangles, sure, strict=True):
            box = torch.tensor([[[x, y, x + width, y + height]]], dtype=torch.float32)
            centre = pose.invert_points((box[..., :2] + box[..., 2:]) / 2 - 0.5)[0, 0]
            half = max(width, height) / 2
            boxes.append(torch.cat((centre - half, centre + half)))
            votes.append(float(vote))
    return strongest(torch.stack(boxes), torch.tensor(votes)) if boxes else torch.zeros(0, 4)


def strongest(boxes: Tensor, votes: Tensor) -> Tensor:
    """One box per face, from left to right: the most confident of overlapping ones."""
    chosen: list[Tensor] = []
    for row in votes.argsort(descending=True):
        middle = (boxes[row, :2] + boxes[row, 2:]) / 2
        reach = (boxes[row, 2] - boxes[row, 0]) / 2
        if all(((other[:2] + other[2:]) / 2 - middle).norm() > reach for other in chosen):
            chosen.append(boxes[row])
    return torch.stack(sorted(chosen, key=lambda box: box[0].item()))


# --- 3. the downstream step ---


@dataclass(frozen=True)
class FaceReading:
    """The result of the downstream step on one upright face."""

    label: str
    eyes: Tensor  # (E, 2) as x, y


def look(face: Tensor) -> FaceReading:
    """(3, H, W), upright → its label and its eyes."""
    pixels = grey(face)
    half = pixels.shape[0] // 2
    upper = cascade("eye").detectMultiScale(pixels[:half], 1.05, 8)
    lower = cascade("smile").detectMultiScale(pixels[half:], 1.1, 20)
    eyes = [(x + (width - 1) / 2, y + (height - 1) / 2) for x, y, width, height in upper]
    label = "smiling" if len(lower) and len(eyes) else "not smiling" if eyes else "no face"
    return FaceReading(label, torch.tensor(eyes, dtype=torch.float32).reshape(-1, 2))


# --- all of it ---


@dataclass(frozen=True)
class Result:
    image: Image.Image
    boxes: Tensor  # (K, 4), the detector's
    crops: Tensor  # (K, 3, SIZE, SIZE), upright
    pose: Pose
    readings: list[FaceReading]  # upright
    before: list[FaceReading]  # the same step on the same crops, not rotated


@torch.inference_mode()
def run() -> Result:
    image = picture()
    tensor = as_tensor(image)
    boxes = faces(tensor)  # 1
    canonicalizer = Canonicalizer.from_pretrained("ring.lfw", abstain=None, snap="none")
    crops, pose = canonicalizer.crops(tensor, [boxes], margin=MARGIN, size=SIZE)  # 2
    readings = [look(face) for face in crops]  # 3
    # No confidence exceeds 1, so this one never rotates.
    cropper = Canonicalizer.from_pretrained("ring.lfw", abstain=1.0)
    rotated, _ = cropper.crops(tensor, [boxes], margin=MARGIN, size=SIZE)
    return Result(image, boxes, crops, pose, readings, [look(face) for face in rotated])


def drawn(result: Result) -> Image.Image:
    """The picture with the detector's boxes and the results mapped back; the faces below."""
    sheet = Image.new("RGB", (result.image.width, result.image.height + SIZE + 10), "white")
    sheet.paste(result.image, (0, 0))
    pen = ImageDraw.Draw(sheet)
    frame = torch.tensor([[[SIZE * 0.2, SIZE * 0.1, SIZE * 0.8, SIZE * 0.95]]])
    for number, reading in enumerate(result.readings):
        pose = result.pose[number]
        pen.rectangle(result.boxes[number].tolist(), outline=(120, 120, 120))
        # (4, 2): the frame of the upright face, rotated back
        corners = pose.invert_boxes(frame)[0, 0]
        points = [tuple(corner) for corner in corners.tolist()]
        pen.polygon(points, outline=(0, 114, 178), width=3)
        pen.line(points[:2], fill=(213, 94, 0), width=4)  # its upper edge
        for x, y in pose.invert_points(reading.eyes[None])[0].tolist():
            pen.ellipse((x - 4, y - 4, x + 4, y + 4), outline=(0, 158, 115), width=3)
        left = (2 * number + 1) * sheet.width // (2 * len(result.readings)) - SIZE // 2
        face = result.crops[number].clamp(0, 1).mul(255).round().byte().permute(1, 2, 0).numpy()
        sheet.paste(Image.fromarray(face), (left, result.image.height + 5))
        degrees = math.degrees(pose.angle.item())
        text = f"{reading.label}, was turned by {degrees:.0f}°"
        pen.rectangle((left, sheet.height - 21, left + SIZE, sheet.height - 5), fill="white")
        pen.text((left + 3, sheet.height - 19), text, fill="black")
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("detector.png"))
    arguments = parser.parse_args()
    result = run()
    for number, (reading, before) in enumerate(zip(result.readings, result.before, strict=True)):
        pose = result.pose[number]
        eyes = pose.invert_points(reading.eyes[None])[0].round().int().tolist()
        print(
            f"turned by {math.degrees(pose.angle.item()):.0f}°: {reading.label}, eyes at {eyes}; "
            f"without uprighting: {before.label}"
        )
    drawn(result).save(arguments.out)


if __name__ == "__main__":
    main()
