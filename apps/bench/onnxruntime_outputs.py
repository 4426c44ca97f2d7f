#!/usr/bin/env python3
"""Saves what ONNX Runtime, without optimisation, gives for a model: the reference of `tensmith verify --ref onnxruntime`."""

import argparse
from pathlib import Path

import numpy as np
import onnxruntime as ort


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--input", action="append", default=[], help="NAME=@FILE.npy")
    parser.add_argument("--output-dir", type=Path, required=True)
    request = parser.parse_args()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(str(request.model), options, providers=["CPUExecutionProvider"])
    inputs = {}
    for item in request.input:
        name, file = item.rsplit("=@", 1)
        inputs[name] = np.load(file)
    for index, array in enumerate(session.run(None, inputs)):
        np.save(request.output_dir / f"output_{index}.npy", array)


main()
