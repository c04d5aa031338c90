"""The commands that need torch: train, evaluate, leaks, export."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli import terminal
from radialbeams.cli.app import EXIT_CODES, JsonOption, app
from radialbeams.cli.running import TrainOptions, train_on_folder, train_recipe
from radialbeams.escaping import as_json
from radialbeams.extras import install_command
from radialbeams.stored import JsonDict


class Protocol(StrEnum):
    leakfree = "leakfree"
    paper = "paper"


class Decoder(StrEnum):
    lstm = "lstm"
    ring = "ring"


class Group(StrEnum):
    object = "object"
    person = "person"


# The choices of `leaks`; the names are those of radialbeams.training.leaks.
Rendering = StrEnum("Rendering", ["leakfree", "paper", "bilinear"])
Noise = StrEnum("Noise", ["white", "pink", "blurred", "jpeg75", "jpeg85", "jpeg95"])
Canary = StrEnum("Canary", ["ring", "cnn"])

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder that contains the named data sets. Default: $RADIALBEAMS_DATA."
    ),
]
TestImagesArgument = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER|DATASET", help="Folder of upright images, or name of a data set."
    ),
]
DevicesOption = Annotated[str, typer.Option(help="Device: auto, cpu or cuda.")]
LimitOption = Annotated[
    int | None, typer.Option(help="Use at most this many images. Default: all.")
]


@app.command(epilog=EXIT_CODES)
def train(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|DATASET",
            help="Folder of upright images or tar shards, or name of a data set.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the run. An unfinished run is resumed.")
    ],
    minutes: Annotated[
        float | None,
        typer.Option(help="Time limit, including the report. Default: 10 for a folder."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of training steps. Default: 4096 for a data set.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Initial weights: name of a pretrained model, folder of a run, or scratch. "
            "Default: the pretrained model with the lowest error on the folder."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="JSON file with recipe fields. Options override it.")
    ] = None,
    realign: Annotated[
        bool, typer.Option("--realign", help="Straighten training images that are not upright.")
    ] = False,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary",
            help="Also measure whether the views of this run leak the angle, which takes a minute "
            "or two. Default: the report quotes a canary for similar views.",
        ),
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard logs to RUN/tensorboard.")
    ] = False,
    recipe: Annotated[
        Path | None, typer.Option(help="JSON file with a complete recipe. Options override it.")
    ] = None,
    root: DataOption = None,
    decoder: Annotated[
        Decoder | None,
        typer.Option(
            help="lstm: the paper's network and views. ring: the ring on leak-free views. Default: "
            "ring for a folder, lstm for a data set."
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Image width W. Default: that of the data.")
    ] = None,
    channels: Annotated[int | None, typer.Option(help="3: colour. 1: gray.")] = None,
    num_beams: Annotated[
        int | None, typer.Option(help="Number of beams |B|. In the paper: 32.")
    ] = None,
    beam_length: Annotated[
        int | None, typer.Option(help="Samples per beam D. In the paper: W/2.")
    ] = None,
    epsilon: Annotated[int | None, typer.Option(help="ε; a beam is 2ε + 1 pixels wide.")] = None,
    padding: Annotated[
        str | None,
        typer.Option(help="The paper's views only: their padding, zeros or corner."),
    ] = None,
    turns: Annotated[
        str | None,
        typer.Option(
            help="Data sets and the paper's network only: group of the angles, so2 or cyclic "
            "(C_|B|)."
        ),
    ] = None,
    draw: Annotated[
        str | None,
        typer.Option(
            help="Data sets and the paper's network only: draw an angle per view, or once per "
            "image (view or image)."
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="The paper's network only: Toeplitz prior, off, full or dynamic."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Views per step. In the paper: 128.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate. In the paper: 1e-4.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of weights, order and angles.")
    ] = None,
    devices: Annotated[
        str,
        typer.Option(
            help="Device: auto, cpu or cuda; or the number of GPUs, without GPUs of processes."
        ),
    ] = "auto",
    nodes: Annotated[
        int,
        typer.Option(
            help="Number of machines. Each runs this command with its own NODE_RANK.", min=1
        ),
    ] = 1,
    limit: LimitOption = None,
    json_: JsonOption = False,
) -> None:
    """Trains a model on upright images; no labels are needed.

    On a folder, the result is a calibrated model with its own thresholds, and a report. If a run
    is killed or stopped, the same command resumes it. More minutes or steps extend a finished run.
    """
    _need_torch("train")
    _launch(devices, nodes)
    changes = _set_options(
        {
            "padding": padding,
            "group": turns,
            "draw": draw,
            "prior": prior,
            "batch": batch,
            "learning_rate": learning_rate,
            "seed": seed,
        }
    )
    model_changes = _set_options(
        {
            "channels": channels,
            "num_beams": num_beams,
            "beam_length": beam_length,
            "epsilon": epsilon,
        }
    )
    options = TrainOptions(data, out, minutes, steps, devices, json_, tensorboard)
    if recipe is None and decoder is not Decoder.lstm and not _is_data_set(data):
        paper = {"--size": size, "--limit": limit, "--data": root, **_paper_only(changes)}
        changes["model"] = model_changes
        train_on_folder(options, start, config, realign, canary, changes, paper)
        return
    own = {"--start": start, "--config": config, "--realign": realign or None}
    own |= {"--canary": canary or None, "--tensorboard": tensorboard or None}
    for name, value in own.items():
        if value is not None:
            raise typer.BadParameter(
                f"{name} applies only to a folder of your own. Leave it out for a data set, a "
                "recipe or the paper's network."
            )
    from radialbeams.training.runs import plan

    steps_changed = {} if steps is None else {"steps": steps}
    named = "lstm" if decoder is None else decoder.value
    planned = plan(data, recipe, changes | steps_changed, model_changes, decoder=named, size=size)
    train_recipe(options, planned, root, limit)


def _launch(devices: str, nodes: int) -> None:
    """Runs this command in one process per device, if there are several, and then exits."""
    from radialbeams.training.distributed import is_joined, launch, parse_devices, quieten

    quieten()
    count, _ = parse_devices(devices)
    if count * nodes > 1 and not is_joined():
        raise typer.Exit(launch([sys.executable, "-m", "radialbeams", *sys.argv[1:]], count, nodes))


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="Name of a pretrained model, or folder of a run.")],
    data: TestImagesArgument,
    protocol: Annotated[
        Protocol | None,
        typer.Option(help="How views are rendered. Default: as for training."),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Split of the data: test, train or all. Of a folder, test is what the run has "
            "held out if it was trained on this folder, and otherwise a fifth of the images."
        ),
    ] = "test",
    group: Annotated[
        Group | None, typer.Option(help="Also print the mean error of each object or person.")
    ] = None,
    jpeg: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Save each rotated image as JPEG of this quality first."),
    ] = None,
    quarters: Annotated[
        bool, typer.Option("--quarters", help="Also measure at multiples of 90°, and 1° off them.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Number of random angles per image.")] = 3,
    limit: LimitOption = None,
    root: DataOption = None,
    devices: DevicesOption = "auto",
    json_: JsonOption = False,
) -> None:
    """Measures a model on held-out images at random angles."""
    _need_torch("evaluate")
    from radialbeams import zoo
    from radialbeams.cards import measurement
    from radialbeams.training.runs import measure

    measured = measure(
        zoo.find(model).stem,
        data,
        protocol=None if protocol is None else protocol.value,
        split=split,
        by_group=group is not None,
        jpeg=jpeg,
        quarters=quarters,
        seeds=seeds,
        limit=limit,
        root=root,
        devices=devices,
    )
    result = measurement(measured)
    if json_:
        print(as_json({"model": model, **result}))
        return
    for line in terminal.measured(model, data, result):
        terminal.print_line(line)


@app.command()
def leaks(
    protocol: Annotated[
        Rendering | None,
        typer.Option(
            help="How views are rendered. Default: leakfree, and with --quick also a control."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small views: about three minutes on a CPU.")
    ] = False,
    noise: Annotated[
        list[Noise] | None,
        typer.Option(help="Kind of noise; can be repeated. Default: white, pink and blurred."),
    ] = None,
    canary: Annotated[Canary | None, typer.Option(help="Canary network. Default: both.")] = None,
    views: Annotated[int | None, typer.Option(min=1, help="Number of training views.")] = None,
    devices: DevicesOption = "auto",
    json_: JsonOption = False,
) -> None:
    """Trains a network to estimate the angle of rotated noise. If it succeeds, views leak."""
    _need_torch("leaks")
    from radialbeams.training import leaks as canaries
    from radialbeams.training.weights import pick_device

    device, leaks = pick_device(devices), []
    effort = canaries.QUICK if quick else canaries.FULL
    if views is not None:
        effort = {**effort, "views": views}
    if not json_:
        print(f"{'protocol':<10}{'canary':<8}{'noise':<9}{'ρ₄':<25}{'ρ₁':<25}{'views':>7}")
    combinations = canaries.grid(protocol, canary, noise or (), quick=quick)
    for number, combination in enumerate(combinations, 1):
        where = f"canary {number} of {len(combinations)}"
        with terminal.progress_bar(effort["views"], where) as bar:
            leak = canaries.measure_leak(
                *combination,
                **effort,
                device=device,
                on_progress=partial(_show_within, bar, where),
            )
        leaks.append(leak)
        print(as_json(leak.record()) if json_ else leak.row(), flush=True)
    if not json_:
        print(canaries.verdict(leaks))


def _show_within(bar: terminal.Bar, where: str, step: int, text: str) -> None:
    bar.show(step, f"{where}, {text}")


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="Folder of a run, or name of a pretrained model.")],
    out: Annotated[
        Path, typer.Argument(help="ONNX file to write. Its card is written next to it.")
    ],
) -> None:
    """Writes ONNX, but only if it computes what torch computes."""
    _need_torch("export")
    from radialbeams import zoo
    from radialbeams.training.runs import export_run

    if out.suffix != ".onnx":
        raise ValueError(f"Expected a name that ends in .onnx; got {out}.")
    for path in (out, out.with_suffix(".json")):
        if path.exists():
            raise ValueError(f"{path} already exists. Remove it, or choose another name.")
    difference = export_run(zoo.find(run).stem, out)
    terminal.print_line(
        f"{out}: agrees with torch within {difference:.1e} at batches of 1, 7 and 128"
    )


def _need_torch(verb: str) -> None:
    if find_spec("torch") is None or find_spec("safetensors") is None:
        raise ValueError(
            f"`radialbeams {verb}` needs torch, which the light install leaves out. "
            f"Install it in your clone with: {install_command('train')}"
        )


def _set_options(options: JsonDict) -> JsonDict:
    """The options that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def _is_data_set(data: str) -> bool:
    from radialbeams.training.data import SOURCES

    return data in SOURCES or data == "scenes"


def _paper_only(changes: JsonDict) -> JsonDict:
    """The options set by the user that a run on a folder does not have, by their flags."""
    names = {"padding": "--padding", "group": "--turns", "draw": "--draw", "prior": "--prior"}
    return {option: changes[name] for name, option in names.items() if name in changes}
