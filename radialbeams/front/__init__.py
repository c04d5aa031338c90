"""What stands in front of a user's model: turns its images upright, and brings its results back.

`module` holds the torch module, `pose` what it returns beside the images, `centring` finds boxes,
`pipeline` exports both models as one ONNX file, `accuracy` measures what uprighting is worth to a
classifier, and `hub` publishes a canonicaliser (it needs the `hub` extra).
"""

from radialbeams.front.centring import centred_boxes
from radialbeams.front.module import Canonicalizer
from radialbeams.front.pipeline import export_pipeline
from radialbeams.front.pose import Pose

__all__ = ["Canonicalizer", "Pose", "centred_boxes", "export_pipeline"]
