"""The arrows between the modules, and what may not be imported, printed or asserted where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "radialbeams"
PYTHON = sorted(PACKAGE.rglob("*.py"))
BENCHMARKS = sorted((PACKAGE.parent / "benchmarks").rglob("*.py"))

# Which parts of the package a part may import. A part may always import itself and `files`.
ARROWS = {
    "__init__": {"canonicalizer", "telemetry"},
    "__main__": {"cli"},
    # Here and in batch, the package itself only for its version.
    "cli": {
        *("__init__", "batch", "cards", "canonicalizer", "defaults", "demo", "documents"),
        *("engines", "escaping", "images", "limits", "posterior", "serving", "sheet"),
        *("stored", "training", "reproduce", "zoo"),
    },
    "batch": {
        *("__init__", "canonicalizer", "cards", "decisions", "defaults", "documents", "images"),
        *("limits", "posterior", "stored", "undoing", "zoo"),
    },
    "serving": {
        *("__init__", "batch", "canonicalizer", "cards", "decisions", "defaults", "documents"),
        *("images", "limits", "posterior", "stored", "undoing", "zoo"),
    },
    # The batch step somewhere else; the package itself only for its version.
    "engines": {
        *("__init__", "batch", "cards", "defaults", "documents", "images", "limits", "stored"),
        "zoo",
    },
    "sheet": {"batch", "escaping"},
    "escaping": set(),
    "demo": {"canonicalizer", "images"},
    "canonicalizer": {
        *("cards", "decisions", "defaults", "documents", "further_looks", "images", "limits"),
        *("posterior", "runtime", "undoing", "zoo"),
    },
    "further_looks": {"cards", "images", "posterior"},
    "documents": {"defaults", "images", "posterior", "runtime", "stored", "zoo"},
    "runtime": {"cards", "zoo"},
    "transforms": {"canonicalizer", "decisions", "defaults", "documents", "images", "zoo"},
    "undoing": {"decisions", "images", "limits"},
    "decisions": {"defaults", "posterior"},
    "defaults": {"cards", "posterior"},
    "posterior": set(),
    "files": set(),
    "extras": set(),
    "images": {"cards", "defaults", "limits"},
    "limits": set(),
    "telemetry": set(),
    "zoo": {"cards"},
    "cards": {"posterior", "stored"},
    "stored": set(),
    "nn": {"cards", "posterior", "stored"},  # the definitions of what is read
    # Training on pages makes the very view that the light side shows the network.
    "training": {"cards", "escaping", "images", "limits", "nn", "posterior", "stored", "zoo"},
    # The models that it loads by name, and of training only how a model is saved and exported.
    "front": {"cards", "defaults", "nn", "posterior", "stored", "training", "zoo"},
    # The shipped models, and the pictures inside the package to draw on.
    "reproduce": {"cards", "nn", "posterior", "stored", "training", "front", "zoo", "demo"},
}
SAVING = {"radialbeams.training.export", "radialbeams.training.weights"}
# Files at import paths of older versions, which hand on names from elsewhere and do nothing else.
FORWARDING = {
    *("nn/module.py", "nn/pose.py", "nn/centring.py", "training/pipeline.py", "training/hub.py"),
    *("experiments/__init__.py", "experiments/__main__.py"),
    *("experiments/accuracy.py", "experiments/classifiers.py"),
}
FILES = [path for path in PYTHON if path.relative_to(PACKAGE).as_posix() not in FORWARDING]
LIGHT = set(ARROWS) - {"training", "nn", "front", "reproduce"}
# Inside nn every part may use angles and layers; one file for each network wires them.
NN_SHARED = {"angles", "layers", "losses", "network"}
NN_SIDEWAYS = {
    "beam_network": {"beams", "encoder", "network"},
    "beams": {"kernels"},
    # The kernels know only whether they may be used: not in an exported file.
    "using": {"exporting"},
    "angles": {"exporting"},
    "reading": {"kernels"},
    "turning": {"kernels"},
    "viewing": {"kernels"},
    "bic": {"beam_network", "beams", "context", "decoder", "encoder", "prior", *NN_SHARED},
    "ring": {"layers", "posterior"},  # how far its offsets reach
    "ring_fast": {"layers", "ring"},
    "ring_network": {"beam_network", "posterior", "ring", "ring_fast", *NN_SHARED},
    # In half precision on a GPU: which layers of a network go to which kernels.
    "ring_kernels": {"beams", "kernels", "posterior", "ring", "ring_fast"},
    "convolutional_kernels": {"convolutional", "kernels"},
    # The kernels know no layers, only tensors.
    "convolution": {"kernels"},
    "stem": {"kernels"},
    "pair": {"kernels"},
    "attention": {"kernels"},
    "sampling": {"kernels"},
    "ends": {"kernels"},
    "arithmetic": {"exporting", "kernels"},
    "depthwise": {"kernels"},
    "product": {"kernels"},
    "view_stem": {"kernels"},
    "ring_export": {"beams", "layers", "posterior", "ring", "ring_network", "toom_cook"},
    "posterior": NN_SHARED,
    "convolutional": {"posterior", *NN_SHARED},
    # Its rows, and what their defaults follow from.
    "architectures": {
        *("beam_network", "bic", "convolutional", "first_format", "posterior", "ring_network"),
        *("ring_export", "rotation", *NN_SHARED),
    },
    "pretrained": {"architectures", "onnx_weights"},  # which build, from files
}
# In front of a model: maps of points, then pixels moved by them, then poses, and the module last.
FRONT_SIDEWAYS = {
    "sampling": {"affine"},
    "straight": {"affine", "sampling"},
    "centring": {"sampling"},  # what a batch is
    "pose": {"affine", "sampling"},
    "checks": {"sampling"},
    "deciding": {"affine"},
    "exported": {"affine", "pose", "sampling", "view_geometry"},
    "module": {
        *("affine", "checks", "deciding", "folding", "pose", "sampling", "straight"),
        "view_geometry",
    },
    "pipeline": {"exported", "module", "pose"},
    "averaging": {"checks", "module", "pose"},
    "hub": {"module"},
    "accuracy": {"module", "pose"},
}
HEAVY = {"torch", "safetensors", "onnx", "onnxscript", "matplotlib", "mitsuba"}
# What one may do without on a machine that only trains.
NOT_FOR_TRAINING = (
    *("typer", "rich", "onnx", "onnxruntime", "onnxscript"),
    *("matplotlib", "mitsuba", "sklearn", "scipy"),
)

# Every departure from the paper: by file, the test of each, in the order of the marks.
DEPARTURES = {
    "nn/prior.py": (
        "nn/test_prior.py::test_the_loss_is_the_negative_log_probability_of_the_true_shift",
    ),
    "nn/beams.py": (
        "nn/test_beams.py::test_around_the_papers_centre_a_quarter_turn_is_no_roll",
        "nn/test_beams.py::test_the_printed_formula_is_off_by_more_than_40_percent",
    ),
    "nn/encoder.py": (
        "nn/test_encoder.py::test_the_proximity_kernel_closes_the_width",
        "nn/test_encoder.py::test_each_table_of_the_paper_takes_d_minus_2_to_exactly_1",
        "nn/test_encoder.py::test_every_activation_leaks_0_3",
    ),
    "nn/context.py": (
        "nn/test_context.py::test_the_wheel_of_four_beams",
        "nn/test_context.py::test_beams_keep_their_embeddings_beside_the_attention_output",
        "nn/test_context.py::test_activations_leak_0_3",
    ),
    "nn/bic.py": ("nn/test_bic.py::test_the_lstm_keeps_its_own_start",),
    "training/recipe.py": (
        "training/test_recipe.py::test_the_defaults_are_the_papers_but_for_the_turns",
    ),
}


# How long a file and a function may be, and what is longer with the reason for it.
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 60
LONG_FILES: dict[str, str] = {}
# The functions that may take or return an unnamed dictionary.
UNTYPED = {"transforms.py": {"get_params"}}  # scikit-learn prescribes its signature
# Classes of the same name: users import each from the module that names its purpose.
SAME_NAMES = {"Upright": ["engines/frames.py", "transforms.py"]}
OPTIONS = "a command's signature is the list of its options with their help"
LONG_FUNCTIONS = {
    "cli/files.py: upright": OPTIONS,
    "cli/reproduce.py: reproduce": OPTIONS,
    "cli/training.py: train": OPTIONS,
    "training/leaks.py: measure_leak": "one keyword for each part of a measurement",
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


@cache
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
    return parts_used(tree) - ARROWS[here] - {here, "files", "extras"}


def offending(paths: list[Path], problems: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """The files with problems, so that a test of all files names them."""
    return {label(path): problems(path) for path in paths if problems(path)}


def heavy_imports(tree: ast.AST) -> set[str]:
    return {name.split(".")[0] for name in imports(tree)} & HEAVY


# --- arrows ---


def test_the_arrows_go_one_way() -> None:
    assert offending(FILES, lambda path: wrong_arrows(part(path), parse(path))) == {}


@pytest.mark.parametrize(
    ("here", "line", "wrong"),
    [
        ("images", "from radialbeams.canonicalizer import Canonicalizer", {"canonicalizer"}),
        ("nn", "from radialbeams.training.views import draws", {"training"}),
        ("training", "def f():\n    from radialbeams import batch", {"batch"}),
        ("training", "from radialbeams.front import Canonicalizer", {"front"}),
        ("canonicalizer", "import radialbeams.nn.bic", {"nn"}),
        ("demo", "from radialbeams import images", set()),
    ],
)
def test_an_arrow_back_is_found(here: str, line: str, wrong: set[str]) -> None:
    assert wrong_arrows(here, ast.parse(line)) == wrong


def test_the_arrows_name_every_part_and_nothing_else() -> None:
    assert set(ARROWS) == {part(path) for path in FILES}
    assert set().union(*ARROWS.values()) <= set(ARROWS)


@pytest.mark.parametrize("name", sorted(FORWARDING))
def test_a_forwarding_file_does_nothing_else(name: str) -> None:
    body = parse(PACKAGE / name).body
    assert ast.unparse(body[0]).lstrip("'\"").startswith("Deprecated: ")
    if not name.endswith("__main__.py"):
        assert all(isinstance(line, ast.ImportFrom | ast.Assign) for line in body[1:])


def test_nothing_in_the_package_imports_by_an_old_path() -> None:
    old = {f"radialbeams.{name.removesuffix('.py').replace('/', '.')}" for name in FORWARDING}
    old = {name.removesuffix(".__init__") for name in old}
    for path in FILES:
        used = {name.rpartition(".")[0] for name in imports(parse(path))}
        assert used & old == set(), label(path)


def sideways(path: Path) -> set[str]:
    """The files of its own folder that a file imports."""
    start = f"radialbeams.{part(path)}."
    names = (name for name in imports(parse(path)) if name.startswith(start))
    return {name.removeprefix(start).split(".")[0] for name in names}


def in_folder(name: str) -> list[Path]:
    return [path for path in FILES if part(path) == name and path.name != "__init__.py"]


@pytest.mark.parametrize("path", in_folder("nn"), ids=label)
def test_the_parts_of_the_network_do_not_know_each_other(path: Path) -> None:
    assert sideways(path) <= NN_SIDEWAYS.get(path.stem, {"angles"})


@pytest.mark.parametrize("path", in_folder("front"), ids=label)
def test_in_front_of_a_model_only_the_module_knows_all_parts(path: Path) -> None:
    assert sideways(path) <= FRONT_SIDEWAYS.get(path.stem, set())


@pytest.mark.parametrize("path", in_folder("front"), ids=label)
def test_in_front_of_a_model_training_only_saves_and_exports(path: Path) -> None:
    used = {name for name in imports(parse(path)) if name.startswith("radialbeams.training")}
    assert {name.rpartition(".")[0] for name in used} <= SAVING


def test_only_the_module_looks_for_shipped_models() -> None:
    found = [path.stem for path in in_folder("front") if "zoo" in parts_used(parse(path))]
    assert found == ["module"]


@pytest.mark.parametrize("path", sorted((PACKAGE / "training" / "data").glob("*.py")), ids=label)
def test_data_knows_nothing_of_the_training_on_it(path: Path) -> None:
    used = {name for name in imports(parse(path)) if name.startswith("radialbeams.training")}
    assert all(name.startswith("radialbeams.training.data.") for name in used)


# --- the light side ---


def test_the_light_side_imports_no_torch_not_even_late() -> None:
    light = [path for path in FILES if part(path) in LIGHT]
    assert offending(light, lambda path: heavy_imports(parse(path))) == {}


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
    line = "from radialbeams.reproduce import registry; registry.names()"
    assert "torch" not in loaded_after(f"import radialbeams.reproduce.settings; {line}")


def test_importing_torch_would_be_seen() -> None:
    fake = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"
    assert "torch" in loaded_after(f"{fake}; import radialbeams")


def test_training_needs_none_of_the_command_lines_packages() -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in NOT_FOR_TRAINING)
    modules = (
        *("radialbeams.training.fit", "radialbeams.training.runs", "radialbeams.training.__main__"),
        *("radialbeams.front", "radialbeams.reproduce.__main__ as m"),
    )
    code = f"import sys; {blocked}; import {', '.join(modules)}; "
    code += "[m.registry.find(name) for name in m.registry.names()]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- what may not be written ---


def long_functions(tree: ast.AST) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [
        node.name
        for node in functions
        if (node.end_lineno or node.lineno) - node.lineno >= MOST_LINES_OF_A_FUNCTION
    ]


def test_no_file_is_long_without_a_reason() -> None:
    lengths = {label(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} == set(LONG_FILES)


def test_no_function_is_long_without_a_reason() -> None:
    found = {f"{label(path)}: {name}" for path in FILES for name in long_functions(parse(path))}
    assert found == set(LONG_FUNCTIONS)


@pytest.mark.parametrize(("lines", "found"), [(60, []), (61, ["f"])])
def test_a_long_function_would_be_seen(lines: int, found: list[str]) -> None:
    body = "\n".join(["    pass"] * (lines - 1))
    assert long_functions(ast.parse(f"def f():\n{body}")) == found


def untyped_signatures(tree: ast.AST) -> set[str]:
    """Functions that take or return an unnamed dictionary of anything."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    names = set()
    for function in functions:
        arguments = ast.unparse(function.args)
        result = "" if function.returns is None else ast.unparse(function.returns)
        if re.search(r"\b(dict|Mapping)\[str, Any\]", f"{arguments} {result}"):
            names.add(function.name)
    return names


def test_no_unnamed_dictionary_passes_between_functions() -> None:
    assert offending(FILES, lambda path: untyped_signatures(parse(path))) == UNTYPED


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_no_unnamed_dictionary_passes_between_functions_of_a_benchmark(path: Path) -> None:
    assert untyped_signatures(parse(path)) == set()


def test_an_unnamed_dictionary_would_be_seen() -> None:
    lines = "def f(x: dict[str, Any]): ...\ndef g() -> Mapping[str, Any] | None: ..."
    assert untyped_signatures(ast.parse(lines)) == {"f", "g"}
    assert untyped_signatures(ast.parse("def f(x: JsonDict) -> dict[str, int]: ...")) == set()


def test_each_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        if part(path) != "reproduce":  # each experiment is read alone
            for node in ast.walk(parse(path)):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(label(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == SAME_NAMES


def called(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {ast.unparse(function) for function in calls}


UNSAFE = {"pickle.load", "pickle.loads", "torch.load", "eval", "exec", "pickle.Unpickler"}


def asserted(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
    return {f"line {node.lineno}" for node in nodes}


def swallowed(tree: ast.AST) -> set[str]:
    """The lines of handlers for everything, or that do nothing."""
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    return {
        f"line {node.lineno}"
        for node in handlers
        if node.type is None or all(isinstance(line, ast.Pass) for line in node.body)
    }


def test_only_the_commands_print() -> None:
    others = [path for path in FILES if part(path) != "cli" and path.name != "__main__.py"]
    assert offending(others, lambda path: called(parse(path)) & {"print"}) == {}


def test_nothing_is_asserted_and_nothing_unpickled() -> None:
    assert offending(FILES, lambda path: asserted(parse(path))) == {}
    assert offending(FILES, lambda path: called(parse(path)) & UNSAFE) == {}


def test_nothing_is_swallowed() -> None:
    assert offending(FILES, lambda path: swallowed(parse(path))) == {}


@pytest.mark.parametrize("line", ["except:\n    f()", "except OSError:\n    pass"])
def test_a_swallowed_error_would_be_seen(line: str) -> None:
    assert swallowed(ast.parse(f"try:\n    f()\n{line}")) == {"line 3"}


def test_an_assertion_a_print_and_a_pickle_would_be_seen() -> None:
    assert asserted(ast.parse("x = 1\nassert x")) == {"line 2"}
    assert {"print", "pickle.load"} == called(ast.parse("print(pickle.load)\npickle.load(x)"))


def test_every_departure_from_the_paper_is_known_and_has_its_test() -> None:
    found = {label(path): path.read_text().count("Differs from the paper") for path in FILES}
    assert {name: count for name, count in found.items() if count} == {
        name: len(tests) for name, tests in DEPARTURES.items()
    }
    for tests in DEPARTURES.values():
        for file, name in (test.split("::") for test in tests):
            assert f"def {name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
