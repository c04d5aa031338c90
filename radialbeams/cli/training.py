"""The verbs that need torch: train, evaluate, leaks, export."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli import terminal
from radialbeams.cli.app import EXIT_CODES, JsonOption, app
from radialbeams.cli.running import TrainOptions, train_on_folder, train_recipe
from radialbeams.escaping import as_json
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


# What `leaks` can be asked for; the names are those of radialbeams.training.leaks.
Rendering = StrEnum("Rendering", ["leakfree", "paper", "bilinear"])
Noise = StrEnum("Noise", ["white", "pink", "blurred", "jpeg75", "jpeg85", "jpeg95"])
Canary = StrEnum("Canary", ["ring", "cnn"])

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder that holds the data sets (else $RADIALBEAMS_DATA)."),
]
DevicesOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@app.command(epilog=EXIT_CODES)
def train(
    data: Annotated[
        str, typer.Argument(help="A folder of upright images or tar shards, or a data set's name.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder; resumed if begun.")],
    minutes: Annotated[
        float | None,
        typer.Option(help="Time for everything, the report included. Default: 10 for a folder."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of batches. Default: 4096 for a data set.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Weights to begin with: a shipped model's name, a run's folder, or scratch. "
            "Default: the shipped model that fits the folder best."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="JSON file of recipe fields; the options go on top of it.")
    ] = None,
    realign: Annotated[
        bool, typer.Option("--realign", help="Correct images that are not upright themselves.")
    ] = False,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary",
            help="Also measure whether the views of this run give the angle away; takes a minute "
            "or two more. Default: the report quotes a canary of similar views.",
        ),
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard, for TensorBoard.")
    ] = False,
    recipe: Annotated[
        Path | None, typer.Option(help="A whole recipe; the other options go on top of it.")
    ] = None,
    root: DataOption = None,
    decoder: Annotated[
        Decoder | None,
        typer.Option(
            help="lstm: the paper's network and views; ring: leak-free views. Default: ring for a "
            "folder, lstm for a data set."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(help="Image width W; else the data's own.")] = None,
    channels: Annotated[int | None, typer.Option(help="3 for colour, 1 for gray.")] = None,
    num_beams: Annotated[int | None, typer.Option(help="|B|, the paper's 32.")] = None,
    beam_length: Annotated[int | None, typer.Option(help="D, the paper's W/2.")] = None,
    epsilon: Annotated[int | None, typer.Option(help="ε: a beam is 2ε + 1 pixels wide.")] = None,
    padding: Annotated[str | None, typer.Option(help="zeros or corner.")] = None,
    turns: Annotated[str | None, typer.Option(help="so2 or cyclic (C_|B|).")] = None,
    draw: Annotated[str | None, typer.Option(help="Angles per view, or once per image.")] = None,
    prior: Annotated[str | None, typer.Option(help="off, full or dynamic.")] = None,
    batch: Annotated[int | None, typer.Option(help="The paper's 128.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The paper's 1e-4.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the weights, the order, the angles.")] = None,
    devices: Annotated[
        str,
        typer.Option(help="auto, cpu, cuda, or a number: of GPUs, or of processes without a GPU."),
    ] = "auto",
    nodes: Annotated[
        int, typer.Option(help="Machines; each runs this command with its own NODE_RANK.", min=1)
    ] = 1,
    limit: Annotated[int | None, typer.Option(help="Use only so many of the images.")] = None,
    json_: JsonOption = False,
) -> None:
    """Trains a model on a folder of upright images, or on a data set; no labels are needed.

    A folder gives a calibrated model with thresholds of its own and a report. Killed or stopped,
    the same command goes on; with more minutes or steps it lengthens a finished run.
    """
    _need_torch("train")
    _launch(devices, nodes)
    changes = _given(
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
    model_changes = _given(
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
    for name, given in own.items():
        if given is not None:
            raise typer.BadParameter(
                f"{name} is for a folder of your own; leave it out for a data set, a recipe or the "
                "paper's network."
            )
    from radialbeams.training.runs import plan

    steps_changed = {} if steps is None else {"steps": steps}
    named = "lstm" if decoder is None else decoder.value
    planned = plan(data, recipe, changes | steps_changed, model_changes, decoder=named, size=size)
    train_recipe(options, planned, root, limit)


def _launch(devices: str, nodes: int) -> None:
    """Runs this very command once for each of several devices, and ends with them."""
    from radialbeams.training.distributed import is_joined, launch, parse_devices, quieten

    quieten()
    count, _ = parse_devices(devices)
    if count * nodes > 1 and not is_joined():
        raise typer.Exit(launch([sys.executable, "-m", "radialbeams", *sys.argv[1:]], count, nodes))


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A shipped model's name, or a run's folder.")],
    data: Annotated[str, typer.Argument(help="A data set's name, or a folder.")],
    protocol: Annotated[
        Protocol | None,
        typer.Option(help="How views are rendered. Default: as the model was trained."),
    ] = None,
    split: Annotated[str, typer.Option(help="test, train or all.")] = "test",
    group: Annotated[Group | None, typer.Option(help="The mean of each of these.")] = None,
    jpeg: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Save each rotated image once as JPEG of this quality."),
    ] = None,
    quarters: Annotated[
        bool, typer.Option("--quarters", help="Also at multiples of 90° and 1° beside them.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="How many angles for each image.")] = 3,
    limit: Annotated[int | None, typer.Option(help="Use only so many of the images.")] = None,
    root: DataOption = None,
    devices: DevicesOption = "auto",
    json_: JsonOption = False,
) -> None:
    """Measures a model on held-out images, turned by angles uniform on the circle."""
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
    terminal.say(f"{model} on {data}, {split}, protocol {result['protocol']}: {result['n']} views")
    for name in ("mean", "median", "p95", "paper_equivalent"):
        print(f"  {name.replace('_', '-'):<17}{result[name]:>8.2f}°")
    for name in ("quarter", "quarter_plus_1"):
        if name in result:
            print(f"  {name.replace('_', ' '):<17}{result[name]:>8.2f}°")
    for name in ("within_5", "within_10", "flips"):
        print(f"  {name.replace('_', ' '):<17}{result[name]:>8.2%}")
    for name, mean in result["groups"].items():
        terminal.say(f"    {name:<30}{mean:>8.2f}°")


@app.command()
def leaks(
    protocol: Annotated[
        Rendering | None,
        typer.Option(
            help="How views are rendered. Default: leakfree; with --quick also a control."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes on a CPU; small views.")] = False,
    noise: Annotated[
        list[Noise] | None,
        typer.Option(help="Kind of noise; repeatable. Default: white, pink and blurred."),
    ] = None,
    canary: Annotated[Canary | None, typer.Option(help="Canary network. Default: both.")] = None,
    views: Annotated[int | None, typer.Option(min=1, help="How many to train on.")] = None,
    devices: DevicesOption = "auto",
    json_: JsonOption = False,
) -> None:
    """Asks a network for the angle of rotated noise: all that it can read is a leak."""
    _need_torch("leaks")
    from radialbeams.training import leaks as canaries
    from radialbeams.training.weights import pick_device

    device, leaks = pick_device(devices), []
    effort = canaries.QUICK if quick else canaries.FULL
    if views is not None:
        effort = {**effort, "views": views}
    if not json_:
        print(f"{'protocol':<10}{'canary':<8}{'noise':<9}{'ρ₄':<25}{'ρ₁':<25}{'views':>7}")
    for combination in canaries.grid(protocol, canary, noise or (), quick=quick):
        with terminal.progress_bar(effort["views"], "training") as bar:
            leak = canaries.measure_leak(
                *combination, **effort, device=device, on_progress=bar.show
            )
        leaks.append(leak)
        print(as_json(leak.record()) if json_ else leak.row(), flush=True)
    if not json_:
        print(canaries.verdict(leaks))


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A run's folder, or a shipped model's name.")],
    out: Annotated[Path, typer.Argument(help="The ONNX file to write, its card beside it.")],
) -> None:
    """Writes ONNX, if and only if it computes what torch computes."""
    _need_torch("export")
    from radialbeams import zoo
    from radialbeams.training.runs import export_run

    if out.exists():
        raise ValueError(f"{out} exists already. Remove it or choose another name.")
    difference = export_run(zoo.find(run).stem, out)
    terminal.say(f"{out}: agrees with torch within {difference:.1e} at batches of 1, 7 and 128")


def _need_torch(verb: str) -> None:
    if find_spec("torch") is None or find_spec("safetensors") is None:
        raise ValueError(
            f"`radialbeams {verb}` needs torch, which the light install leaves out. "
            'Install it in your clone with: pip install -c constraints.txt -e ".[train]"'
        )


def _given(options: JsonDict) -> JsonDict:
    """The options that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def _is_data_set(data: str) -> bool:
    from radialbeams.training.data import SOURCES

    return data in SOURCES or data == "scenes"


def _paper_only(changes: JsonDict) -> JsonDict:
    """Options that a folder's run does not know, by their names on the command line."""
    names = {"padding": "--padding", "group": "--turns", "draw": "--draw", "prior": "--prior"}
    return {option: changes[name] for name, option in names.items() if name in changes}
