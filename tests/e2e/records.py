#!/usr/bin/env python3
"""Records of tuning, seen from outside: a file made here as any tool may make it is listed, applied, refused, merged.

The last line is "N passed, N failed".
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
TENSMITH = os.environ.get("TENSMITH", str(ROOT / "build/tensmith"))


def run(*words: str, code: int = 0) -> str:
    """Both outputs of a command that must end with that exit code."""
    done = subprocess.run([TENSMITH, *words], capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{words[0]} ended with {done.returncode}, expected {code}: {text.strip()[-400:]}"
    return text


def make_model(path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w1", (20, 33)), ("w2", (33, 7)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Softmax", ["a"], ["b"], axis=0),  # along rows it would share a kernel with both products
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [12, 20]), ("y", [12, 7]))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def make_conv_model(path: Path) -> None:
    """A convolution that can be computed in several ways, whose result the caller does not see."""
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array(rng.standard_normal((32, 32, 3, 3)).astype(np.float32), "w")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalMaxPool", ["b"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 32, 24, 24]), ("y", [1, 32, 1, 1]))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def line_of(record: dict) -> str:
    body = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    check = hashlib.sha256(body.encode()).hexdigest()[:16]
    return '{"check":"' + check + '","record":' + body + "}\n"


def schedules(model: Path) -> list[dict]:
    """The traces of the model's default schedules."""
    text = run("inspect", str(model), "--threads", "1", "--print-schedule=json", "--stop-after=schedule")
    traces = []
    decoder = json.JSONDecoder()
    at = text.find("\n{")
    while at >= 0:
        trace, end = decoder.raw_decode(text[at + 1 :])
        if trace.get("schema") == "tensmith.schedule/1" and trace not in traces:
            traces.append(trace)
        at = text.find("\n{", at + 1 + end)
    return traces


def records(model: Path) -> list[dict]:
    target = json.loads(run("target", "--json"))
    return [
        {
            "schema": 2,
            "label": f"task {number}",
            "workload": trace["workload"],
            "input_layouts": [""] * trace["workload"].split(")")[0].count("in"),
            "output_layouts": [""],
            "threads": 1,
            "target": target["target"],
            "cpu": target["cpu_model"],
            "tool": target["version"],
            "build": target["build"],
            "fast_math": False,
            "contract_fma": True,
            "cold_bytes": 0,
            "decisions": {},
            "schedule": dict(trace, workload=""),
            "times_us": [1.5, 1.25, 1.75],
            "error": "",
            "error_text": "",
            "standing": "winner",
            "default_us": 3.0,
            "peak_gflops": 0,
            "peak_cache_gbs": 0,
            "peak_memory_gbs": 0,
            "seed": 3,
            "trial": number,
            "date": "2026-01-01T00:00:00Z",
        }
        for number, trace in enumerate(schedules(model))
    ]


class Checks:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "m.onnx"
        make_model(self.model)
        self.records = records(self.model)
        self.file = folder / "R.jsonl"
        self.file.write_text("".join(map(line_of, self.records)))

    def with_records(self, command: str, *words: str, code: int = 0, file: Path | None = None) -> str:
        return run(
            command, str(self.model), "--threads", "1", "--records", str(file or self.file), *words, code=code
        )

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def every_command_takes_them(self) -> None:
        count = len(self.records)
        assert count == 3, f"expected 3 kernels, got {count}"
        for command in (["run"], ["verify"], ["bench", "--rounds", "2"], ["compile", "-o", str(self.folder / "a.so")]):
            said = self.with_records(command[0], *command[1:], "--require-tuned")
            assert "records: 3 of 3 kernels as tuned" in said, said

    def the_same_bytes(self) -> None:
        libraries = []
        for _ in range(2):
            self.with_records("compile", "-o", str(self.folder / "same.so"))
            libraries.append((self.folder / "same.so").read_bytes())
        assert libraries[0] == libraries[1], "two compilations differ"

    def reasons(self) -> None:
        foreign = dict(self.records[0], cpu="Abacus 3000")
        old = dict(self.records[1], tool="0.0.1")
        failed = dict(self.records[2], times_us=[], error="wrong-result")
        rebuilt = dict(self.records[0], build="0123456789ab")
        file = self.write("rebuilt.jsonl", line_of(rebuilt))
        said = self.with_records("run", "--explain=tuning", file=file)
        assert "made by another build of the tool: 0123456789ab" in said and "0 of 3 kernels" in said, said
        said = self.with_records("run", "--explain=tuning", "--any-build", file=file)
        assert "1 of 3 kernels" in said and "its gain is not sure" in said, said
        said = self.with_records("run", "--explain=tuning", file=self.write("why.jsonl", "".join(map(line_of, (foreign, old, failed)))))
        for words in ("0 of 3 kernels", "another CPU: Abacus 3000", "by version 0.0.1", "only failed attempts: wrong-result"):
            assert words in said, f"'{words}' is missing: {said}"

    def illegal_ones_fall_back(self) -> None:
        wrong = json.loads(json.dumps(self.records[0]))
        wrong["schedule"]["steps"].append({"primitive": "unroll", "args": {"stage": "matmul", "loop": "nowhere"}})
        turned = json.loads(json.dumps(self.records[1]))
        turned["schedule"]["steps"].append(
            {"primitive": "transform_layout", "args": {"stage": "in0", "layout": "1,0", "output": 0}}
        )
        file = self.write("illegal.jsonl", line_of(wrong) + line_of(turned))
        said = self.with_records("verify", "--explain=tuning", file=file)
        assert said.count("by default: refused: winner of 1 record") == 2, said
        self.with_records("run", "--require-tuned", file=file, code=2)
        said = run("records", "verify", "--replay", str(file), code=4)
        assert "nowhere" in said, said

    def damaged_lines(self) -> None:
        good = line_of(self.records[0])
        flipped = good.replace("task 0", "task 1")
        later = line_of(dict(self.records[0], schema=99))
        file = self.write("bad.jsonl", good + flipped + "hello\n" + later + good[: len(good) // 2])
        said = run("records", "verify", str(file), code=4)
        for words in (":2: ", "record-flipped", ":3: ", "record-foreign", ":4: ", "record-old", ":5: ", "record-torn"):
            assert words in said, f"'{words}' is missing: {said}"
        said = self.with_records("run", file=file)
        assert said.count("note: skipped") == 4 and "records: 1 of 3" in said, said
        run("records", "verify", "--replay", str(self.file))

    def lists(self) -> None:
        slow = dict(self.records[0], times_us=[2.9])
        more = self.write("more.jsonl", line_of(slow) + line_of(self.records[1]))
        said = run("records", "ls", str(self.file), str(more))
        assert "5 records, 0 lines skipped" in said and "1.50 us" in said and "2.90 us" in said, said
        best = json.loads(run("records", "best", "--json", str(more), str(self.file)))
        assert [r["median_us"] for r in best["records"]] == [1.5, 1.5, 1.5], best
        merged, pruned = self.folder / "merged.jsonl", self.folder / "pruned.jsonl"
        run("records", "merge", str(self.file), str(more), "-o", str(merged))
        assert len(merged.read_text().splitlines()) == 4, "equal records count once"
        run("records", "prune", str(merged), "-o", str(pruned))
        assert len(pruned.read_text().splitlines()) == 3
        said = run("records", "export", str(pruned))
        assert said.count("void schedule_") == 3 and "s.split(" in said, said

    def ways_of_the_graph(self) -> None:
        model, file = self.folder / "conv.onnx", self.folder / "ways.jsonl"
        make_conv_model(model)
        tune = ["tune", str(model), "--threads", "1", "--progress", "none", "-o", str(file)]
        said = run(*tune, "--trials", "1")
        assert "graph: 3 other ways at 2 places tried" in said, said
        ways = [r for r in json.loads(run("records", "ls", "--json", str(file)))["records"] if "way" in r]
        assert {"direct", "winograd-2", "winograd-4", "channels-last"} <= {r["way"] for r in ways}, ways
        assert {r["standing"] for r in ways} == {"compared", "winner"}, ways
        # They are tried once, replay, and serve what is compiled.
        assert "other ways" not in run(*tune, "--trials", "2")
        run("records", "verify", "--replay", str(file))
        said = run("run", str(model), "--threads", "1", "--records", str(file), "--explain=tuning")
        assert "2 of 2 choices in the graph as tuned" in said and ", as tuned: winner of" in said, said
        run("verify", str(model), "--threads", "1", "--records", str(file))
        said = run(*tune[:-1], str(self.folder / "estimates.jsonl"), "--trials", "1", "--no-choices")
        assert "other ways" not in said, said
        said = run("tune", str(model), "--threads", "1", "--dry-run")
        assert "algorithm of 3x3 convolutions 32 to 32 at 1x24x24: " in said, said

    def usage(self) -> None:
        run("records", "ls", str(self.folder / "none.jsonl"), code=2)
        run("records", "merge", str(self.file), code=2)
        run("records", "frob", str(self.file), code=2)
        run("run", str(self.model), "--require-tuned", code=2)
        self.with_records("compile", "-o", str(self.folder / "lib.so"))
        run("run", str(self.folder / "lib.so"), "--records", str(self.file), code=2)


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        checks = Checks(Path(name))
        tests: list[Callable[[], None]] = [
            checks.every_command_takes_them,
            checks.the_same_bytes,
            checks.reasons,
            checks.illegal_ones_fall_back,
            checks.damaged_lines,
            checks.lists,
            checks.ways_of_the_graph,
            checks.usage,
        ]
        for test in tests:
            try:
                test()
                passed += 1
            except AssertionError as wrong:
                failed += 1
                print(f"FAILED {test.__name__}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
