"""`radialbeams train FOLDER`: what is refused, what is shown meanwhile, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest

from radialbeams import zoo
from radialbeams.cards import write as write_card
from radialbeams.cli import main, running, terminal, training
from radialbeams.training.own import Status, TrainedRun
from radialbeams.training.own.tensorboard import open_board


@pytest.fixture
def made(tmp_path: Path) -> TrainedRun:
    """A run as `fit_folder` returns it."""
    summary = ("It is off by 2°.", "It knows when.", "Trust it.", "It turns most.")
    return TrainedRun(tmp_path / "run", replace(zoo.find("ring").card, trust=()), summary)


@pytest.fixture
def trained(made: TrainedRun, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, object]]:
    """Runs the command without training and returns what was asked for."""
    asked: dict[str, object] = {}

    def fit_folder(folder: str, out: Path, **options: object) -> TrainedRun:
        asked.update(folder=folder, out=out, **options)
        return made

    monkeypatch.setattr("radialbeams.training.own.fit_folder", fit_folder)

    def command(*words: object) -> dict[str, object]:
        assert main(["train", *map(str, words)]) == 0
        return asked

    return command


def test_a_folder_is_trained_on_with_its_own_defaults(
    trained: Callable[..., dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = trained("pictures", "--out", tmp_path / "run")
    assert (asked["folder"], asked["start"], asked["config"]) == ("pictures", "auto", {})
    assert (asked["minutes"], asked["steps"]) == (None, None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[2] == "Trust it. It turns most."
    assert lines[3] == f"Report: {tmp_path / 'run' / 'report.html'}"
    assert lines[4].startswith("Use it: radialbeams upright ")


def test_a_model_that_is_not_trusted_is_not_recommended(made: TrainedRun) -> None:
    doubted = replace(made, card=replace(made.card, trust=("The data is symmetric.",)))
    last = running.closing(doubted)[-1]
    assert last.startswith("Use it anyway: ") and last.endswith(" --min-confidence 0.5")


def test_options_go_on_top_of_the_file_of_settings(
    trained: Callable[..., dict[str, object]], tmp_path: Path
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"batch": 4, "seed": 3, "model": {"width": 64}}))
    asked = trained(
        *("pictures", "--out", tmp_path / "run", "--config", file, "--batch", 16),
        *("--num-beams", 24, "--start", "scratch", "--steps", 7),
    )
    assert asked["config"] == {"batch": 16, "seed": 3, "model": {"width": 64, "num_beams": 24}}
    assert (asked["start"], asked["steps"]) == ("scratch", 7)


def test_json_has_the_figures_the_report_and_the_trust(
    trained: Callable[..., dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained("pictures", "--out", tmp_path / "run", "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["trusted"] is True
    assert record["report"].endswith("report.html")
    assert record["mean"] > 0


def test_a_training_by_a_recipe_ends_in_words_and_prints_json_only_if_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = zoo.find("bic.coil100").card
    measured = card.metrics["paper"]
    monkeypatch.setattr("radialbeams.training.runs.complete", lambda *_, **__: card)
    words = ["train", "coil100", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    first, *rows, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path / 'run'} on coil100, {measured.split}, protocol ")
    assert rows[0].split() == ["mean", f"{measured.evaluation.mean:.2f}°"]
    assert last == f"Report: {tmp_path / 'run' / 'report.html'}"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] == measured.evaluation.mean


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--prior", "full"), "--prior needs --decoder lstm"),
        (("--size", "64"), "--size needs --decoder lstm"),
        (("--decoder", "lstm", "--start", "ring"), "--start applies only to a folder of your own"),
        (("--decoder", "lstm", "--realign"), "--realign applies only to a folder of your own"),
    ],
)
def test_options_of_the_other_kind_of_training_are_refused(
    options: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(tmp_path), "--out", str(tmp_path / "run"), *options]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert sentence in text


@pytest.mark.parametrize("verb", ["train", "evaluate"])
def test_the_usage_tells_the_images_from_the_folder_of_the_data_sets(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    usage = next(line for line in text.splitlines() if "Usage:" in line)
    assert "FOLDER|DATASET" in usage
    assert "DATA " not in usage


def test_the_help_says_which_options_a_folder_does_not_have() -> None:
    options = get_type_hints(training.train, include_extras=True)
    for name in ("padding", "turns", "draw", "prior"):
        (option,) = options[name].__metadata__
        assert " only: " in option.help


def test_a_status_says_loss_error_and_time_left() -> None:
    status = Status("training", 0.5, 1200, 0.01234, 4.26, 192.0)
    assert running.in_words(status) == (
        "training, step 1,200, loss 0.0123, held-out error 4.3°, 3:12 left"
    )
    assert running.in_words(Status("reading images", 0.25)) == "reading images, 25%"


def test_plain_lines_are_few(capsys: pytest.CaptureFixture[str]) -> None:
    plain = running._Plain()
    for step in range(50):
        plain.show(Status("training", step / 50, step, 0.1, None if step < 30 else 5.0, 9.0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "held-out error" not in lines[0] and "held-out error 5.0°" in lines[1]


def test_a_board_gets_loss_and_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path / "tensorboard")

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def flush(self) -> None:
            pass

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with running._progress(open_board(tmp_path)) as (_, show):
        show(Status("reading images", 0.5))
        show(Status("training", 0.5, 7, 0.25, 3.0, 9.0))
    assert written == [("loss", 0.25, 7), ("held-out error", 3.0, 7)]


def test_a_board_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="pip install tensorboard"):
        open_board(tmp_path)


def test_stopping_says_what_there_is_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    out.mkdir()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("radialbeams.training.own.fit_folder", stop)
    assert main(["train", str(tmp_path), "--out", str(out)]) == 130
    assert "stopped before training began" in capsys.readouterr().err
    (out / "checkpoint.safetensors").write_bytes(b"")
    line = {"step": 40, "held_out": {"mean": 7.25}}
    (out / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["train", str(tmp_path), "--out", str(out)]) == 130
    said = capsys.readouterr().err
    assert "stopped at step 40, held-out error 7.2°" in said
    assert "The same command resumes" in said


# --- a model that is not to be trusted ---


def test_reasons_against_a_model_are_whole_sentences() -> None:
    card = replace(zoo.find("ring").card, trust=("The data is symmetric", "It is off. Train on."))
    assert terminal.untrusted("mine", card) == (
        "model mine is not to be trusted: The data is symmetric. It is off. Train on."
    )


@pytest.fixture
def untrusted(tmp_path: Path) -> Path:
    """The light model, with a card that says not to trust it."""
    model, folder = zoo.find("ring.coil100"), tmp_path / "doubtful"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model.onnx.read_bytes())
    card = replace(model.card, trust=("The data is symmetric.",))
    write_card(folder / "model.json", card)
    return folder


def test_upright_leaves_everything_alone_with_an_untrusted_model(
    untrusted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from radialbeams import demo

    pictures = [str(path) for path in sorted(demo.PICTURES.glob("*.webp"))[:2]]
    words = ["upright", *pictures, "-o", str(tmp_path / "out"), "--dry-run", "--model"]
    assert main([*words, str(untrusted), "--json"]) == 0
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert records and all(record["action"] != "turned" for record in records)
    assert "not to be trusted: The data is symmetric." in captured.err
    assert "--min-confidence 0.5" in captured.err
    assert main([*words, str(untrusted), "--json", "--min-confidence", "0"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(record["action"] == "turned" for record in records)
