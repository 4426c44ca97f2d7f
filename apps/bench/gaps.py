"""Where a model's time goes: per kernel, beside what the machine allows (`tensmith profile --bound`).

The fraction of peak counts the operations that kernels execute: of a Winograd convolution those of its transformed
sums, so nothing that it saved. `direct` is the same model with every convolution as its direct sum.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

LARGEST = 3


class GapFailure(Exception):
    """A profile that fails."""


def profile(program: Path, model: Path, inputs: dict[str, Path], threads: int, rounds: int, flags: list[str]) -> dict[str, Any]:
    line = [str(program), "profile", str(model), "--bound", "--json", "--threads", str(threads), "--rounds", str(rounds)]
    for name, file in inputs.items():
        line += ["--input", f"{name}=@{file}"]
    done = subprocess.run([*line, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        raise GapFailure(f"profile: {done.stderr.strip()[:300]}")
    bounds: dict[str, Any] = json.loads(done.stdout)["bounds"]
    return bounds


def measure(program: Path, model: Path, inputs: dict[str, Path], threads: int, rounds: int) -> dict[str, Any]:
    """The report of a model as it is, and the fraction of peak without Winograd."""
    report = profile(program, model, inputs, threads, rounds, [])
    direct = profile(program, model, inputs, threads, rounds, ["--winograd=off"])
    report["direct"] = {key: direct[key] for key in ("fraction_of_peak", "run_us", "gflop", "peak_gflops")}
    # What the model asks for, however it is computed: the direct sums' operations in the time of the run as it is.
    report["direct_gflop_fraction"] = direct["gflop"] * 1e9 / (report["run_us"] * 1e-6) / (report["peak_gflops"] * 1e9)
    return report


def print_gaps(rows: list[dict[str, Any]], width: int) -> None:
    print("\nFraction of the FMA peak (yardstick in the same process, between the runs): operations executed; with every")
    print("convolution direct (--winograd=off); the direct sums' operations in the time of the default run")
    print(f"{'':{width}} {'executed':>9} {'direct':>9} {'as asked':>9} {'outside':>9}")
    for row in rows:
        if "gaps" in row:
            found = row["gaps"]
            outside = max(1 - found["kernels_us"] / found["run_us"], 0.0)
            cells = [found["fraction_of_peak"], found["direct"]["fraction_of_peak"], found["direct_gflop_fraction"]]
            print(f"{row['model']:{width}} {' '.join(f'{cell:9.3f}' for cell in cells)} {outside:9.1%}")
    for row in rows:
        if "gaps" not in row:
            continue
        run = row["gaps"]["kernels_us"]
        print(f"\n{row['model']}: {run / 1e3:.3f} ms; kernel, calls, ms, share, of bound, gap ms (* bound by bytes)")
        for kernel in sorted(row["gaps"]["kernels"], key=lambda kernel: -kernel["us"])[:12]:
            mark = "*" if kernel["bound"] == "bytes" else " "
            print(
                f"  {kernel['kernel']:44.44} {kernel['calls']:4d} {kernel['us'] / 1e3:9.3f} {kernel['us'] / run:6.1%} "
                f"{kernel['of_bound']:6.3f}{mark} {kernel['gap_us'] / 1e3:9.3f}"
            )
        largest = row["gaps"]["kernels"][:LARGEST]
        named = [f"{kernel['kernel']} ({kernel['first_node']}) {kernel['gap_us'] / run:.1%}" for kernel in largest]
        print(f"  largest gaps: {'; '.join(named)}")
