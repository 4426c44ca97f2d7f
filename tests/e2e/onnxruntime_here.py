"""What ONNX Runtime on this machine answers, for models whose stored answers come from another kind of machine.

Its 8-bit products saturate on CPUs without VNNI, so that one dynamically quantised model has several answers; and its
optimised and unoptimised runs may round to neighbouring 8-bit steps, and so may two runs whose float values differ in
the last digit, which a chain of such roundings multiplies. Its DynamicQuantizeLSTM rounds input and state to
8 bits by the range that a call happens to see; we keep their precision, which is the float LSTM with the same weights.
That is another question than the model's own: it is asked only where `float_lstm` says so, and only models that
spread.txt waives say so.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper


def constant_of(graph: onnx.GraphProto, name: str) -> np.ndarray:
    return next(numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name == name)


def with_float_lstm(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replaces DynamicQuantizeLSTM by LSTM with the weights in float32."""
    graph = model.graph
    for place, node in enumerate(graph.node):
        if node.op_type != "DynamicQuantizeLSTM":
            continue
        inputs = list(node.input[:8])
        for weight, scale in ((1, 8), (2, 10)):
            values, factor, zero = (constant_of(graph, node.input[k]) for k in (weight, scale, scale + 1))
            shape = (values.shape[0], 1, -1) if factor.ndim > 1 else (-1, 1, 1)
            real = (values.astype(np.float32) - zero.astype(np.float32).reshape(shape)) * factor.reshape(shape)
            inputs[weight] = node.input[weight] + ".real"
            transposed = np.ascontiguousarray(real.transpose(0, 2, 1), dtype=np.float32)
            graph.initializer.append(numpy_helper.from_array(transposed, inputs[weight]))
        lstm = helper.make_node("LSTM", inputs, list(node.output), name=node.name)
        lstm.attribute.extend(node.attribute)
        graph.node[place].CopyFrom(lstm)
    return model


def moved(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with every float32 weight moved by one part in 10^7, the rounding of one operation."""
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            shift = 1 + random.choice([-1e-7, 1e-7], values.shape)
            tensor.CopyFrom(numpy_helper.from_array((values * shift).astype(np.float32), tensor.name))
    return model


def answers(
    model: Path,
    inputs: Mapping[str, Path],
    outputs: Sequence[str],
    optimised: bool = True,
    move: int = 0,
    float_lstm: bool = False,
) -> list[np.ndarray]:
    """The outputs of one run: `move` is the seed of moved weights, 0 for none; `float_lstm` as with_float_lstm."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    proto = onnx.load(model)
    if float_lstm:
        proto = with_float_lstm(proto)
    session = ort.InferenceSession((moved(proto, move) if move else proto).SerializeToString(), options)
    given = {name: np.load(path, allow_pickle=False) for name, path in inputs.items()}
    return session.run(list(outputs), given)
