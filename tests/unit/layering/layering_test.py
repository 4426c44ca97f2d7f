#!/usr/bin/env python3
"""Reads every #include of the tree: fails on an edge that the layering forbids, on a cycle between files, and on
library headers outside their folder; prints the matrix of edges."""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# What each folder may include beside itself (the table of the README).
ALLOWED = {
    "runtime/base": set(),
    "runtime": {"runtime/base"},
    "tensor": {"runtime/base"},
    "schedule": {"tensor", "runtime/base"},
    "codegen": {"tensor", "runtime", "runtime/base"},
    "graph": {"tensor", "runtime/base"},
    "autotune": {"autotune/measure", "schedule", "tensor", "runtime/base"},
    # Building and running candidates needs the code generator and the runtime.
    "autotune/measure": {"autotune", "codegen", "runtime", "schedule", "tensor", "runtime/base"},
    "apps": {"runtime/base", "runtime", "tensor", "schedule", "codegen", "graph", "autotune", "autotune/measure"},
    "tests": {"runtime/base", "runtime", "tensor", "schedule", "codegen", "graph", "autotune", "autotune/measure", "apps"},
}
# Headers of libraries and the only folders that may see them.
LIBRARIES = {
    r"llvm/|lld/": "codegen/",
    r"onnx\.pb\.h|google/protobuf": "graph/import/",
    r"xgboost": "autotune/",
    r"cuda": "codegen/cuda",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def folder_of(path: str) -> str:
    own = [folder for folder in ALLOWED if "/" in folder and path.startswith(folder + "/")]
    return own[0] if own else path.split("/")[0]


def find_cycle(edges: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()
    for start in sorted(edges):
        stack, trail = [(start, iter(sorted(edges[start])))], [start]
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(node)
                stack.pop()
                trail.pop()
            elif following in trail:
                return trail[trail.index(following) :] + [following]
            elif following not in done and following in edges:
                stack.append((following, iter(sorted(edges[following]))))
                trail.append(following)
    return []


def main() -> int:
    wrong: list[str] = []
    matrix: dict[tuple[str, str], int] = defaultdict(int)
    edges: dict[str, set[str]] = defaultdict(set)
    files = [
        p
        for top in {f.split("/")[0] for f in ALLOWED}
        for p in (ROOT / top).rglob("*")
        if p.suffix in {".h", ".cpp", ".c", ".def"}
    ]
    for path in sorted(files):
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            own, system = match.groups()
            for pattern, home in LIBRARIES.items():
                target = own or system
                if re.match(pattern, target) and not name.startswith((home, "tests/")):
                    wrong.append(f"{name}:{number}: {target} belongs to {home} alone")
            if own is None or not (ROOT / own).exists():
                continue
            here, there = folder_of(name), folder_of(own)
            matrix[here, there] += 1
            if not own.endswith(".def"):
                edges[name].add(own)
            if here != there and there not in ALLOWED[here]:
                wrong.append(f"{name}:{number}: {here}/ may not include {own}")
    cycle = find_cycle(edges)
    if cycle:
        wrong.append("cycle: " + " -> ".join(cycle))
    print("includes from (row) to (column)")
    print(" " * 17 + "".join(f"{f[:12]:>13}" for f in ALLOWED))
    for row in ALLOWED:
        print(f"{row:17}" + "".join(f"{matrix[row, column] or '.':>13}" for column in ALLOWED))
    for text in wrong:
        print(text)
    return 1 if wrong else 0


sys.exit(main())
