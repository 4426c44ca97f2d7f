#!/usr/bin/env python3
"""Bad input of every kind: each case must give one clear message, the right exit code, and leave no output behind.

Each case states the command, the exit code and the error id in brackets that the message ends with. A crash, a wrong
code, a missing id or a left-over output file fails the case. The last line is "N passed, N failed".
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
TENSMITH = os.environ.get("TENSMITH", str(ROOT / "build/tensmith"))
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass(frozen=True)
class Case:
    name: str
    command: list[str]
    code: int
    error: str  # one of these ids, separated by |
    says: str = ""  # and this text
    absent: str = ""  # a file that must not exist afterwards
    present: str = ""  # a file that must be as it was


def value(name: str, shape: list, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list, inputs: list, outputs: list, opset: int = 17, initializers: list | None = None
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def relu() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"], name="r")], [value("x", [2, 3])], [value("y", [2, 3])])


def external(location: str, offset: str = "0", length: str = "24") -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, "offset": offset, "length": length}.items():
        weight.external_data.add(key=key, value=text)
    return model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])], initializers=[weight]
    )


def with_weight(change: Callable[[TensorProto], None]) -> onnx.ModelProto:
    weight = helper.make_tensor("w", FLOAT, [2, 3], np.zeros(24, np.uint8).tobytes(), raw=True)
    change(weight)
    return model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])], initializers=[weight]
    )


def cases(folder: Path) -> list[Case]:
    def save(name: str, proto: onnx.ModelProto | bytes) -> str:
        path = folder / name
        path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
        return str(path)

    good = save("good.onnx", relu())
    whole = relu().SerializeToString()
    node, make = helper.make_node, model
    x, y = [value("x", [2, 3])], [value("y", [2, 3])]
    np.save(folder / "wrong_shape.npy", np.zeros((3, 2), np.float32))
    np.save(folder / "wrong_dtype.npy", np.zeros((2, 3), np.int64))
    np.save(folder / "right.npy", np.zeros((2, 3), np.float32))
    (folder / "garbage.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    (folder / "text.npy").write_text("no array")
    (folder / "data.bin").write_bytes(bytes(8))
    (folder / "outside.bin").write_bytes(bytes(24))
    (folder / "inner").mkdir()
    (folder / "inner/link.bin").symlink_to(folder / "outside.bin")
    (folder / "inner/up.onnx").write_bytes(external("../outside.bin").SerializeToString())
    (folder / "inner/link.onnx").write_bytes(external("link.bin").SerializeToString())
    out = str(folder / "out.so")
    dynamic = save("dynamic.onnx", make([node("Relu", ["x"], ["y"])], [value("x", ["n", 3])], [value("y", ["n", 3])]))
    wide = [1024, 1024]
    large = save(
        "large.onnx",
        make([node("Softmax", ["x"], ["t"]), node("Softmax", ["t"], ["y"])], [value("x", wide)], [value("y", wide)]),
    )
    library = str(folder / "liblib.so")
    subprocess.run([TENSMITH, "compile", good, "-o", library], check=True, capture_output=True, timeout=60)
    gather = save(
        "gather.onnx",
        make(
            [node("Gather", ["x", "i"], ["y"], name="pick")],
            [value("x", [5, 3]), value("i", [2], INT64)],
            [value("y", [2, 3])],
        ),
    )
    np.save(folder / "outside.npy", np.array([0, 5], np.int64))
    clamped = save(
        "clamped.onnx",
        make(
            [
                node("Shape", ["x"], ["n"], end=1),
                node("Min", ["n", "most"], ["m"]),
                node("Slice", ["x", "zero", "m"], ["s"]),
                node("Add", ["s", "x"], ["y"]),
            ],
            [value("x", ["n", 3]), value("z", ["k"])],
            [value("y", ["n", 3])],
            initializers=[helper.make_tensor("most", INT64, [1], [9]), helper.make_tensor("zero", INT64, [1], [0])],
        ),
    )
    weighty = save(
        "weighty.onnx",
        make(
            [node("MatMul", ["x", "w"], ["y"])],
            [value("x", [2, 64])],
            [value("y", [2, 64])],
            initializers=[helper.make_tensor("w", FLOAT, [64, 64], np.ones(4096).tolist())],
        ),
    )
    for file in ("libgather.so", "libweighty.so"):
        source = gather if file == "libgather.so" else weighty
        command = [TENSMITH, "compile", source, "-o", str(folder / file), "--weights", "file"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    weights = bytearray((folder / "weighty.weights").read_bytes())
    weights[len(weights) // 2] ^= 1
    (folder / "weighty.weights").write_bytes(weights)
    (folder / "blocked.h").mkdir()
    check = lambda path: ["check", path]  # noqa: E731
    size = 1 << 40
    return [
        # Files that are no model.
        Case("no such file", check(str(folder / "none.onnx")), 2, "cannot-read"),
        Case("a folder", check(str(folder)), 2, "cannot-read|not-a-model"),
        Case("empty file", check(save("empty.onnx", b"")), 2, "not-a-model|truncated-model"),
        Case("text", check(save("text.onnx", b"hello, this is no model\n" * 10)), 2, "not-a-model|truncated-model"),
        Case(
            "random bytes",
            check(save("random.onnx", np.random.default_rng(1).bytes(5000))),
            2,
            "not-a-model|truncated-model",
        ),
        Case("cut off", check(save("cut.onnx", whole[: len(whole) // 2])), 2, "not-a-model|truncated-model"),
        Case("cut off by one", check(save("cut1.onnx", whole[:-1])), 2, "not-a-model|truncated-model"),
        Case(
            "no graph", check(save("nograph.onnx", onnx.ModelProto(ir_version=9))), 2, "not-a-model|bad-opset|bad-graph"
        ),
        # Versions.
        Case(
            "opset too old",
            check(save("old.onnx", make([node("Relu", ["x"], ["y"])], x, y, opset=0))),
            2,
            "bad-opset",
            "1 to 27",
        ),
        Case(
            "opset too new",
            check(save("new.onnx", make([node("Relu", ["x"], ["y"])], x, y, opset=99))),
            2,
            "bad-opset",
            "99",
        ),
        # Operators.
        Case(
            "unknown operator",
            check(save("op.onnx", make([node("Frobnicate", ["x"], ["y"], name="f1")], x, y))),
            3,
            "",
            "Frobnicate",
        ),
        Case(
            "unknown domain",
            check(save("dom.onnx", make([node("Relu", ["x"], ["y"], domain="my.own")], x, y))),
            3,
            "",
            "my.own",
        ),
        Case(
            "all unsupported at once",
            check(save("two.onnx", make([node("Foo", ["x"], ["t"]), node("Bar", ["t"], ["y"])], x, y))),
            3,
            "",
            "Bar",
        ),
        # Shapes and attributes.
        Case(
            "shapes do not fit",
            check(save("mm.onnx", make([node("MatMul", ["x", "x"], ["y"], name="mm")], x, y))),
            2,
            "shape-mismatch|matmul-shape|bad-shape",
            "mm",
        ),
        Case(
            "reshape to another size",
            check(
                save(
                    "rs.onnx",
                    make(
                        [node("Reshape", ["x", "s"], ["y"])],
                        x,
                        [value("y", [7])],
                        initializers=[helper.make_tensor("s", INT64, [1], [7])],
                    ),
                )
            ),
            2,
            "shape-mismatch|reshape-size|bad-shape",
        ),
        Case(
            "axis out of range",
            check(save("ax.onnx", make([node("Softmax", ["x"], ["y"], axis=5)], x, y))),
            2,
            "bad-axis|axis-out-of-range|bad-attribute",
        ),
        Case(
            "no permutation",
            check(save("perm.onnx", make([node("Transpose", ["x"], ["y"], perm=[0, 0])], x, y))),
            2,
            "bad-attribute|bad-perm|bad-permutation",
        ),
        Case(
            "attribute of another type",
            check(save("attr.onnx", make([node("Transpose", ["x"], ["y"], perm="ab")], x, y))),
            2,
            "bad-attribute",
        ),
        Case(
            "dtypes do not fit",
            check(save("dt.onnx", make([node("Add", ["x", "i"], ["y"])], [*x, value("i", [2, 3], INT64)], y))),
            2,
            "dtype-mismatch|unsupported-dtype|bad-dtype|type-mismatch",
        ),
        Case("too few inputs", check(save("few.onnx", make([node("Add", ["x"], ["y"])], x, y))), 2, "bad-arity"),
        # Sizes.
        Case(
            "negative dim of a weight",
            check(save("neg.onnx", with_weight(lambda w: w.dims.__setitem__(0, -2)))),
            2,
            "bad-initializer",
        ),
        Case(
            "weight size overflows",
            check(save("ovf.onnx", with_weight(lambda w: w.dims.extend([size, size])))),
            2,
            "bad-initializer",
        ),
        Case(
            "weight too short",
            check(save("short.onnx", with_weight(lambda w: w.dims.__setitem__(0, 1000)))),
            2,
            "bad-initializer",
        ),
        Case(
            "input sizes overflow",
            [
                "run",
                save(
                    "big.onnx",
                    make([node("Relu", ["x"], ["y"])], [value("x", [size, size])], [value("y", [size, size])]),
                ),
            ],
            2,
            "bad-shape|shape-overflow|arena-too-large|too-large",
        ),
        # The graph.
        Case(
            "a cycle",
            check(
                save(
                    "cyc.onnx",
                    make(
                        [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])], x, y
                    ),
                )
            ),
            2,
            "cyclic-graph",
        ),
        Case(
            "an undefined name",
            check(save("und.onnx", make([node("Relu", ["nobody"], ["y"])], x, y))),
            2,
            "unknown-input",
            "nobody",
        ),
        Case(
            "a name defined twice",
            check(save("dup.onnx", make([node("Relu", ["x"], ["y"]), node("Relu", ["x"], ["y"])], x, y))),
            2,
            "duplicate-name",
        ),
        Case(
            "an undefined output",
            check(save("uo.onnx", make([node("Relu", ["x"], ["t"])], x, y))),
            2,
            "unknown-input|unknown-output",
        ),
        # External data.
        Case("external data outside", check(str(folder / "inner/up.onnx")), 2, "external-data-outside"),
        Case(
            "external data absolute",
            check(save("abs.onnx", external(str(folder / "outside.bin")))),
            2,
            "external-data-outside",
        ),
        Case("external data by a link", check(str(folder / "inner/link.onnx")), 2, "external-data-outside"),
        Case("external data missing", check(save("miss.onnx", external("nowhere.bin"))), 2, "external-data-missing"),
        Case(
            "external data too short",
            check(save("ext.onnx", external("data.bin"))),
            2,
            "external-data-missing|external-data-short|bad-initializer|external-data-range",
        ),
        Case(
            "external data offset overflows",
            check(save("eo.onnx", external("data.bin", offset=str((1 << 63) - 1)))),
            2,
            "external-data-missing|external-data-short|bad-initializer|external-data-range",
        ),
        # Arrays.
        Case("array of the wrong shape", ["run", good, "--input", f"x=@{folder}/wrong_shape.npy"], 2, "input-shape"),
        Case("array of the wrong dtype", ["run", good, "--input", f"x=@{folder}/wrong_dtype.npy"], 2, "input-dtype"),
        Case("array of the wrong name", ["run", good, "--input", f"z=@{folder}/right.npy"], 2, "unknown-input"),
        Case("array that is missing", ["run", good, "--input", f"x=@{folder}/nofile.npy"], 2, "cannot-read"),
        Case("array that is cut off", ["run", good, "--input", f"x=@{folder}/garbage.npy"], 2, "bad-npy"),
        Case("array that is text", ["run", good, "--input", f"x=@{folder}/text.npy"], 2, "bad-npy"),
        Case("unknown fill", ["run", good, "--input", "x=sevens"], 2, "bad-fill"),
        Case("input without =", ["run", good, "--input", "x"], 2, "bad-assignment"),
        Case("dim without =", ["check", good, "--dim", "n"], 2, "bad-assignment", "--dim n: expected NAME=VALUE"),
        Case("a model behind a dim", ["check", "--dim", "n=4", good], 2, "unknown-dim"),
        Case("a model behind an input", ["run", "--input", "x=sevens", good], 2, "bad-fill"),
        # Outputs.
        Case(
            "a library to tune",
            ["tune", library, "-o", str(folder / "r.jsonl")],
            2,
            "not-a-model",
            "holds no schedules",
            absent="r.jsonl",
        ),
        Case(
            "records into a file of something else",
            ["tune", good, "-o", str(folder / "right.npy"), "--trials", "1"],
            2,
            "record-foreign",
            present="right.npy",
        ),
        Case("a page over its records", ["report", good, "-o", good], 2, "bad-usage", present="good.onnx"),
        Case("output in no folder", ["compile", good, "-o", str(folder / "no/folder/out.so")], 2, "cannot-write"),
        Case(
            "output of an unknown kind",
            ["compile", good, "-o", str(folder / "out.exe")],
            2,
            "bad-output-suffix",
            absent="out.exe",
        ),
        Case(
            "unknown output name", ["run", good, "--output", f"z=@{folder}/z.npy"], 2, "unknown-output", absent="z.npy"
        ),
        Case(
            "unsupported model leaves no file",
            ["compile", str(folder / "op.onnx"), "-o", out],
            3,
            "",
            "Frobnicate",
            absent="out.so",
        ),
        Case("a full device", ["compile", good, "-o", "/proc/out.so"], 2, "cannot-write"),
        # Flags.
        Case("unknown flag", ["check", good, "--frob"], 2, "bad-usage", "--frob"),
        Case("unknown command", ["frobnicate"], 2, "bad-usage"),
        Case("no model", ["check"], 2, "bad-usage"),
        Case(
            "unknown target",
            ["compile", good, "-o", out, "--target", "z80"],
            2,
            "bad-target",
            "x86-64-v3",
            absent="out.so",
        ),
        Case(
            "unknown feature",
            ["compile", good, "-o", out, "--target", "x86-64-v3,+warp"],
            2,
            "bad-target-feature",
            absent="out.so",
        ),
        Case("dim of zero", ["check", good, "--dim", "n=0"], 2, "bad-dim"),
        Case("dim that is not open", ["check", good, "--dim", "n=4"], 2, "unknown-dim"),
        Case("dim that is no number", ["check", good, "--dim", "n=many"], 2, "bad-dim"),
        Case("threads below zero", ["bench", good, "--threads", "-1"], 2, "bad-usage"),
        Case("unknown reference", ["verify", good, "--ref", str(folder / "nothing")], 2, "no-reference"),
        Case("unknown error id", ["explain", "no-such-id"], 2, "unknown-error-id"),
        Case(
            "a library that is none",
            ["run", save("bad.so", b"\x7fELF" + bytes(100))],
            2,
            "bad-object|not-a-module|cannot-load|wrong-architecture",
        ),
        Case("a library of text", ["run", save("text.so", b"no library")], 2, "bad-object|not-a-module|cannot-load"),
        Case("kernel that is not there", ["inspect", good, "--schedule", "nothing_like_it"], 2, "unknown-kernel"),
        # Slips of an impatient user.
        Case("no command", [], 2, "", "Usage"),
        Case("a misspelt command", ["complie", good], 2, "bad-usage", "did you mean 'compile'"),
        Case("a level that is not there", ["run", good, "-O7"], 2, "bad-usage", "-O3"),
        Case("a level apart from its flag", ["run", good, "-O", "2"], 2, "bad-usage", "-O3"),
        Case("a file without @", ["run", good, "--input", f"x={folder}/right.npy"], 2, "bad-fill", "=@"),
        Case("sizes left open", ["run", dynamic], 2, "symbolic-dims", "--dim n=SIZE"),
        Case(
            "sizes left open when exporting",
            ["compile", dynamic, "-o", out],
            2,
            "symbolic-dims",
            "--dim n=SIZE",
            absent="out.so",
        ),
        Case("a misspelt dim", ["run", dynamic, "--dim", "m=4"], 2, "unknown-dim", "one of n"),
        Case(
            "dim against array", ["run", dynamic, "--dim", "n=3", "--input", f"x=@{folder}/right.npy"], 2, "input-shape"
        ),
        Case(
            "result into no folder", ["run", good, "--output", f"y=@{folder}/none/y.npy"], 2, "cannot-write", "--output"
        ),
        Case(
            "trace into no folder",
            ["profile", good, "--trace", str(folder / "none/t.json")],
            2,
            "cannot-write",
            "--trace",
        ),
        Case(
            "figures into no folder",
            ["bench", good, "--json", str(folder / "none/b.json")],
            2,
            "cannot-write",
            "--json",
        ),
        Case("a model taken for the file of --json", ["verify", "--json", good], 2, "bad-usage", "--json=FILE"),
        Case("a model that --json would overwrite", ["bench", good, "--json", good], 2, "bad-usage", "--json=FILE"),
        Case("a negative tolerance", ["verify", good, "--rtol", "-1"], 2, "bad-usage", "from 0 on"),
        Case("an unknown peer", ["bench", good, "--compare", "tvm"], 2, "unknown-peer", "onnxruntime"),
        Case("checking a library", ["check", library], 2, "not-a-model"),
        Case("a dim for a library", ["run", library, "--dim", "n=4"], 2, "unknown-dim"),
        Case(
            "a library for another target",
            ["run", library, "--target", "x86-64-v2"],
            5,
            "missing-cpu-feature|bad-target",
            "expected one of the targets",
        ),
        Case("a library without a reference", ["verify", library], 2, "no-reference"),
        Case("a library against a peer", ["verify", library, "--ref", "onnxruntime"], 2, "no-reference"),
        Case(
            "kernel that a library has not",
            ["inspect", library, "--schedule", "relo"],
            2,
            "unknown-kernel",
            "did you mean 'relu'",
        ),
        Case("assembly that a library has not", ["inspect", library, "--asm", "sofmax"], 2, "unknown-kernel"),
        Case("kernels of a library against the interpreter", ["run", library, "--check"], 2, "check-needs-model"),
        Case("a misspelt primitive", ["explain", "splitt"], 2, "unknown-error-id", "did you mean 'split'"),
        Case("a misspelt id", ["explain", "bad-dimm"], 2, "unknown-error-id", "did you mean 'bad-dim'"),
        Case("a graph text that is none", ["run", save("bad.graph", b"graph {")], 2, "parse-error"),
        Case(
            "a list of models that is none",
            ["verify", "--batch", save("b1.json", b"[]"), "--json", str(folder / "o1")],
            2,
            "bad-batch",
        ),
        Case(
            "a list without entries",
            ["verify", "--batch", save("b2.json", b'{"schema": "tensmith-batch-1"}'), "--json", str(folder / "o2")],
            2,
            "bad-batch",
        ),
        # Data that the model does not allow, and files that changed.
        Case(
            "indices outside",
            ["run", gather, "--input", f"i=@{folder}/outside.npy"],
            2,
            "run-failed",
            "node pick (Gather, kernel k0_gather): input indices: expected indices from -5 to 4",
        ),
        Case(
            "indices outside for a library",
            ["run", str(folder / "libgather.so"), "--input", f"i=@{folder}/outside.npy"],
            2,
            "run-failed",
            "node pick",
        ),
        Case("weights that changed", ["run", str(folder / "libweighty.so")], 2, "bad-weights", "damaged"),
        # Sizes that decide what can be compiled.
        Case("check asks for sizes", check(clamped), 2, "symbolic-dims", "x: f32[n, 3], z: f32[k]; give --dim n=SIZE"),
        Case("run asks for sizes", ["run", clamped], 2, "symbolic-dims", "--dim n=SIZE --dim k=SIZE, or arrays"),
        Case("a size that does not do", ["check", clamped, "--dim", "n=10", "--dim", "k=1"], 2, "", "Add"),
        # Said twice, or misspelt.
        Case("a dim named twice", ["run", dynamic, "--dim", "n=3", "--dim", "n=4"], 2, "named-twice", "'3'"),
        Case("an input named twice", ["run", good, "--input", "x=ones", "--input", "x=zeros"], 2, "named-twice"),
        Case("an output named twice", ["run", good, *(2 * ["--output", f"y=@{folder}/y.npy"])], 2, "named-twice"),
        Case("a misspelt flag", ["run", good, "--treads", "2"], 2, "bad-usage", "did you mean '--threads'"),
        Case("a misspelt switch", ["run", good, "--verify-eech"], 2, "bad-usage", "did you mean '--verify-each'"),
        # Switches.
        Case("an unknown pass", ["run", good, "--stop-after=vectorise"], 2, "unknown-pass", "did you mean 'vectorize'"),
        Case("an unknown pass to print", ["run", good, "--print-ir=after:foo"], 2, "unknown-pass"),
        Case("an unknown kind of reason", ["run", good, "--explain=fusion,weather"], 2, "bad-switch", "layout"),
        Case("a form of schedules that is none", ["run", good, "--print-schedule=xml"], 2, "bad-switch", "loops"),
        Case("a dump that cannot be", ["run", good, "--dump=/proc/none"], 2, "cannot-write", "--dump"),
        Case("a log level that is none", ["run", good, "--log=loud"], 2, "bad-switch", "trace"),
        Case(
            "a model larger than allowed",
            ["run", large, "--memory-limit-mib=3"],
            2,
            "arena-too-large",
            "--memory-limit-mib",
        ),
        Case("a switch that is no number", ["run", good, "--seed=x"], 2, "bad-switch"),
        Case(
            "an old library survives a failure",
            ["compile", str(folder / "op.onnx"), "-o", library],
            3,
            "",
            "Frobnicate",
            present="liblib.so",
        ),
        Case(
            "an old library survives a header that is a folder",
            ["compile", good, "-o", str(folder / "libblocked.so")],
            2,
            "cannot-write",
            "folder",
            absent="libblocked.so",
        ),
    ]


def problem(case: Case, folder: Path) -> str:
    before = (folder / case.present).read_bytes() if case.present else None
    try:
        done = subprocess.run([TENSMITH, *case.command], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    text = done.stdout + done.stderr
    if done.returncode != case.code:
        return f"exit code {done.returncode}, expected {case.code}: {text.strip()[-300:]}"
    if case.error and not any(f"[{error}]" in text for error in case.error.split("|")):
        return f"expected id {case.error}: {text.strip()[-300:]}"
    if case.says not in text:
        return f"expected the words '{case.says}': {text.strip()[-300:]}"
    if case.absent and (folder / case.absent).exists():
        return f"left {case.absent} behind"
    if before is not None and (folder / case.present).read_bytes() != before:
        return f"changed {case.present}"
    if leftovers := [
        path.name for path in folder.iterdir() if path.name.startswith(".tensmith-") or ".tmp" in path.name
    ]:
        return f"left {leftovers[0]} behind"
    return ""


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases(folder):
            wrong = problem(case, folder)
            passed += not wrong
            failed += bool(wrong)
            if wrong:
                print(f"FAILED {case.name}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
