#!/usr/bin/env python3
"""What the switches of --help-debug and the JSON outputs promise, seen from outside.

The last line is "N passed, N failed".
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
TENSMITH = os.environ.get("TENSMITH", str(ROOT / "build/tensmith"))
HEADER = ("schema", "tool", "version", "target", "cpu_model", "threads", "seed", "model_digest")


def make_model(path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="mm"),
        helper.make_node("Relu", ["a"], ["b"], name="r"),
        helper.make_node("Softmax", ["b"], ["y"], name="sm"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 6), ("y", 8))]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [helper.make_tensor("w", TensorProto.FLOAT, [6, 8], weight.tobytes(), raw=True)]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def make_convolution(path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["y"], name="pool", kernel_shape=[1, 1]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 32, 20, 20]) for name in ("x", "y")]
    graph = helper.make_graph(
        nodes,
        "g",
        ends[:1],
        ends[1:],
        [helper.make_tensor("w", TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def make_inexact(path: Path) -> None:
    """Sums and transcendental functions: float32 differs from the interpreter's float64 in some last digit."""
    weight = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="mm"),
        helper.make_node("Softmax", ["a"], ["s"], name="sm"),
        helper.make_node("Tanh", ["a"], ["t"], name="th"),
        helper.make_node("Add", ["s", "t"], ["y"], name="ad"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, size]) for name, size in (("x", 6), ("y", 8))]
    initializers = [helper.make_tensor("w", TensorProto.FLOAT, [6, 8], weight.tobytes(), raw=True)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def make_data(folder: Path, shift: float) -> None:
    """A data set of the model that make_inexact writes, one expected element moved by `shift`."""
    folder.mkdir()
    x = np.random.default_rng(1).standard_normal((64, 6)).astype(np.float32)
    a = x.astype(np.float64) @ np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32).astype(np.float64)
    e = np.exp(a - a.max(1, keepdims=True))
    y = (e / e.sum(1, keepdims=True) + np.tanh(a)).astype(np.float32)
    y[63, 7] += np.float32(shift)
    np.save(folder / "input_0.npy", x)
    np.save(folder / "output_0.npy", y)


class Shell:
    """Runs the program in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TENSMITH, *words],
            cwd=self.folder,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *words: str) -> dict[str, object]:
        content: dict[str, object] = json.loads(self(*words).stdout)
        return content


def whole_header(content: dict[str, object], with_model: bool = True) -> bool:
    return (
        all(key in content for key in HEADER)
        and bool(content["target"])
        and (not with_model or len(str(content["model_digest"])) == 64)
    )


EXACT = ("--rtol", "0", "--atol", "0")


def refuses_wrong_data(run: Shell) -> bool:
    """A data set with one wrong element ends with 4 and names it, the same one without the mistake with 0."""
    wrong = run("verify", "i.onnx", "--ref", "wrong", "--json")
    output = json.loads(wrong.stdout)["outputs"][0]
    return (
        run("verify", "i.onnx", "--ref", "right").returncode == 0
        and wrong.returncode == 4
        and not output["same"]
        and abs(output["max_abs"] - 0.5) < 1e-3
        and "element 511" in output["text"]
    )


def check_finds(run: Shell) -> bool:
    """Without tolerance each kernel differs: all are named, and the exit code says so; with the usual one none does."""
    loose, strict = run("verify", "i.onnx", "--check"), run("verify", "i.onnx", *EXACT, "--check")
    kernels = [line for line in strict.stderr.splitlines() if line.startswith("kernel k")]
    return (
        loose.returncode == 0
        and "kernel k" not in loose.stderr
        and strict.returncode == 4
        and len(kernels) > 0
        and f"0 of {len(kernels)} kernel calls agree" in strict.stderr
        and "[kernel-differs]" in strict.stderr
    )


def reproducer_repeats(run: Shell) -> bool:
    """A wrong result leaves a folder whose command ends the same way; a right one leaves none."""
    wrong = run("verify", "i.onnx", *EXACT, "--repro=rep")
    folder = run.folder / "rep"
    command = (folder / "command.txt").read_text()
    again = subprocess.run(
        ["bash", "-c", command], cwd=run.folder, capture_output=True, text=True, timeout=120, check=False
    )
    right = run("verify", "i.onnx", "--repro=none")
    return (
        wrong.returncode == 4
        and "rep" in wrong.stderr
        and {"error.txt", "about.json", "kernel.graph", "input_0.npy"} <= {path.name for path in folder.iterdir()}
        and "--rtol 0" in command
        and again.returncode == 4
        and (right.returncode, (run.folder / "none").exists()) == (0, False)
    )


def kernel_repeats(run: Shell) -> bool:
    """The first wrong kernel alone, on the data in the folder, is wrong again under the same tolerance."""
    run("verify", "i.onnx", *EXACT, "--repro=kernel")
    command = shlex.split((run.folder / "kernel" / "repeat.txt").read_text())
    done = Shell(run.folder / "kernel")(*command[1:])
    return command[:3] == ["tensmith", "verify", "kernel.graph"] and done.returncode == 4


def per_node_finds(run: Shell) -> bool:
    """Each node that differs is named in the JSON; the exit code is 4 where one does and 0 where none does."""
    wrong, right = (run("verify", "i.onnx", *flags, "--per-node", "--json") for flags in (EXACT, ()))
    found, none = (json.loads(done.stdout)["per_node"] for done in (wrong, right))
    return (
        (wrong.returncode, found["compared"]) == (4, 4)
        and found["wrong"] > 0
        and found["text"].startswith("first difference: mm (MatMul)")
        and (right.returncode, none["compared"], none["wrong"]) == (0, 4, 0)
    )


def seeds_differ(run: Shell) -> bool:
    first, second, third = (
        run("run", "m.onnx", "--dim", "n=2", "--print-top", "3", f"--seed={seed}").stdout for seed in (1, 2, 1)
    )
    return first == third != second


def checks(run: Shell) -> dict[str, Callable[[], bool]]:
    model = ["m.onnx", "--dim", "n=4"]
    run("compile", *model, "-o", "libm.so", "--threads", "1", "--target", "x86-64-v3")
    return {
        "check --json has the header": lambda: whole_header(run.json("check", "m.onnx", "--json")),
        "check tells open dims and supports them": lambda: run.json("check", "m.onnx", "--json")["open_dims"] == ["n"]
        and run("check", "m.onnx").returncode == 0,
        "verify --json has the header": lambda: whole_header(run.json("verify", *model, "--json")),
        "bench --json has the header": lambda: whole_header(run.json("bench", *model, "--rounds", "2", "--json")),
        "profile --json has the header": lambda: whole_header(run.json("profile", *model, "--rounds", "2", "--json")),
        "inspect --json has the header": lambda: whole_header(run.json("inspect", *model, "--json")),
        "target --json has the header": lambda: whole_header(run.json("target", "--json"), with_model=False),
        "a library tells its own target": lambda: str(
            run.json("bench", "libm.so", "--rounds", "2", "--json")["target"]
        ).startswith("x86-64-v3"),
        "a library tells its model's digest": lambda: run.json("inspect", "libm.so", "--json")["model_digest"]
        == run.json("check", "m.onnx", "--json")["model_digest"],
        "inspect of a library has the header and its threads": lambda: whole_header(
            run.json("inspect", "libm.so", "--json")
        )
        and run.json("inspect", "libm.so", "--json")["threads"] == 1,
        "inspect shows a library's assembly": lambda: "ret" in run("inspect", "libm.so", "--asm", "softmax").stdout,
        "a library's schedule is the model's": lambda: len(
            run("inspect", "libm.so", "--schedule", "softmax").stdout.splitlines()
        )
        > 2,
        "profile counts each run once": lambda: run.json("profile", *model, "--rounds", "3", "--json")["runs"] == 3,
        "--profile holds compilation and run": lambda: run("run", *model, "--profile=p.json").returncode == 0
        and {"import", "graph passes", "codegen k0_matmul_relu", "k0_matmul_relu mm+r"}
        <= {event["name"] for event in json.loads((run.folder / "p.json").read_text())["traceEvents"]},
        "--check agrees": lambda: "2 of 2 kernel calls agree" in run("run", *model, "--check").stderr,
        "--check finds differences": lambda: check_finds(run),
        "verify --ref FOLDER finds a wrong element": lambda: refuses_wrong_data(run),
        "--repro leaves the first wrong kernel": lambda: kernel_repeats(run),
        "--repro leaves what repeats a wrong result": lambda: reproducer_repeats(run),
        "--seed changes random inputs": lambda: seeds_differ(run),
        "TENSMITH_THREADS is a default": lambda: json.loads(
            run("bench", *model, "--rounds", "2", "--json", env={"TENSMITH_THREADS": "1"}).stdout
        )["threads"]
        == 1,
        "a bad variable is refused": lambda: "TENSMITH_SEED" in run("run", *model, env={"TENSMITH_SEED": "x"}).stderr,
        "a misspelt variable is told": lambda: "TENSMITH_SEAD" in run("run", *model, env={"TENSMITH_SEAD": "1"}).stderr,
        "--stop-after ends with what stands": lambda: run(
            "compile", *model, "-o", "libnone.so", "--stop-after=vectorize"
        ).stdout.startswith("# k0")
        and not (run.folder / "libnone.so").exists(),
        "graph text is a model": lambda: (run.folder / "g.graph").write_text(
            run("run", *model, "--stop-after=dce").stdout
        )
        > 0
        and run("verify", "g.graph").returncode == 0,
        "--winograd=off keeps the direct sum": lambda: "winograd" in run("inspect", "c.onnx").stdout
        and "winograd" not in run("inspect", "c.onnx", "--winograd=off").stdout,
        "both ways of convolution agree": lambda: run("verify", "c.onnx").returncode == 0
        and run("verify", "c.onnx", "--winograd=off").returncode == 0,
        "--per-node reaches the exit code and the JSON": lambda: per_node_finds(run),
    }


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        run = Shell(Path(name))
        make_model(run.folder / "m.onnx")
        make_convolution(run.folder / "c.onnx")
        make_inexact(run.folder / "i.onnx")
        make_data(run.folder / "right", 0.0)
        make_data(run.folder / "wrong", 0.5)
        for what, holds in checks(run).items():
            try:
                wrong = "" if holds() else "does not hold"
            except (ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
                wrong = repr(error)
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print(f"FAILED {what}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
