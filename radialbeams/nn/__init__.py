"""The networks in torch. The paper's network has one file per box of its figure.

In the order of the data flow: `rotation` → `beams` → `encoder` → `context` → `decoder`, trained
with `prior`. `ring` is another network on the same beams; `convolutional` reads the view itself.
`bic` and `ring_network` connect the parts. `posterior` interprets the outputs of the ring and
defines its loss, `architectures` is the table of networks, `pretrained` loads them from disk.
"""

from radialbeams.nn.angles import angular_error, circle_loss, from_unit, paper_equivalent, to_unit
from radialbeams.nn.architectures import Network, build
from radialbeams.nn.beams import BresenhamBeams, PolarBeams
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.context import WheelContext
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.decoder import LSTMDecoder
from radialbeams.nn.encoder import BeamEncoder
from radialbeams.nn.posterior import Posterior, answer, confidence, posterior, ring_loss, symmetry
from radialbeams.nn.pretrained import load_model
from radialbeams.nn.prior import ToeplitzPrior, prior_loss
from radialbeams.nn.ring import Ring
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import disc, pad, render, rotate

__all__ = [
    "BIC",
    "BICConfig",
    "BeamEncoder",
    "BresenhamBeams",
    "Convolutional",
    "ConvolutionalConfig",
    "LSTMDecoder",
    "Network",
    "PolarBeams",
    "Posterior",
    "Ring",
    "RingBIC",
    "RingConfig",
    "ToeplitzPrior",
    "WheelContext",
    "angular_error",
    "answer",
    "build",
    "circle_loss",
    "confidence",
    "disc",
    "from_unit",
    "load_model",
    "pad",
    "paper_equivalent",
    "posterior",
    "prior_loss",
    "render",
    "ring_loss",
    "rotate",
    "symmetry",
    "to_unit",
]
