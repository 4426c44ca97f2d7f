#!/usr/bin/env python3
"""What memory ONNX Runtime takes: {"base", "compile", "run"} in MiB, peaks of this process (see memory.py)."""

import json
from pathlib import Path

from peer_onnxruntime import load


def peak_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now


def main() -> None:
    forget_peak()
    base = peak_mib()
    run = load()
    created = peak_mib()
    forget_peak()
    for _ in range(2):
        run()
    print(json.dumps({"base": base, "compile": created, "run": peak_mib()}))


main()
