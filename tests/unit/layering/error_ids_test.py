#!/usr/bin/env python3
"""Every id that the schedule layer gives is explained by `tensmith explain`; the table is in order, each id once."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GIVEN = re.compile(r'(?:Failure\s*\{|ScheduleError\s*\(|return\s+fail\w*\()\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"')


def main() -> int:
    table = (ROOT / "apps/cli/explanations.cpp").read_text()
    explained = re.findall(r'^    \{"([a-z0-9-]+)",', table, re.M)
    faults = [f"{a} stands before {b}" for a, b in zip(explained, explained[1:]) if a >= b]
    found = 0
    for source in sorted((ROOT / "schedule").rglob("*.cpp")):
        for name in GIVEN.findall(source.read_text()):
            found += 1
            if name not in explained:
                faults.append(f"{source.relative_to(ROOT)}: {name} is not explained in apps/cli/explanations.cpp")
    if found < 50:
        faults.append(f"expected 50 ids or more in schedule/, found {found}: the pattern does not match the code any more")
    print("\n".join(faults) or f"{found} places of the schedule layer give ids that are explained")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
