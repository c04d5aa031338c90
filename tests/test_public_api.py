"""The public names: few, there, and not changed by accident."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from types import ModuleType

import pytest

import radialbeams
from radialbeams import front, nn

# Import paths that the documents of older versions name, what they name there, and its place now.
MOVED = {
    "radialbeams.nn.module": (["Canonicalizer"], "radialbeams.front.module"),
    "radialbeams.nn.pose": (["Pose"], "radialbeams.front.pose"),
    "radialbeams.nn.centring": (["centred_boxes"], "radialbeams.front.centring"),
    "radialbeams.training.pipeline": (["export_pipeline"], "radialbeams.front.pipeline"),
    "radialbeams.training.hub": (["HubCanonicalizer"], "radialbeams.front.hub"),
    "radialbeams.experiments.accuracy": (["Task", "finder", "tally"], "radialbeams.front.accuracy"),
    "radialbeams.experiments.classifiers": (
        ["efficientnet_lite0"],
        "radialbeams.front.classifiers",
    ),
}
# And those that stayed.
STAYED = {
    "radialbeams.batch": ["Job", "Run"],
    "radialbeams.demo": ["PICTURES"],
    "radialbeams.nn.rotation": ["disc", "rotate"],
    "radialbeams.training": ["Run", "fit_folder"],
    "radialbeams.training.data": ["DataNotFound", "ImageSet", "SOURCES", "in_test", "load"],
    "radialbeams.training.leaks": ["QUICK", "measure_leak", "verdict"],
    "radialbeams.transforms": ["Upright", "UprightTransformer"],
}


def test_the_public_names_are_these() -> None:
    assert sorted(radialbeams.__all__) == [
        "Canonicalization",
        "Canonicalizer",
        "__version__",
        "canonicalize",
    ]


@pytest.mark.parametrize("name", radialbeams.__all__)
def test_a_public_name_exists(name: str) -> None:
    assert getattr(radialbeams, name) is not None


def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", radialbeams.__version__)


@pytest.mark.parametrize("package", [nn, front], ids=["nn", "front"])
def test_a_folder_exports_what_it_names(package: ModuleType) -> None:
    assert sorted(set(package.__all__)) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_a_tutorial_needs_nothing_deeper_than_these() -> None:
    assert set(front.__all__) == {
        "Canonicalizer",
        "Pose",
        "PosteriorAverage",
        "centred_boxes",
        "export_pipeline",
    }


@pytest.mark.parametrize("old", MOVED)
def test_an_old_import_path_gives_the_same_object(old: str) -> None:
    names, new = MOVED[old]
    if old.endswith("hub"):
        pytest.importorskip("huggingface_hub")
    for name in names:
        moved = getattr(importlib.import_module(new), name)
        assert getattr(importlib.import_module(old), name) is moved


@pytest.mark.parametrize("module", STAYED)
def test_an_import_path_of_the_documents_stays(module: str) -> None:
    for name in STAYED[module]:
        assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    "module",
    [
        *("radialbeams", "radialbeams.training", "radialbeams.training.average"),
        *("radialbeams.reproduce", "radialbeams.experiments"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_a_module_that_is_a_command_still_is_one(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert not stopped.value.code and "usage" in capsys.readouterr().out.lower()
