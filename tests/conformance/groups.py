"""Which part of the suite a node case belongs to: the core set, or why it is outside.

Core: default domain, tensors only, no text, no image decoding, no random numbers, none of the float types below 32
bits or the integer types below 8, no subgraph. For ONNX 1.22 these are 1,432 of 1,765 node cases, with 176 operators.
"""

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, TensorProto

TINY_PREFIXES = ("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2")
TYPE_NAMES = TensorProto.DataType.items()
TINY = {value for name, value in TYPE_NAMES if name.startswith(TINY_PREFIXES)}
HALF = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype"}
GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in all_nodes(graph.node):
        yield from subgraphs(node)


def attribute_types(node: onnx.NodeProto) -> Iterator[int]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            yield attribute.t.data_type
        elif attribute.name in TYPE_ATTRIBUTES:
            yield attribute.i
        elif attribute.name in ("value_string", "value_strings"):
            yield TensorProto.STRING


def group_of(model: onnx.ModelProto) -> str:
    """`core`, or the first property that puts the case outside."""
    nodes = list(all_nodes(model.graph.node)) + [node for f in model.functions for node in all_nodes(f.node)]
    graphs = list(all_graphs(model.graph))
    values = [value.type for graph in graphs for value in (*graph.input, *graph.output, *graph.value_info)]
    types = {value.tensor_type.elem_type for value in values if value.WhichOneof("value") == "tensor_type"}
    types |= {tensor.data_type for graph in graphs for tensor in graph.initializer}
    types |= {kind for node in nodes for kind in attribute_types(node)}
    ops = {node.op_type for node in nodes}
    domains = {node.domain for node in nodes} | {opset.domain for opset in model.opset_import}

    rules = (
        ("other domain", bool(domains - {"", "ai.onnx"})),
        ("sequence or optional", any(value.WhichOneof("value") not in ("tensor_type", None) for value in values)),
        ("control flow", any(a.type in GRAPHS for node in nodes for a in node.attribute)),
        ("text", TensorProto.STRING in types),
        ("image decoder", "ImageDecoder" in ops),
        ("random", bool(ops & RANDOM)),
        ("float8 and below 8 bits", bool(types & TINY)),
        ("float16 and bfloat16", bool(types & HALF)),
    )
    return next((name for name, holds in rules if holds), "core")
