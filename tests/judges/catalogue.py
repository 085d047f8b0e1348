"""The catalogue of models: one row per function that writes one. zoo/*.py register theirs with @model."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steps import Bound

if TYPE_CHECKING:
    import numpy as np

# The values of each input of a signature, one dict per record.
Record = dict[str, "np.ndarray"]
Writer = Callable[[str, "np.random.Generator"], dict[str, list[Record]]]
REAL_MODELS = ["real_models"]     # those of TARE_TEST_DATA
# Modules of zoo/ that one process can load, and its environment.
GROUPS: tuple[tuple[list[str], dict[str, str]], ...] = (
    (["keras3", "modules", "preprocessing", "tensorflow1", "tf_keras_models"], {}),
    (["jax_models"], {"JAX_PLATFORMS": "cpu"}),
    (["keras_on_jax"], {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}),
    (REAL_MODELS, {}),
)


@dataclass(frozen=True)
class Model:
    """A model of the zoo. `write(folder, random)` writes a SavedModel into `folder` and returns records by signature.

    `refuses`: {pattern of a step: reason}, what `tare` must refuse with exit status 1 and a message that contains the reason.
    `may_refuse`: every refusal with a message is accepted. `quick`: belongs to the quick tier. `differs`: why outputs are not compared (they are random, say); empty: they are.
    `uncompiled`: why XLA cannot compile the whole signature, only its ops one by one; empty: it can, or an op is not supported.
    `bound`: of every comparison, for a model that itself computes in bfloat16, say; None: that of the step."""

    name: str
    module: str
    write: Writer
    quick: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    differs: str = ""
    bound: Bound | None = None
    uncompiled: str = ""
    may_refuse: bool = False


MODELS: dict[str, Model] = {}


def model(quick: bool = False, refuses: dict[str, str] | None = None, differs: str = "",
          bound: Bound | None = None, uncompiled: str = "") -> Callable[[Writer], Writer]:
    """Registers the function below it under its own name."""
    def register(write: Writer) -> Writer:
        name, module = write.__name__, write.__module__.rsplit(".", 1)[-1]
        if name in MODELS:
            raise ValueError(f"{name}: registered by {MODELS[name].module} and {module}")
        MODELS[name] = Model(name, module, write, quick, refuses or {}, differs, bound, uncompiled)
        return write
    return register


def load(module: str) -> None:
    """Imports a module of zoo/, which registers its models."""
    importlib.import_module(f"zoo.{module}")
