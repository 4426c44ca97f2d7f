"""Public architectures without weights, filled with random ones that are the same on every machine."""

import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from layout import DataSet

TOKENS = 8000  # below every vocabulary used
PADDING = 16  # masked positions at the end of a sequence


def seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def fill(path: Path) -> onnx.ModelProto:
    """Draws every initializer whose doc string says "normal MEAN STD", seeded by the initializer's name."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        rule = tensor.doc_string.split()
        if not rule or rule[0] != "normal":
            continue
        mean, std = float(rule[1]), float(rule[2])
        values = mean + std * seeded(tensor.name).standard_normal(tuple(tensor.dims))
        tensor.raw_data = values.astype("<f4").tobytes()
        tensor.ClearField("doc_string")
    return model


def make_input(model: str, value: onnx.ValueInfoProto) -> np.ndarray:
    """An input of the declared shape: a mask with padded positions, token numbers, or normal floats."""
    tensor = value.type.tensor_type
    shape = tuple(dim.dim_value for dim in tensor.shape.dim)
    if value.name == "mask":
        mask = np.ones(shape, np.int64)
        mask[..., -PADDING:] = 0
        return mask
    rng = seeded(f"{model}/{value.name}")
    if tensor.elem_type == TensorProto.INT64:
        return rng.integers(0, TOKENS, shape, dtype=np.int64)
    return rng.standard_normal(shape, dtype=np.float32)


def right_answers(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of ONNX Runtime without graph optimisation; empty where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return {}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def build(name: str, source: Path, target: Path) -> list[DataSet]:
    """Writes the filled model into `target`; gives its one data set."""
    model = fill(source)
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(model.SerializeToString())
    inputs = {value.name: make_input(name, value) for value in model.graph.input}
    return [DataSet("default", inputs, right_answers(target / "model.onnx", inputs))]
