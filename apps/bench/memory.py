"""Peak memory of compiling and of running, ours beside ONNX Runtime's: resident pages of the whole process, in MiB.

  compile   `tensmith compile` to a library; ONNX Runtime: its process up to the session (Python, numpy and the import
            count, `base` tells them)
  run       a C program with the library, instance and two runs; ONNX Runtime: the same process again while it runs
            twice, its peak counted anew from the session on
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from host_program import build_host_program

HERE = Path(__file__).resolve().parent
MUST, AIM = {"compile": 2.0, "run": 1.2}, {"compile": 1.0, "run": 0.8}
# The kernel counts the memory of whoever starts a program as the program's, until it has more itself; so a small
# process starts it.
WATCH = """
import os, sys
pid = os.fork()
if pid == 0:
    os.dup2(2, 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


class MemoryFailure(Exception):
    """A program that fails."""


def peak_mib(command: list[str]) -> float:
    """The peak of a program's own process."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", WATCH, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise MemoryFailure(f"{Path(command[0]).name}: {done.stderr.strip()[-300:]}")
    return int(done.stdout) / 1024


def peaks(compile_command: list[str], library: Path, model: Path, inputs: dict[str, Path], threads: int) -> dict[str, float]:
    """All figures of a model; `compile_command` makes `library`."""
    found = {"compile": peak_mib(compile_command)}
    try:
        program, files = build_host_program(library, {name: np.load(file) for name, file in inputs.items()})
    except subprocess.CalledProcessError as error:
        raise MemoryFailure(f"gcc: {error.stderr.strip()[-300:]}") from error
    found["run"] = peak_mib([str(program), str(threads), *files])
    theirs = [sys.executable, str(HERE / "peer_onnxruntime_memory.py"), str(model), "--threads", str(threads)]
    for name, file in inputs.items():
        theirs += ["--input", f"{name}=@{file}"]
    done = subprocess.run(theirs, capture_output=True, text=True)
    if done.returncode != 0:
        raise MemoryFailure(f"onnxruntime: {done.stderr.strip()[-300:]}")
    found |= {f"onnxruntime_{key}": value for key, value in json.loads(done.stdout).items()}
    return found


def ratios(found: dict[str, float]) -> dict[str, float]:
    """Ours by theirs; below 1: we need less."""
    return {key: found[key] / found[f"onnxruntime_{key}"] for key in MUST}


def print_memory(rows: list[dict[str, object]], width: int) -> None:
    print("\nPeak memory in MiB, ours and ONNX Runtime's whole process; ratio = ours / theirs (must 2.0, 1.2; aim 1.0, 0.8)")
    print(f"{'':{width}} {'compile':>8} {'session':>8} {'ratio':>6} | {'run':>8} {'theirs':>8} {'ratio':>6} | their base")
    for row in rows:
        found = row.get("memory_mib")
        if not isinstance(found, dict):
            continue
        ratio = ratios(found)
        cells = [f"{found[key]:8.1f} {found[f'onnxruntime_{key}']:8.1f} {ratio[key]:6.2f}" for key in MUST]
        notes = [f"{key} over {MUST[key]}" for key in MUST if ratio[key] > MUST[key]]
        print(f"{row['model']:{width}} {' | '.join(cells)} | {found['onnxruntime_base']:8.1f}  {'; '.join(notes)}".rstrip())
