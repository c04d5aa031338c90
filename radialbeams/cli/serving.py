"""The commands for the web: serve, page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli.app import app
from radialbeams.cli.terminal import print_message
from radialbeams.limits import GIB, MIB

TOKEN = "RADIALBEAMS_TOKEN"
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model to offer; can be repeated. Default: all pretrained."),
]


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")
    ] = 8000,
    model: Models = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")
    ] = None,
    queue: Annotated[
        int,
        typer.Option(
            min=1, help="Files that may wait or be processed; further ones are refused with 503."
        ),
    ] = 256,
    max_files: Annotated[int, typer.Option(min=1, help="Most files in one request.")] = 64,
    max_file_size: Annotated[
        float, typer.Option(min=0.001, help="Largest size of a file, in MiB.")
    ] = 32,
    max_pixels: Annotated[
        float, typer.Option(min=0.001, help="Most pixels of an image, in millions.")
    ] = 60,
    max_memory: Annotated[float, typer.Option(min=0.1, help="Memory for an image, in GiB.")] = 2,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="CPU time for an image, in seconds.")
    ] = 10,
    page: Annotated[
        bool, typer.Option("--page/--no-page", help="Serve the demo page at /.")
    ] = True,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Log each request.")] = True,
) -> None:
    """Starts an HTTP service with a demo page. Ctrl-C or SIGTERM stops it.

    If the environment variable RADIALBEAMS_TOKEN is set, requests must carry that token.
    """
    from radialbeams import serving, zoo

    token = os.environ.get(TOKEN) or None
    models = tuple(model or ())
    settings = serving.ServiceSettings(
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
        print_message(f"Others may be able to reach {host}. Set {TOKEN} to require a token.")
    address = f"[{host}]" if ":" in host else host
    serving.serve(settings, lambda at: print_message(f"Listening at http://{address}:{at}"))


@app.command()
def page(
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    runtime: Annotated[
        Path, typer.Option(help="The folder dist of the npm package onnxruntime-web.")
    ] = Path("node_modules/onnxruntime-web/dist"),
    model: Models = None,
) -> None:
    """Writes the page as static files; it needs no service.

    The models run in the browser.
    """
    from radialbeams import serving

    files = serving.write_page(out, runtime, tuple(model or ()))
    size = sum(path.stat().st_size for path in files) / MIB
    print_message(f"{len(files)} files, {size:.0f} MiB. Serve {out} with any web server.")
