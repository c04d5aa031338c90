"""The arrows between the modules, and what may not be imported, printed or asserted where."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "radialbeams"
FILES = sorted(PACKAGE.rglob("*.py"))

# Which parts of the package a part may import; a part may always import itself.
ARROWS = {
    "__init__": {"canonicalizer"},
    "__main__": {"cli"},
    # Here and in batch, the package itself only for its version.
    "cli": {
        "__init__",
        "serving",
        "batch",
        "canonicalizer",
        "demo",
        "images",
        "sheet",
        "zoo",
        "training",
        "experiments",
    },
    "serving": {"canonicalizer", "images", "zoo"},
    "batch": {"__init__", "answers", "canonicalizer", "images", "zoo"},
    "engines": {"batch", "canonicalizer", "images", "zoo"},
    "sheet": {"batch"},
    "demo": {"canonicalizer", "images"},
    "canonicalizer": {"answers", "images", "zoo"},
    "answers": set(),
    "images": set(),
    "zoo": set(),
    "transforms": {"answers", "canonicalizer", "images", "zoo"},
    # Training on pages makes the very view that the light side will show the network.
    "training": {"nn", "images"},
    # The shipped models, and the pictures inside the package to draw on.
    "experiments": {"nn", "training", "zoo", "demo"},
    # Only where the shipped models lie, for `Canonicalizer.from_pretrained`.
    "nn": {"zoo"},
}
LIGHT = set(ARROWS) - {"engines", "training", "nn", "experiments"}
# Inside nn every part may use angles, and two files wire the parts: bic the network's own, module
# the network with what lies before and behind it. Nothing else goes sideways.
SIDEWAYS = {
    "module": {
        *("affine", "angles", "bic", "folding", "pose", "pretrained", "ring", "sampling", "sight"),
    },
    "folding": set(),
    "pose": {"affine", "sampling"},
    "sampling": {"affine"},
    "pretrained": {"bic"},  # which it builds
    "sight": {"rotation"},  # its blur and its reach
}
HEAVY = {"torch", "safetensors", "onnx", "onnxscript", "matplotlib", "mitsuba"}
# What one may do without on a machine that only trains.
NOT_FOR_TRAINING = (
    *("typer", "rich", "onnx", "onnxruntime", "onnxscript"),
    *("matplotlib", "mitsuba", "sklearn", "scipy"),
)

# Every departure from the paper, by file, and the test file that covers it.
DEPARTURES = {
    "nn/prior.py": (1, "test_prior.py"),
    "nn/beams.py": (1, "test_beams.py"),
    "nn/encoder.py": (2, "test_encoder.py"),
    "nn/context.py": (1, "test_context.py"),
}


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names, also of imports inside functions; `from a import b` gives a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError("imports here are absolute")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def label(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parts_used(tree: ast.AST) -> set[str]:
    own = [name.split(".") for name in imports(tree) if name.split(".")[0] == "radialbeams"]
    return {names[1] if len(names) > 1 else "__init__" for names in own}


def wrong_arrows(here: str, tree: ast.AST) -> set[str]:
    return parts_used(tree) - ARROWS[here] - {here}


def heavy_imports(tree: ast.AST) -> set[str]:
    return {name.split(".")[0] for name in imports(tree)} & HEAVY


# --- arrows ---


@pytest.mark.parametrize("path", FILES, ids=label)
def test_the_arrows_go_one_way(path: Path) -> None:
    assert wrong_arrows(part(path), parse(path)) == set()


@pytest.mark.parametrize(
    ("here", "line", "wrong"),
    [
        ("images", "from radialbeams.canonicalizer import Canonicalizer", {"canonicalizer"}),
        ("nn", "from radialbeams.training.views import draws", {"training"}),
        ("training", "def f():\n    from radialbeams import zoo", {"zoo"}),
        ("canonicalizer", "import radialbeams.nn.bic", {"nn"}),
        ("demo", "from radialbeams import images", set()),
    ],
)
def test_an_arrow_back_is_found(here: str, line: str, wrong: set[str]) -> None:
    assert wrong_arrows(here, ast.parse(line)) == wrong


@pytest.mark.parametrize("path", sorted((PACKAGE / "nn").glob("*.py")), ids=lambda path: path.stem)
def test_the_parts_of_the_network_do_not_know_each_other(path: Path) -> None:
    names = {
        name.split(".")[2] for name in imports(parse(path)) if name.startswith("radialbeams.nn")
    }
    if path.stem == "bic":
        assert not names & {
            "affine",
            "folding",
            "module",
            "pose",
            "sampling",
            "pretrained",
            "sight",
        }
    else:
        assert names <= SIDEWAYS.get(path.stem, {"angles"})


def test_only_the_module_looks_for_shipped_models() -> None:
    files = sorted((PACKAGE / "nn").glob("*.py"))
    assert [path.stem for path in files if "zoo" in parts_used(parse(path))] == ["module"]


# --- the light side ---


@pytest.mark.parametrize("path", [path for path in FILES if part(path) in LIGHT], ids=label)
def test_the_light_side_imports_no_torch_not_even_late(path: Path) -> None:
    assert heavy_imports(parse(path)) == set()


def test_a_late_import_of_torch_is_found() -> None:
    assert heavy_imports(ast.parse("def f():\n    from torch import nn")) == {"torch"}
    assert heavy_imports(ast.parse("import safetensors.torch as st")) == {"safetensors"}


LOADED = "import sys; print(sorted({'torch', 'onnxruntime', 'rich'} & set(sys.modules)))"


def loaded_after(line: str) -> str:
    command = [sys.executable, "-c", f"{line}; {LOADED}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_loads_no_torch() -> None:
    modules = "radialbeams, radialbeams.images, radialbeams.zoo, radialbeams.demo, radialbeams.cli"
    loaded = loaded_after(f"import {modules}")
    assert "torch" not in loaded
    assert "onnxruntime" not in loaded  # most of the time that a command takes to start


def test_the_names_of_the_experiments_need_no_torch() -> None:
    line = "from radialbeams.experiments import registry; registry.names()"
    assert "torch" not in loaded_after(f"import radialbeams.experiments.settings; {line}")


def test_importing_torch_would_be_seen() -> None:
    assert "torch" in loaded_after("import radialbeams; import radialbeams.nn.angles")


@pytest.mark.parametrize(
    "modules",
    [
        "radialbeams.training.fit, radialbeams.training.runs, radialbeams.training.__main__",
        "radialbeams.experiments.__main__ as m; [m.registry.find(n) for n in m.registry.names()]",
    ],
)
def test_training_needs_none_of_the_command_lines_packages(modules: str) -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in NOT_FOR_TRAINING)
    code = f"import sys; {blocked}; import {modules}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- what may not be written ---


def called(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {ast.unparse(function) for function in calls}


@pytest.mark.parametrize("path", FILES, ids=label)
def test_only_the_commands_print(path: Path) -> None:
    if part(path) != "cli" and path.name != "__main__.py":
        assert "print" not in called(parse(path))


@pytest.mark.parametrize("path", FILES, ids=label)
def test_nothing_is_asserted_and_nothing_unpickled(path: Path) -> None:
    tree = parse(path)
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    unsafe = {"pickle.load", "pickle.loads", "torch.load", "eval", "exec", "pickle.Unpickler"}
    assert called(tree) & unsafe == set()


@pytest.mark.parametrize("path", FILES, ids=label)
def test_nothing_is_swallowed(path: Path) -> None:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None
            assert not all(isinstance(line, ast.Pass) for line in node.body)


def test_every_departure_from_the_paper_is_known_and_has_its_test() -> None:
    found = {label(path): path.read_text().count("Differs from the paper") for path in FILES}
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, (count, _) in DEPARTURES.items()
    }
    for _, test in DEPARTURES.values():
        assert (Path(__file__).parent / test).is_file()
