"""The verbs for the web: serve, page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli.app import app
from radialbeams.cli.terminal import talk
from radialbeams.limits import GIB, MIB

TOKEN = "RADIALBEAMS_TOKEN"
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Model to offer; repeat it for several. Default: all shipped."),
]


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
    model: Models = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")
    ] = None,
    queue: Annotated[
        int, typer.Option(min=1, help="Files that may wait; more are answered with 503.")
    ] = 256,
    max_files: Annotated[int, typer.Option(min=1, help="Files in one request.")] = 64,
    max_file_size: Annotated[float, typer.Option(min=0.001, help="MiB of one file.")] = 32,
    max_pixels: Annotated[float, typer.Option(min=0.001, help="Millions in one image.")] = 60,
    max_memory: Annotated[float, typer.Option(min=0.1, help="GiB for one image.")] = 2,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Seconds of computing for one image.")
    ] = 10,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the page at /.")] = True,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Log each request.")] = True,
) -> None:
    """Starts an HTTP service with a page to try it on. Ctrl-C or SIGTERM stops it.

    If the environment holds RADIALBEAMS_TOKEN, requests must bear that token.
    """
    from radialbeams import serving, zoo

    token = os.environ.get(TOKEN) or None
    models = tuple(model or ())
    settings = serving.Settings(
        host=host,
        port=port,
        models=models,
        default_model=zoo.DEFAULT if not models or zoo.DEFAULT in models else models[0],
        workers=workers or 0,
        token=token,
        page=page,
        log=log,
        queue=queue,
        max_files=min(max_files, queue),
        max_file_size=round(max_file_size * MIB),
        max_pixels=round(max_pixels * 1e6),
        max_memory=round(max_memory * GIB),
        seconds=seconds,
    )
    if token is None and host not in ("127.0.0.1", "::1", "localhost"):
        talk(f"Others may reach {host}. Set {TOKEN} to require a token.")
    shown = f"[{host}]" if ":" in host else host
    serving.serve(settings, lambda at: talk(f"Listening at http://{shown}:{at}"))


@app.command()
def page(
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    runtime: Annotated[
        Path, typer.Option(help="Folder dist of the npm package onnxruntime-web.")
    ] = Path("node_modules/onnxruntime-web/dist"),
    model: Models = None,
) -> None:
    """Writes the page as static files that run the models in the browser, without a server."""
    from radialbeams import serving

    written = serving.write_page(out, runtime, tuple(model or ()))
    size = sum(path.stat().st_size for path in written) / MIB
    talk(f"{len(written)} files, {size:.0f} MiB. Serve {out} with any web server.")
