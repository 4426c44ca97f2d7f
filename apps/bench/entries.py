"""What apps/bench/models times: models by name, at other batches or lengths too, and what is asked of each.

An entry is NAME, NAME@bN (batch N) or NAME@sN (a sequence of N), or both. Variants are rewritten by resize.py and kept
beside the models they come from; all samples of a batch are the first data set's, and what the export fixed for a
sample of its own (a mask that is read through a table) is that sample's.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Best peer's time by ours: what must be, what we aim at.
WANTED = {
    "resnet50": (1.15, 1.35),
    "densenet121": (1.0, 1.25),
    "mobilenet_v2": (1.15, 1.40),
    "mobilenet_v3_small": (1.1, 1.4),
    "efficientnet_b0": (1.1, 1.35),
    "bert_base": (1.1, 1.28),
    "minilm_l6": (1.1, 1.35),
    "minilm_l6@s16": (1.1, 1.5),
    "vit_b_16": (1.1, 1.25),
    "gpt2": (1.0, 1.2),
    "resnet50@b8": (1.0, 1.2),
    "minilm_l6@b8": (1.0, 1.2),
}
WANTED_TRAINED = (0.9, 1.0)  # of each model of the list "first"
FORMAT = 2  # of the rewriting: variants of another are made again


@dataclass(frozen=True)
class Entry:
    """One row."""

    name: str
    base: str
    batch: int | None = None
    length: int | None = None

    @property
    def is_variant(self) -> bool:
        return self.batch is not None or self.length is not None


def parse(text: str) -> Entry | None:
    found = re.fullmatch(r"([^@]+)((?:@[bs][1-9][0-9]*)*)", text)
    if not found:
        return None
    sizes = {part[0]: int(part[1:]) for part in found[2].split("@") if part}
    return Entry(text, found[1], sizes.get("b"), sizes.get("s"))


def wanted(name: str, is_trained: bool) -> tuple[float, float] | None:
    """Must and aim of an entry."""
    return WANTED.get(name) or (WANTED_TRAINED if is_trained else None)


def read_inputs(folder: Path) -> dict[str, Path]:
    """The files of the first data set, by input name."""
    sets = json.loads((folder / "sets.json").read_text())["sets"]
    return {entry["name"]: folder / entry["file"] for entry in sets[0]["inputs"]} if sets else {}


def sizes_of(entry: Entry, inputs: dict[str, np.ndarray]) -> dict[tuple[int, int], int]:
    """Axis and old size of the inputs' dims that change, and the new size."""
    sizes: dict[tuple[int, int], int] = {}
    for array in inputs.values():
        if entry.batch and array.ndim > 0:
            sizes[0, array.shape[0]] = entry.batch * array.shape[0]
        if entry.length and array.ndim > 1:
            sizes[1, array.shape[1]] = entry.length
    return sizes


def prepare(entry: Entry, models: Path) -> Path:
    """The folder of an entry, made if it is a variant. Raises resize.ResizeError where that does not work."""
    source = models / entry.base
    if not entry.is_variant:
        return source
    import onnx
    import resize

    folder = models / "variants" / entry.name
    key = hashlib.sha256(f"{FORMAT} {(source / 'sets.json').read_text()}".encode()).hexdigest()[:16]
    ready = folder / "sets.json"
    if ready.exists() and json.loads(ready.read_text())["key"] == key:
        return folder
    arrays = {name: np.load(file) for name, file in read_inputs(source).items()}
    sizes = sizes_of(entry, arrays)
    fitted = {name: resize.fitted(array, sizes) for name, array in arrays.items()}
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    ready.unlink(missing_ok=True)
    open_dims = any(
        dim.dim_value <= 0
        for value in onnx.load(source / "model.onnx", load_external_data=False).graph.input
        for dim in value.type.tensor_type.shape.dim
    )
    if open_dims:  # takes its sizes from the arrays
        (folder / "model.onnx").unlink(missing_ok=True)
        (folder / "model.onnx").symlink_to((source / "model.onnx").resolve())
    else:
        onnx.save(resize.resized(source / "model.onnx", sizes), folder / "model.onnx")
    outputs = resize.outputs_of(folder / "model.onnx", fitted)
    if entry.batch and not entry.length:
        one = resize.outputs_of(source / "model.onnx", arrays)
        if not resize.same_rows(one, outputs, entry.batch):
            raise resize.ResizeError(f"{entry.name}: ONNX Runtime gives other rows than for one sample")
    files = []
    for number, (name, array) in enumerate(fitted.items()):
        np.save(data / f"input_{number}.npy", array)
        files.append({"name": name, "file": f"test_data_set_0/input_{number}.npy"})
    sets = [{"id": "test_data_set_0", "label": entry.name, "inputs": files, "outputs": []}]
    ready.write_text(json.dumps({"schema": 1, "key": key, "name": entry.name, "model": "model.onnx", "sets": sets}) + "\n")
    return folder
