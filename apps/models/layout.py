"""The folder of one fetched model, as every script here reads it.

    NAME/model.onnx
    NAME/test_data_set_K/input_<name>.npy      one array a graph input
    NAME/test_data_set_K/output_<i>_<name>.npy the right answers, by graph output
    NAME/sets.json                             the sets, with the tensors' names exactly as in the model

`sets.json`: {"schema", "key", "name", "model", "tolerance": {"rtol", "atol_scale", "why"?},
"sets": [{"id", "label", "inputs": [{"name", "file"}], "outputs": [{"name", "file"}]}]}. Files are relative to the
folder. `sets.json` is written last, so a folder that has it is complete; `key` tells what it was made from.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = 1
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """One set of inputs by name and, when known, the right outputs in the graph's order."""

    label: str
    inputs: Arrays
    outputs: Arrays


def file_name(prefix: str, tensor: str, taken: set[str]) -> str:
    """A file name for a tensor: characters that file systems dislike become `_`, and no two are equal."""
    stem = f"{prefix}_{re.sub(r'[^A-Za-z0-9.-]+', '_', tensor)[:100]}"
    name, count = f"{stem}.npy", 1
    while name in taken:
        count += 1
        name = f"{stem}~{count}.npy"
    taken.add(name)
    return name


def write_set(folder: Path, index: int, data: DataSet) -> dict[str, Any]:
    """Writes one set's arrays; gives its entry of `sets.json`."""
    identity = f"test_data_set_{index}"
    (folder / identity).mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()

    def save(prefix: str, name: str, array: np.ndarray) -> dict[str, str]:
        path = f"{identity}/{file_name(prefix, name, taken)}"
        np.save(folder / path, np.asarray(array, order="C"), allow_pickle=False)
        return {"name": name, "file": path}

    inputs = [save("input", name, array) for name, array in data.inputs.items()]
    outputs = [save(f"output_{i}", name, array) for i, (name, array) in enumerate(data.outputs.items())]
    return {"id": identity, "label": data.label, "inputs": inputs, "outputs": outputs}


def read_sets(folder: Path) -> dict[str, Any] | None:
    """The folder's `sets.json`; None when the folder is missing or incomplete."""
    path = folder / "sets.json"
    return json.loads(path.read_text()) if path.exists() else None


def write_sets(folder: Path, name: str, key: str, tolerance: Mapping[str, Any], sets: list[DataSet]) -> None:
    """Writes every set and then `sets.json`."""
    entries = [write_set(folder, index, data) for index, data in enumerate(sets)]
    content = {"schema": SCHEMA, "key": key, "name": name, "model": "model.onnx", "tolerance": dict(tolerance), "sets": entries}
    partial = folder / "sets.json.part"
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.rename(folder / "sets.json")
