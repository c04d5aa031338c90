"""`reproduce details`: the network with ReLU, and words that follow the figures."""

from __future__ import annotations

import torch

from radialbeams.nn.architectures import build
from radialbeams.reproduce import details
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.reproduce.settings import ReproduceSettings


def test_only_the_activation_differs() -> None:
    recipe = details.recipe(details.ROWS[2], 0, ReproduceSettings())
    torch.manual_seed(0)
    leaky = build(recipe.model)
    torch.manual_seed(0)
    relu = details.relu_network(recipe, None)  # type: ignore[arg-type]
    weights, others = leaky.state_dict(), relu.state_dict()
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    views = torch.rand(2, 3, recipe.model.view_size, recipe.model.view_size)
    embeddings = relu.encoder(relu.beams(views))
    assert embeddings.min() == 0
    assert leaky.encoder(leaky.beams(views)).min() < 0
    assert min(part.min() for part in relu.context.messages(embeddings)) == 0


def test_the_words_follow_the_figures() -> None:
    cells = {
        row.name: {
            name: spread([value - 0.01, value, value + 0.01])
            for name in ("mean", "median", "within_10")
        }
        for row in details.ROWS
        for value in [3.0 if row.relu else 2.0]
    }
    data = {"cells": cells, "notes": [], "images": {row.name: 500 for row in details.ROWS}}
    ours, why = details.conclude(data)
    assert ours["LeakyReLU against ReLU, leak-free views"] == "LeakyReLU is better"
    assert "CIFAR-10 (500 training images" in why
    empty = {name: spread([]) for name in ("mean", "median", "within_10")}
    data["cells"] = {n: (empty if n.startswith("cifar") else c) for n, c in cells.items()}
    assert "CIFAR-10 was not found" in details.conclude(data)[1]
