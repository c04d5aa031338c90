"""The OpenAPI description of the service, at /openapi.json."""

from __future__ import annotations

from typing import get_args

import radialbeams
from radialbeams.decisions import Measure
from radialbeams.serving.errors import CODES
from radialbeams.serving.options import Option
from radialbeams.serving.settings import ServiceSettings
from radialbeams.stored import JsonDict

OpenApi = JsonDict  # the document, or an object in it

# The response to the package's image of a rocket; a test compares it with the real one.
EXAMPLE = {
    "angle_ccw": 357.13,
    "angle_signed": -2.87,
    "confidence": 0.9513,
    "symmetry": 1,
    "quarter": 0,
    "quarter_confidence": 0.9906,
    "upright": 0.8613,
    "kind": "picture",
    "model": "general",
    "action": "left",
    "reason": "upright already",
    "measure": "quarter",
    "value": 0.9906,
    "threshold": 0.98,
    "applied": None,
}
EXAMPLE_ERROR = {
    "error": {
        "code": "not_an_image",
        "message": "It is not an image, or its format is not supported. Supported are JPEG, PNG, "
        "WebP, TIFF, GIF, BMP, AVIF, JPEG 2000, PPM, and raw files with a preview.",
    }
}
PROBABILITY = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
RECORD = {
    "type": "object",
    "required": ["angle_ccw", "confidence", "symmetry", "upright", "model", "action"],
    "properties": {
        "angle_ccw": {
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 360,
            "description": "The rotation of the image in degrees, counter-clockwise.",
        },
        "angle_signed": {
            "type": "number",
            "exclusiveMinimum": -180,
            "maximum": 180,
            "description": "The same rotation as a number from −180 to 180.",
        },
        "confidence": {
            **PROBABILITY,
            "description": "Probability that the angle is correct to within 10°.",
        },
        "symmetry": {
            "type": ["integer", "null"],
            "description": "1: one clear upright direction; k: looks the same every 360°/k; "
            "0: no clear up found.",
        },
        "quarter": {
            "type": ["integer", "null"],
            "enum": [0, 90, 180, 270, None],
            "description": "The most probable multiple of 90°.",
        },
        "quarter_confidence": {
            **PROBABILITY,
            "description": "Probability of that multiple of 90°.",
        },
        "upright": {
            **PROBABILITY,
            "description": "Probability that the image is within 5° of upright.",
        },
        "model": {"type": ["string", "null"]},
        "kind": {
            "type": "string",
            "enum": ["picture", "document"],
            "description": "Documents are levelled by their lines, and a separate network "
            "estimates their quarter turn.",
        },
        "action": {"type": "string", "enum": ["turned", "left", "unsure"]},
        "reason": {
            "type": ["string", "null"],
            "description": "Why the image was not turned.",
        },
        "measure": {
            "type": "string",
            "enum": list(get_args(Measure)),
            "description": "The quantity that decided: a probability, or an angle in degrees.",
        },
        "value": {"type": ["number", "null"], "description": "Its value."},
        "threshold": {"type": "number", "description": "The limit that it was compared with."},
        "applied": {
            "type": ["object", "null"],
            "required": ["angle_ccw", "from"],
            "properties": {
                "angle_ccw": {"type": "number", "minimum": 0, "exclusiveMaximum": 360},
                "from": {"type": "string", "enum": ["angle", "quarter", "frame", "hand"]},
            },
            "description": "The rotation that `upright` undoes, and where it was taken from; "
            "null if the image is left alone.",
        },
        "posterior": {
            "type": ["array", "null"],
            "items": {"type": "number"},
            "description": "Probability of each direction, starting at 0°, counter-clockwise.",
        },
        "beams": {
            "type": "array",
            "items": {"type": "number"},
            "description": "How much the estimate depends on each of 24 wedges of the image, "
            "starting at the upper left, counter-clockwise.",
        },
        "type": {"type": "string", "description": "Media type of the image, such as image/jpeg."},
        "image": {"type": "string", "contentEncoding": "base64"},
    },
}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "enum": sorted(CODES)},
                "message": {"type": "string"},
            },
        }
    },
}
# A file sent as the raw body has no name.
NAMED = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": ["string", "null"]}},
}


def document(
    settings: ServiceSettings, of_angle: list[Option], of_upright: list[Option]
) -> OpenApi:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "radialbeams",
            "version": radialbeams.__version__,
            "description": "Estimates how far images were rotated, and turns them upright.",
        },
        "paths": {
            "/v1/angle": {"post": _post("angle", "Estimate the rotation of images", of_angle)},
            "/v1/upright": {"post": _post("upright", "Turn images upright", of_upright)},
            "/v1/models": {"get": _get("models", "List the available models", secured=True)},
            "/healthz": {"get": _get("healthz", "Whether the service is running")},
            "/readyz": {"get": _get("readyz", "Whether a worker is ready", busy=True)},
            "/metrics": {"get": _metrics()},
        },
        "components": {
            "schemas": {"Record": RECORD, "Error": ERROR, "Results": _results()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if settings.token else [],
    }


def _post(name: str, summary: str, options: list[Option]) -> OpenApi:
    response = _angle_response() if name == "angle" else _upright_response()
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [
            {
                "name": option.name,
                "in": "query",
                "required": False,
                "description": option.meaning,
                "schema": option.schema,
            }
            for option in options
        ],
        "requestBody": {
            "required": True,
            "description": "An image as the raw body, or a form with one or more files.",
            "content": {
                "image/*": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "file": {
                                "type": "array",
                                "minItems": 1,
                                "items": {"type": "string", "format": "binary"},
                            }
                        },
                    }
                },
            },
        },
        "responses": {"200": response, **_errors(400, 401, 408, 413, 422, 503)},
    }


def _angle_response() -> OpenApi:
    either = [{"$ref": "#/components/schemas/Record"}, {"$ref": "#/components/schemas/Results"}]
    examples = {
        "image": {"summary": "For an image as the body", "value": EXAMPLE},
        "form": {
            "summary": "For a form with two files, one of which is not an image",
            "value": {
                "results": [{"name": "rocket.webp", **EXAMPLE}, {"name": "a.txt", **EXAMPLE_ERROR}]
            },
        },
    }
    return {
        "description": "One record for an image as the body; a list of records for a form.",
        "content": {"application/json": {"schema": {"anyOf": either}, "examples": examples}},
    }


def _upright_response() -> OpenApi:
    binary = {"schema": {"type": "string", "format": "binary"}}
    results = {"schema": {"$ref": "#/components/schemas/Results"}}
    return {
        "description": "The image, with its record in headers; or records with images in base64; "
        "or a zip.",
        "headers": {
            "radialbeams-angle-ccw": {"schema": {"type": "number"}},
            "radialbeams-action": {"schema": {"type": "string"}},
        },
        "content": {"image/*": binary, "application/json": results, "application/zip": binary},
    }


def _results() -> OpenApi:
    either = [{"$ref": "#/components/schemas/Record"}, {"$ref": "#/components/schemas/Error"}]
    item = {"allOf": [NAMED, {"anyOf": either}]}
    return {
        "type": "object",
        "required": ["results"],
        "properties": {"results": {"type": "array", "items": item}},
    }


def _get(name: str, summary: str, *, secured: bool = False, busy: bool = False) -> OpenApi:
    content = {"application/json": {"schema": {"type": "object"}}}
    statuses = [401] * secured + [503] * busy
    operation: OpenApi = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": summary, "content": content}, **_errors(*statuses)},
    }
    return operation if secured else {**operation, "security": []}


def _metrics() -> OpenApi:
    text = {"description": "Prometheus text", "content": {"text/plain": {}}}
    return {
        "operationId": "metrics",
        "summary": "Metrics in the text format of Prometheus",
        "responses": {"200": text, **_errors(401)},
    }


def _errors(*statuses: int) -> OpenApi:
    schema = {"schema": {"$ref": "#/components/schemas/Error"}}
    responses = {}
    for status in statuses:
        codes = ", ".join(code for code, number in CODES.items() if number == status)
        content = {"application/json": {**schema}}
        if status == 422:
            content["application/json"]["example"] = EXAMPLE_ERROR  # type: ignore[assignment]
        responses[str(status)] = {"description": f"Codes: {codes}.", "content": content}
        if status == 503:
            responses["503"]["headers"] = {"retry-after": {"schema": {"type": "integer"}}}
    return responses
