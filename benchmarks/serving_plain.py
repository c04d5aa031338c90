"""The baseline of `benchmarks.serving`: one request, one image, one call of the model."""

from __future__ import annotations

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from radialbeams import Canonicalizer

CANONICALIZER = Canonicalizer("ring.coil100")


async def angle(request: Request) -> JSONResponse:
    (answer,) = await run_in_threadpool(CANONICALIZER.answers, [await request.body()])
    return JSONResponse({"angle_ccw": answer.angle_degrees, "confidence": answer.confidence})


def main() -> None:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    sys.stderr.write(f"Listening at http://127.0.0.1:{bound.getsockname()[1]}\n")
    sys.stderr.flush()
    app = Starlette(routes=[Route("/v1/angle", angle, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([bound])


if __name__ == "__main__":
    main()
