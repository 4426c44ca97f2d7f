"""The cases of the ONNX backend test suite, out of the installed `onnx` package, with their data as .npy files."""

import json
import shutil
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test import data as suite

from batch import Tensor
from groups import group_of

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
FORMAT = 3


@dataclass(frozen=True)
class Case:
    """One data set of one case. `outputs` None: its data are no tensors that .npy can hold."""

    id: str
    group: str
    model: str
    inputs: list[dict[str, str]]
    outputs: list[dict[str, str]] | None

    def tensors(self, side: str) -> tuple[Tensor, ...]:
        return tuple(Tensor(**entry) for entry in (self.inputs if side == "inputs" else self.outputs or []))


def storable(array: np.ndarray) -> np.ndarray:
    """The array in a type that .npy knows: bits for small floats, a byte an element for small integers."""
    if array.dtype.kind in "OUS":
        raise TypeError("text")
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return array
    name = array.dtype.name
    if name.startswith("int"):
        return array.astype(np.int8)
    if name.startswith("uint"):
        return array.astype(np.uint8)
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


def convert(source: Path, value: onnx.ValueInfoProto, target: Path) -> dict[str, str]:
    """Converts one .pb file; TypeError when it is no tensor that .npy can hold."""
    if value.type.WhichOneof("value") != "tensor_type":
        raise TypeError(value.type.WhichOneof("value"))
    tensor = TensorProto.FromString(source.read_bytes())
    array = storable(numpy_helper.to_array(tensor))
    target.parent.mkdir(parents=True, exist_ok=True)
    np.save(target, array, allow_pickle=False)
    return {"name": value.name, "file": str(target)}


def convert_set(folder: Path, graph: onnx.GraphProto, target: Path) -> tuple[list[dict[str, str]], list[dict[str, str]] | None]:
    """The inputs and outputs of one data set; files bind to graph inputs and outputs by position."""
    try:
        sides = []
        for side, values in (("input", graph.input), ("output", graph.output)):
            count = len(list(folder.glob(f"{side}_*.pb")))
            files = [(folder / f"{side}_{i}.pb", values[i], target / f"{side}_{i}.npy") for i in range(count)]
            sides.append([convert(*file) for file in files])
        return sides[0], sides[1]
    except TypeError:
        return [], None


def convert_all(root: Path, cache: Path) -> list[Case]:
    cases = []
    for kind in KINDS:
        for folder in sorted((root / kind).iterdir()):
            path = folder / "model.onnx"
            model = onnx.load(path)
            group = group_of(model) if kind == "node" else kind
            for data in sorted(folder.glob("test_data_set_*")):
                suffix = "" if data.name.endswith("_0") else "#" + data.name.rpartition("_")[2]
                inputs, outputs = convert_set(data, model.graph, cache / kind / folder.name / data.name)
                cases.append(Case(f"{kind}/{folder.name}{suffix}", group, str(path), inputs, outputs))
    return cases


def load(cache: Path) -> list[Case]:
    """Every case, converted on the first call and read from the cache later."""
    root = Path(suite.__path__[0])
    key = f"{FORMAT} onnx {metadata.version('onnx')} {root}"
    index = cache / "cases.json"
    if index.exists():
        content = json.loads(index.read_text())
        if content["key"] == key:
            return [Case(**case) for case in content["cases"]]
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    cases = convert_all(root, cache)
    index.write_text(json.dumps({"key": key, "cases": [asdict(case) for case in cases]}))
    return cases
