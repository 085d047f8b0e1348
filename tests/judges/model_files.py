"""Reads the message of a SavedModel, and writes a changed one next to the files of the original."""
from __future__ import annotations

import os
from pathlib import Path

from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model import loader_impl

MESSAGES = ("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb")


def parse(folder: str) -> saved_model_pb2.SavedModel:
    return loader_impl.parse_saved_model(folder)


def write(model: saved_model_pb2.SavedModel, folder: str, into: str) -> None:
    """Writes the message into the new folder `into`; the other files of `folder` become links."""
    os.makedirs(into)
    for path in Path(folder).iterdir():
        if path.name not in MESSAGES:
            (Path(into) / path.name).symlink_to(path.resolve())
    (Path(into) / "saved_model.pb").write_bytes(model.SerializeToString())
