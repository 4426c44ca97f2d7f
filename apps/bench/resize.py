"""Models at other sizes than they were exported with: another batch, another length of the sequence.

A graph exported for fixed sizes has them in its inputs, in the targets of its reshapes and in tables of positions. Each
is rewritten from the sizes in front of it, one reshape after the other. Whether it worked is tested, not assumed: ONNX
Runtime has to give the same rows for the larger batch (each sample is the first data set's), see `same_rows`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

# Operators whose constants with a row a place of the sequence are tables, not weights that are multiplied.
TABLE_READERS = {"Add", "Mul", "Where", "And", "Gather", "GatherElements", "GatherND"}
KEPT_ELEMENTS = 64  # of weights that may decide shapes; larger ones are of no use to shape inference


class ResizeError(Exception):
    """A model that does not let itself be rewritten."""


def regrouped(old: list[int], new: list[int], target: list[int]) -> list[int]:
    """What becomes of a reshape's target when its operand's dims go from `old` to `new`.

    Both shapes are cut into the shortest runs of equal products; what a run of the operand grows by, the first dim of
    the run of the target grows by.
    """
    result: list[int] = []
    i = j = 0
    while i < len(old) or j < len(target):
        first, first_target = i, j
        left, right = 1, 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(target):
            right, j = target[j], j + 1
        while left != right:
            if left < right and i < len(old):
                left, i = left * old[i], i + 1
            elif right < left and j < len(target):
                right, j = right * target[j], j + 1
            else:
                raise ResizeError(f"reshape of {old} to {target}: expected runs of equal products")
        before, after = int(np.prod(old[first:i])), int(np.prod(new[first:i]))
        run = target[first_target:j]
        if before != after:
            if not run or (run[0] * after) % before:
                raise ResizeError(f"reshape of {old} to {target}: a run goes from {before} to {after}")
            run = [run[0] * after // before, *run[1:]]
        result += run
    return result


class Resizer:
    """Rewrites one model."""

    def __init__(self, model: onnx.ModelProto, sizes: dict[tuple[int, int], int]) -> None:
        """`sizes`: (axis, old size) of every input to the new size."""
        self.model, self.graph, self.sizes = model, model.graph, sizes
        self.weights = {tensor.name: tensor for tensor in self.graph.initializer}
        self.old = self.shapes()

    def skeleton(self) -> onnx.ModelProto:
        """The model with its large weights as inputs, which shape inference copes with quickly."""
        small = onnx.ModelProto()
        small.CopyFrom(onnx.ModelProto(ir_version=self.model.ir_version, opset_import=self.model.opset_import))
        small.graph.name = self.graph.name
        small.graph.node.extend(self.graph.node)
        small.graph.input.extend(self.graph.input)
        small.graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in self.graph.output)
        given = {value.name for value in self.graph.input}
        for tensor in self.graph.initializer:
            if np.prod(tensor.dims, dtype=np.int64) <= KEPT_ELEMENTS:
                small.graph.initializer.append(tensor)
            elif tensor.name not in given:
                small.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        return small

    def shapes(self) -> dict[str, list[int]]:
        """Every value's sizes as far as they are known."""
        inferred = onnx.shape_inference.infer_shapes(self.skeleton(), data_prop=True).graph
        found = {tensor.name: list(tensor.dims) for tensor in self.graph.initializer}
        for value in (*inferred.input, *inferred.value_info, *inferred.output):
            dims = value.type.tensor_type.shape.dim
            if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
                found[value.name] = [dim.dim_value for dim in dims]
        return found

    def run(self) -> None:
        for value in self.graph.input:
            if value.name in self.weights:
                continue
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_value = self.sizes.get((axis, dim.dim_value), dim.dim_value)
        for value in self.graph.output:
            value.type.tensor_type.ClearField("shape")
        del self.graph.value_info[:]
        self.cut_tables()
        for node in self.graph.node:
            if node.op_type == "Reshape":
                self.reshape(node)

    def cut_tables(self) -> None:
        """Tables of positions that elementwise operators add: as many rows as the sequence has now."""
        readers: dict[str, set[str]] = {}
        for node in self.graph.node:
            for name in node.input:
                readers.setdefault(name, set()).add(node.op_type)
        for tensor in self.graph.initializer:
            if not readers.get(tensor.name, set()) <= TABLE_READERS or len(tensor.dims) < 2:
                continue
            for (axis, old), new in self.sizes.items():
                if axis == 0 or old <= new or tensor.dims[0] != 1:
                    continue
                for place, size in enumerate(tensor.dims):
                    if size == old:
                        cut = np.take(numpy_helper.to_array(tensor), range(new), axis=place)
                        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(cut), tensor.name))

    def reshape(self, node: onnx.NodeProto) -> None:
        data, target = node.input[0], node.input[1]
        if target not in self.weights:
            return  # computed from sizes, or a node's constant, which the test of the result will tell
        new = self.shapes().get(data)
        old, shape = self.old.get(data), self.old.get(node.output[0])
        if new is None or old is None or shape is None:
            raise ResizeError(f"node {node.name}: the sizes of {data} are not known")
        wanted = regrouped(old, new, shape)
        name = f"{node.output[0]}_shape_resized"
        tensor = numpy_helper.from_array(np.array(wanted, dtype=np.int64), name)
        self.graph.initializer.append(tensor)
        self.weights[name] = tensor
        node.input[1] = name


def resized(path: Path, sizes: dict[tuple[int, int], int]) -> onnx.ModelProto:
    """The model with other sizes of its inputs."""
    model = onnx.load(path)
    Resizer(model, sizes).run()
    return model


def fitted(array: np.ndarray, sizes: dict[tuple[int, int], int]) -> np.ndarray:
    """An input's array at the new sizes: repeated along the batch, its beginning along the rest."""
    for axis, size in enumerate(array.shape):
        new = sizes.get((axis, size), size)
        if new > size:
            array = np.concatenate([array] * -(-new // size), axis=axis)
        array = np.take(array, range(new), axis=axis)
    return np.ascontiguousarray(array)


def outputs_of(model: Path, inputs: dict[str, np.ndarray]) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    return list(ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, inputs))


def same_rows(small: Iterable[np.ndarray], large: Iterable[np.ndarray], batch: int) -> bool:
    """Whether every sample of the larger batch gives what the one sample gave."""
    return all(
        b.shape == (a.shape[0] * batch, *a.shape[1:])
        and np.allclose(np.concatenate([a] * batch), b, rtol=1e-3, atol=1e-4 * max(float(np.abs(a).max()), 1e-30))
        for a, b in zip(small, large, strict=True)
    )
