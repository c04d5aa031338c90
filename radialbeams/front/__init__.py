"""A canonicaliser in front of your own model: it turns images upright and maps the results back.

`module` holds the torch module, `pose` the transform that it returns with the images, `centring`
finds boxes, `averaging` averages a classifier over the likely quarter turns, `pipeline` exports
both models as one ONNX file, `accuracy` measures how much a classifier gains, and `hub` publishes a
canonicaliser (it needs the `hub` extra).
"""

from radialbeams.extras import install_command

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "radialbeams.front needs torch, which the light install leaves out. Install it in your "
        f"clone with: {install_command('train')}",
        name="torch",
    ) from error

from radialbeams.front.averaging import PosteriorAverage
from radialbeams.front.centring import centred_boxes
from radialbeams.front.module import Canonicalizer
from radialbeams.front.pipeline import export_pipeline
from radialbeams.front.pose import Pose

__all__ = ["Canonicalizer", "Pose", "PosteriorAverage", "centred_boxes", "export_pipeline"]
