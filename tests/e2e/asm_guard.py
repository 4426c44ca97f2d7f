#!/usr/bin/env python3
"""Judges the machine code of every default kernel of real models for three targets, without running it.

    asm_guard.py [--model NAME ...] [--target T ...] [--facts]

Models: the architectures of ../shared/models, whose weights do not matter here and are all the same piece of random
numbers, and those trained models that apps/models/fetch.py left in build/models. Kernels of less than 0.5 million
operations and bytes are passed over: none of them is a hot path. Rules, of kernels that the default schedules made:

  plain   the default schedule failed and plain loops took its place
  call    it calls a function that is not its own (libm, memcpy)
  width   no loop with multiply-adds has the target's full vectors (product kernels)
  share   part of multiply-adds in the loop that has most, at least 0.35 (product kernels of floats)
  spill   vectors moved to and from the stack, as part of the instructions of a loop with 8 multiply-adds or more: none
  gather  gathers or scatters in a loop with multiply-adds: none
  narrow  the largest loop has no full vectors (other kernels of floats)

asm_guard.txt holds what is let pass, with limits and reasons; waivers that nothing needs any more are named. The last line is "N passed, N failed": one for each distinct kernel (of equal code and
operators) and target.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from batch import ROOT, Entry, Tensor, default_program, default_shared  # noqa: E402
from models import MODELS, entries_of  # noqa: E402
from onnx.external_data_helper import set_external_data  # noqa: E402
from scoreboard import finish, skip  # noqa: E402

TARGETS = {"x86-64-v3": 256, "znver4": 512, "sapphirerapids": 512}  # with their vector bits
WAIVERS = HERE / "asm_guard.txt"
HOT_WORK = 5e5
LEAST_SHARE = 0.35
RULES = ("plain", "call", "width", "share", "spill", "gather", "narrow")
PATIENCE_S = 900.0


@dataclass
class Waiver:
    """One line of asm_guard.txt."""

    rule: str
    target: str
    kernel: str
    limit: float
    reason: str
    used: bool = field(default=False, compare=False)

    def covers(self, finding: "Finding") -> bool:
        """Whether it lets the finding pass. `share` and `width` may not fall below the limit, others not exceed it."""
        if self.rule != finding.rule or not fnmatch.fnmatchcase(finding.target, self.target):
            return False
        if not fnmatch.fnmatchcase(f"{finding.model}/{finding.kernel}", self.kernel):
            return False
        if finding.rule in ("share", "width", "narrow"):
            return finding.value >= self.limit
        return finding.value <= self.limit


@dataclass(frozen=True)
class Finding:
    """A rule that a kernel breaks."""

    model: str
    kernel: str
    target: str
    rule: str
    value: float
    text: str


def read_waivers(path: Path) -> list[Waiver]:
    """Lines RULE TARGET MODEL/KERNEL LIMIT REASON; target, model and kernel are patterns of a shell."""
    waivers = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        rule, target, kernel, limit, reason = (line.split(maxsplit=4) + [""] * 5)[:5]
        if rule not in RULES or "/" not in kernel or not reason:
            raise ValueError(f"{path.name}: expected lines RULE TARGET MODEL/KERNEL LIMIT REASON, got '{line}'")
        waivers.append(Waiver(rule, target, kernel, float(limit), reason))
    return waivers


def findings(model: str, target: str, kernel: dict[str, Any]) -> list[Finding]:
    """What one kernel breaks."""
    found: list[Finding] = []
    bits = TARGETS[target]

    def add(rule: str, value: float, text: str) -> None:
        found.append(Finding(model, str(kernel["kernel"]), target, rule, round(value, 3), text))

    if kernel["plain"]:
        add("plain", 1, "plain loops")
    own = {function["name"] for function in kernel["functions"]}
    callees = {name for function in kernel["functions"] for name in function["callees"]} - own
    if callees:
        add("call", len(callees), "calls " + " ".join(sorted(callees)))
    loops = [loop for function in kernel["functions"] for loop in function["loops"]]
    if not loops:
        return found
    fused = [loop for loop in loops if loop["fmas"] >= 2]
    if kernel["product"]:
        is_float = kernel["product"].startswith("f")
        widest = max((loop["vector_bits"] for loop in fused), default=0)
        if is_float and widest < bits:
            add("width", widest, f"vectors of at most {widest} bits")
        share = max((loop["fmas"] / loop["instructions"] for loop in fused), default=0.0)
        if is_float and share < LEAST_SHARE:
            add("share", share, f"{share:.0%} multiply-adds at best")
    elif all(not loop["fmas"] for loop in loops) and kernel["floats"]:
        largest = max(loops, key=lambda loop: loop["instructions"])
        if largest["vector_bits"] < bits:
            add("narrow", largest["vector_bits"], f"largest loop of {largest['vector_bits']} bits")
    spills = max(
        ((loop["spills"] / loop["instructions"], loop) for loop in loops if loop["fmas"] >= 8),
        default=(0.0, {}),
        key=lambda pair: pair[0],
    )
    if spills[0] > 0:
        add("spill", spills[0], f"{spills[1]['spills']} of {spills[1]['instructions']} instructions move spilled vectors")
    gathers = max((loop["gathers"] for loop in loops if loop["fmas"]), default=0)
    if gathers:
        add("gather", gathers, f"{gathers} gathers or scatters beside multiply-adds")
    return found


def without_weights(path: Path, out: Path, numbers: Path) -> Path:
    """A skeleton whose large weights all lie in the one file of numbers."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.doc_string.startswith("normal "):
            tensor.ClearField("doc_string")
            tensor.raw_data = b""
            count = 4 * int(np.prod(tensor.dims))
            if numbers.stat().st_size < count:
                with numbers.open("ab") as file:
                    file.write(random_bytes(count - numbers.stat().st_size))
            set_external_data(tensor, numbers.name, offset=0, length=count)
            tensor.ClearField("raw_data")
    target = out / path.name
    target.write_bytes(model.SerializeToString())
    return target


def random_bytes(count: int) -> bytes:
    """That many bytes of small normal floats, the same 64 Ki numbers over and over."""
    block = np.random.default_rng(1).standard_normal(1 << 16, dtype=np.float32) * np.float32(0.03)
    return (block.tobytes() * (count // block.nbytes + 1))[:count]


def all_entries(work: Path, shared: Path, wanted: list[str]) -> list[Entry]:
    """Skeletons without weights, then the trained models that are there."""
    numbers = work / "numbers.bin"
    numbers.write_bytes(b"")
    entries = []
    skeletons = sorted((shared / "models").glob("*.onnx"))
    for path in skeletons:
        if not wanted or path.stem in wanted:
            entries.append(Entry(path.stem, str(without_weights(path, work, numbers)), (), None, 0, 0))
    names = {path.stem for path in skeletons}
    for folder in sorted(path.parent for path in MODELS.glob("*/sets.json")):
        if folder.name not in names and (not wanted or folder.name in wanted):
            for entry in entries_of(folder)[:1]:
                tensors = tuple(Tensor(tensor.name, tensor.file) for tensor in entry.inputs)
                entries.append(Entry(folder.name, entry.model, tensors, None, 0, 0))
    return entries


def facts_of(program: Path, listing: Path, target: str) -> list[dict[str, Any]]:
    """The program's lines for one target."""
    done = subprocess.run([program, listing, target], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise RuntimeError(f"{program.name} {target}: exit code {done.returncode}: {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--target", action="append", default=[], choices=list(TARGETS))
    parser.add_argument("--facts", action="store_true", help="print all findings, waived ones too")
    arguments = parser.parse_args()
    shared = default_shared()
    if not shared.exists():
        return skip("asm_guard", shared)
    waivers = read_waivers(WAIVERS)
    targets = arguments.target or list(TARGETS)
    program = default_program().with_name("tensmith_asm_guard")
    with tempfile.TemporaryDirectory(prefix="asm_guard") as folder:
        work = Path(folder)
        entries = all_entries(work, shared, arguments.model)
        listing = work / "list.json"
        listing.write_text(json.dumps({"entries": [entry.to_json() for entry in entries]}))
        answers = [facts_of(program, listing, target) for target in targets]  # each compiles on all cores already
    seen: set[str] = set()
    kernels, bad = 0, 0
    waived: Counter[str] = Counter()
    for target, lines in zip(targets, answers, strict=True):
        for line in lines:
            if "error" in line:
                print(f"  {line['model']} {target}: not compiled: {line['error'][:200]}")
                bad += not line["refused"]
            for kernel in line["kernels"]:
                kernels += 1
                key = f"{target} {kernel['code']}"
                if key in seen or max(kernel["flops"], kernel["bytes"]) < HOT_WORK:
                    continue
                seen.add(key)
                failed = False
                for finding in findings(line["model"], target, kernel):
                    # Every waiver that covers it is used: patterns overlap.
                    covering = [waiver for waiver in waivers if waiver.covers(finding)]
                    for waiver in covering:
                        waiver.used = True
                    waived[finding.rule] += bool(covering)
                    failed = failed or not covering
                    if not covering or arguments.facts:
                        word = "waived" if covering else "FAILED"
                        print(
                            f"{word} {finding.rule} {finding.target} {finding.model}/{finding.kernel} "
                            f"{finding.value:.3g}: {finding.text}"
                        )
                bad += failed
    for waiver in waivers:
        if not waiver.used and not arguments.model and not arguments.target:
            print(f"note: {WAIVERS.name}: nothing needs '{waiver.rule} {waiver.target} {waiver.kernel}' here")
    print(f"{len(entries)} models, {len(targets)} targets, {kernels} kernels, {len(seen)} distinct hot ones; waived: "
          + (", ".join(f"{count} {rule}" for rule, count in sorted(waived.items())) or "none"))
    return finish(len(seen) - min(bad, len(seen)), bad)


if __name__ == "__main__":
    sys.exit(main())
