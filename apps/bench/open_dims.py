"""The dims that a model leaves open, with the sizes that given inputs have there."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import onnx


def open_dims(model: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Sizes by the dim's own name, or by INPUT.AXIS where it has none or the name stands for several sizes ("?")."""
    named: dict[str, dict[str, int]] = defaultdict(dict)
    for value in onnx.load(model, load_external_data=False).graph.input:
        dims = zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False)
        for axis, (dim, size) in enumerate(dims):
            if dim.dim_value <= 0:
                named[dim.dim_param][f"{value.name}.{axis}"] = size
    result: dict[str, int] = {}
    for name, places in named.items():
        if name and len(set(places.values())) == 1:
            result[name] = next(iter(places.values()))
        else:
            result |= places
    return result
