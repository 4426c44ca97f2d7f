"""Errors against a float64 run of the graph interpreter, ours beside ONNX Runtime's, on the same inputs.

The interpreter takes minutes for large models; what it gave is kept by the digests of model and inputs.
"""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx

MUST = 2.0  # our error by ONNX Runtime's
# Errors below that part of the largest element are rounding of the result itself; who has less is not the better one.
LEAST = 2.0**-24


class AccuracyFailure(Exception):
    """A program that fails."""


def run_ours(
    program: Path, model: Path, inputs: dict[str, Path], folder: Path, names: list[str], flags: list[str]
) -> list[np.ndarray]:
    """The outputs of `tensmith run`, by position."""
    folder.mkdir(parents=True, exist_ok=True)
    line = [str(program), "run", str(model), *flags]
    for name, file in inputs.items():
        line += ["--input", f"{name}=@{file}"]
    for number, name in enumerate(names):
        line += ["--output", f"{name}=@{folder / f'output_{number}.npy'}"]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        raise AccuracyFailure(f"run {' '.join(flags)}: {done.stderr.strip()[:300]}")
    return [np.load(folder / f"output_{number}.npy") for number in range(len(names))]


def exact_outputs(
    program: Path, model: Path, digest: str, inputs: dict[str, Path], names: list[str], cache: Path
) -> list[np.ndarray]:
    """What the interpreter gives in float64."""
    key = hashlib.sha256(digest.encode())
    for name, file in sorted(inputs.items()):
        key.update(name.encode())
        key.update(file.read_bytes())
    folder = cache / key.hexdigest()[:24]
    done = folder / "done.json"
    if done.exists() and json.loads(done.read_text()) == names:
        return [np.load(folder / f"output_{number}.npy") for number in range(len(names))]
    outputs = run_ours(program, model, inputs, folder, names, ["--interpret"])
    done.write_text(json.dumps(names))
    return outputs


def errors(got: list[np.ndarray], exact: list[np.ndarray]) -> dict[str, float]:
    """Largest and root mean square difference by the output's largest element, of the worst output."""
    worst = {"max": 0.0, "rms": 0.0}
    for a, b in zip(got, exact, strict=True):
        if not np.issubdtype(b.dtype, np.floating) or b.size == 0:
            continue
        known = np.isfinite(b)
        scale = max(float(np.abs(b[known]).max(initial=0.0)), 1e-30)
        difference = np.abs(a.astype(np.float64) - b)[known] / scale
        if not np.isfinite(difference).all():
            return {"max": float("inf"), "rms": float("inf")}
        worst["max"] = max(worst["max"], float(difference.max(initial=0.0)))
        worst["rms"] = max(worst["rms"], float(np.sqrt(np.mean(difference**2))) if difference.size else 0.0)
    return worst


def measure(program: Path, model: Path, digest: str, inputs: dict[str, Path], threads: int, work: Path) -> dict[str, Any]:
    """Errors of both and the ratio of the largest ones."""
    import onnxruntime as ort

    names = [value.name for value in onnx.load(model, load_external_data=False).graph.output]
    exact = exact_outputs(program, model, digest, inputs, names, work / "exact")
    ours = run_ours(program, model, inputs, work / "got", names, ["--threads", str(threads)])
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    theirs = session.run(names, {name: np.load(file) for name, file in inputs.items()})
    found: dict[str, Any] = {"tensmith": errors(ours, exact), "onnxruntime": errors(theirs, exact)}
    found["ratio"] = {
        key: max(found["tensmith"][key], LEAST) / max(found["onnxruntime"][key], LEAST) for key in ("max", "rms")
    }
    return found


def print_accuracy(rows: list[dict[str, Any]], width: int) -> None:
    print("\nErrors against a float64 run of the graph interpreter, by the output's largest element: largest, root mean square")
    print(f"{'':{width}} {'ours':>19} | {'onnxruntime':>19} | ours / theirs (must {MUST:g})")
    for row in rows:
        if "accuracy" not in row:
            continue
        found = row["accuracy"]
        cells = [f"{found[who]['max']:9.2e} {found[who]['rms']:9.2e}" for who in ("tensmith", "onnxruntime")]
        bad = "  WORSE" if found["ratio"]["max"] > MUST else ""
        print(f"{row['model']:{width}} {' | '.join(cells)} | {found['ratio']['max']:5.2f} {found['ratio']['rms']:5.2f}{bad}")
