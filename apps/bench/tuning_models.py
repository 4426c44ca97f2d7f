"""Whole models tuned by the command line and timed beside their peers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from environment import ROOT

TOOL = Path(os.environ.get("TENSMITH") or ROOT / "build" / "tensmith")


class Failed(Exception):
    """A program that gave no figures."""


def ask(line: list[Any], seconds: float = 3600) -> str:
    """Standard output of a program."""
    try:
        done = subprocess.run([str(word) for word in line], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no answer within {seconds:.0f} s") from error
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def microseconds(text: str) -> float:
    value, unit = text.split()
    return float(value) * (1000 if unit == "ms" else 1)


def dims_of(path: Path) -> dict[str, int]:
    """Sizes of a model's open dims, as the first of its data sets has them."""
    import numpy as np
    from open_dims import open_dims

    sets = json.loads((path.parent / "sets.json").read_text())["sets"]
    files = {entry["name"]: path.parent / entry["file"] for entry in (sets[0]["inputs"] if sets else [])}
    return open_dims(path, {name: np.load(file, mmap_mode="r").shape for name, file in files.items()})


def inputs_of(path: Path) -> list[str]:
    sets = json.loads((path.parent / "sets.json").read_text())["sets"]
    entries = sets[0]["inputs"] if sets else []
    return [word for e in entries for word in ("--input", f"{e['name']}=@{path.parent / e['file']}")]


def against_peers(path: Path, threads: int, records: Path) -> dict[str, float]:
    """The tuned model, ONNX Runtime and OpenVINO in turns: medians in ms."""
    from contest import Contestant, ContestError, race

    common = ["--threads", str(threads), *inputs_of(path)]
    lines = {"tensmith": [str(TOOL), "bench", str(path), "--serve", "--records", str(records), *common]}
    for peer in ("onnxruntime", "openvino"):
        lines[peer] = [sys.executable, str(ROOT / "apps" / "bench" / f"peer_{peer}.py"), str(path), *common]
    contestants = []
    try:
        for name, line in lines.items():
            contestants.append(Contestant(name, line, records.with_suffix(f".{name}.log")))
        return {name: score.median_ms for name, score in race(contestants, 30).scores.items()}
    except ContestError as error:
        raise Failed(str(error)) from error
    finally:
        for contestant in contestants:
            contestant.close()


def tuned_model(path: Path, threads: int, seconds: int, records: Path) -> dict[str, Any]:
    """What `tune` says of a model in the end, where default and tuned are timed in turns; then the peers."""
    records.unlink(missing_ok=True)
    line = [TOOL, "tune", path, "-o", records, "--timeout", f"{seconds}s", "--threads", threads]
    line += [word for name, size in dims_of(path).items() for word in ("--dim", f"{name}={size}")]
    text = ask([*line, "--progress", "none"], seconds + 600)
    ratio = re.search(r"default's time / tuned: ([\d.]+) .*quartiles ([\d.]+), ([\d.]+)", text)
    medians = re.search(r"tuned min .*?, median ([\d.]+ [mu]s)", text)
    sums = re.search(r"sum of kernels: default (.*?), tuned (.*?), gain ([\d.]+); (\d+) trials", text)
    if not (ratio and medians and sums):
        raise Failed(f"no figures in: {text[-300:]}")
    return {
        "gain": float(ratio[1]),
        "quartiles": [float(ratio[2]), float(ratio[3])],
        "kernels_gain": float(sums[3]),
        "trials": int(sums[4]),
        "sum_to_end_to_end": microseconds(sums[2]) / microseconds(medians[1]),
        "peers_ms": against_peers(path, threads, records),
    }
