#!/usr/bin/env python3
"""Reads the names of all operators in graph/ops: fails where code that has to serve any operator names one. What is
special to an operator belongs into its definition (graph/op_def.h), rules between operators into graph/passes."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GENERAL = ["autotune", "codegen", "graph/partition", "runtime", "schedule", "tensor"]
FEWEST = 150  # operators: fewer mean that the form does not match the code any more
# Definitions give their names in several forms; whatever reads as one there counts.
NAME = re.compile(r'"((?:[A-Z]+[a-z]|GRU|LRN|LSTM|RNN|DFT|STFT)[A-Za-z0-9]*)"')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals_of(source: Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith(("//", "#include")):
            continue
        found += [(number, literal) for literal in LITERAL.findall(line.split(" // ")[0])]
    return found


def main() -> int:
    names = {name for source in (ROOT / "graph" / "ops").glob("*.cpp") for name in NAME.findall(source.read_text())}
    faults = []
    for folder in GENERAL:
        for source in sorted((ROOT / folder).rglob("*")):
            if source.suffix not in {".cpp", ".h", ".def"}:
                continue
            faults += [f"{source.relative_to(ROOT)}:{number}: names the operator {literal}"
                       for number, literal in literals_of(source) if literal in names]
    if len(names) < FEWEST:
        faults.append(f"expected {FEWEST} operators or more in graph/ops, found {len(names)}")
    print("\n".join(faults) or f"{len(names)} operators, none named in {', '.join(GENERAL)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
