#!/usr/bin/env python3
"""Checks the batch runner and the race of the benchmarks against stand-in programs that answer, crash, hang and lie."""

import sys
import tempfile
from pathlib import Path

from batch import Answer, BatchError, Entry, Runner
from scoreboard import finish

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "bench"))
from contest import Contestant, ContestError, Race, race  # noqa: E402

RUNNER = """
import json, sys
left = int(sys.argv[1])
print(json.dumps({"ready": True, "tool": "x", "version": "1", "load_ms": 1, "first_ms": 1}), flush=True)
for line in sys.stdin:
    left -= 1
    if left < 0:
        sys.exit("fell over")
    print(json.dumps({"times_ms": [30.0] * int(line.split()[1])}), flush=True)
"""
STAND_IN = """#!{python}
import json, os, sys, time
_, verb, batch, listing, flag, results = sys.argv[:6]
assert (verb, batch, flag) == ("verify", "--batch", "--json")
with open(listing) as file, open(results, "w") as out:
    for entry in json.load(file)["entries"]:
        kind = entry["model"]
        if kind == "usage":
            sys.exit(2)
        if kind == "abort":
            os.abort()
        if kind == "hang":
            time.sleep(60)
        if kind == "leave":
            sys.exit(0)
        out.write(json.dumps({{"id": entry["id"], "status": "pass", "reason": "", "text": ""}}) + "\\n")
        out.flush()
        if kind == "late":
            sys.exit(1)
"""


def run(folder: Path, kinds: list[str], chunk: int = 100) -> list[str]:
    """The statuses for entries of these kinds."""
    program = folder / "stand-in"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    entries = [Entry(f"{i} {kind}", kind, (), None, 0.0, 0.0) for i, kind in enumerate(kinds)]
    runner = Runner(program, folder / "work", jobs=2, chunk=chunk, patience_s=8.0)
    answers: dict[str, Answer] = runner.run(entries)
    return [answers[entry.id].status for entry in entries]


def refuses(folder: Path) -> bool:
    try:
        run(folder, ["usage"])
    except BatchError:
        return True
    return False


def raced(folder: Path, turns: dict[str, int]) -> Race:
    """Three rounds of contestants that fall over after so many answers."""
    contestants = [Contestant(name, [sys.executable, "-c", RUNNER, str(left)], folder / f"{name}.log") for name, left in turns.items()]
    try:
        return race(contestants, 3)
    finally:
        for contestant in contestants:
            contestant.close()


def does_not_start(folder: Path) -> bool:
    try:
        Contestant("none", [sys.executable, "-c", "import sys; sys.exit('no such peer')"], folder / "none.log")
    except ContestError as error:
        return "no such peer" in str(error)
    return False


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checks = {
            "all answered": run(folder, ["ok"] * 5, chunk=2) == ["pass"] * 5,
            "a crash loses one case": run(folder, ["ok", "abort", "ok", "abort"]) == ["pass", "crash", "pass", "crash"],
            "a hang loses one case": run(folder, ["ok", "hang", "ok"]) == ["pass", "hang", "pass"],
            "leaving early is a crash": run(folder, ["leave", "ok"]) == ["crash", "pass"],
            "falling over at the end is a crash": run(folder, ["ok", "late"]) == ["pass", "crash"],
            "a program without batch mode is an error": refuses(folder),
            "a contestant that does not start says why": does_not_start(folder),
        }
        result = raced(folder, {"steady": 99, "weak": 2, "dead": 0})
        checks["who falls over drops out of the race, the others finish it"] = (
            list(result.scores) == ["steady"]
            and len(result.scores["steady"].rounds) == 3
            and [text.split(":")[0] for text in sorted(result.failures)] == ["dead", "weak"]
            and all("fell over" in text for text in result.failures)
        )
    for what, holds in checks.items():
        if not holds:
            print(f"FAILED {what}")
    return finish(sum(checks.values()), sum(not holds for holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
