#!/usr/bin/env python3
"""Serves a model with OpenVINO: latency and float32 hints, reshaped to the arrays' sizes, inputs and outputs bound."""

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints
from peer import parse_request, serve

REQUEST = parse_request()


def load() -> Callable[[], object]:
    core = ov.Core()
    model = core.read_model(REQUEST.model)
    model.reshape({name: list(array.shape) for name, array in REQUEST.inputs.items()})
    config = {
        hints.performance_mode: hints.PerformanceMode.LATENCY,
        hints.inference_precision: ov.Type.f32,
        # Else it rounds the operands of products with 8-bit weights to 8 bits, too, float32 precision or not.
        hints.dynamic_quantization_group_size: 0,
        props.inference_num_threads: REQUEST.threads,
    }
    request = core.compile_model(model, "CPU", config).create_infer_request()
    for name, array in REQUEST.inputs.items():
        request.set_tensor(name, ov.Tensor(np.ascontiguousarray(array), shared_memory=True))
    return request.infer


serve("openvino", ov.__version__, load)
