#!/usr/bin/env python3
"""Every id that the code gives is explained by `tensmith explain`; the table is in order, each id once and given."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("runtime", "tensor", "schedule", "codegen", "graph", "autotune", "apps")
TABLE = ROOT / "apps/cli/explanations.cpp"
ID = r'"([a-z0-9]+(?:-[a-z0-9]+)+)"'
GIVEN = (
    re.compile(r"\b(?:Failure|\w+Error)(?:\s+\w+)?\s*[({]\s*" + ID),
    re.compile(r"\b\w*(?:fail|refuse|failure_answer|break_down)\w*\(\s*" + ID),
    re.compile(r'TS_USER_CHECK\s*\((?:[^";]|"[^"]*"(?!\s*\)))*,\s*' + ID + r"\s*\)"),
    re.compile(r"case TENSMITH_\w+: return " + ID),
)
# Places of the three forms that hold something else.
NO_IDS = {"stop-after", "print-ir", "print-graph"}
FEWEST = 350  # places: fewer mean that the forms do not match the code any more


def code_of(source: Path) -> str:
    return re.sub(r"^\s*//.*$", "", source.read_text(), flags=re.M)


def main() -> int:
    explained = re.findall(r"^    \{" + ID + ",", TABLE.read_text(), re.M)
    faults = [f"{a} stands before {b}" for a, b in zip(explained, explained[1:]) if a >= b]
    found = 0
    everything = ""
    for folder in FOLDERS:
        for source in sorted((ROOT / folder).rglob("*.cpp")) + sorted((ROOT / folder).rglob("*.h")):
            if source == TABLE:
                continue
            code = code_of(source)
            everything += code
            for name in sorted({name for form in GIVEN for name in form.findall(code)} - NO_IDS):
                found += 1
                if name not in explained:
                    faults.append(f"{source.relative_to(ROOT)}: {name} is not explained in {TABLE.relative_to(ROOT)}")
    faults += [f"{name} is explained, but nothing gives it" for name in explained if f'"{name}"' not in everything]
    if found < FEWEST:
        faults.append(f"expected ids at {FEWEST} places or more, found {found}")
    print("\n".join(faults) or f"{found} places give ids, all of them explained")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
