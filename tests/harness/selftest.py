#!/usr/bin/env python3
"""Checks the batch runner and the race of the benchmarks against stand-in programs that answer, crash, hang and lie,
and the judges of tests/e2e against answers that differ.
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from batch import ROOT, Answer, BatchError, Entry, Runner, Tensor
from scoreboard import finish

sys.path[:0] = [str(ROOT / "apps" / "bench"), str(ROOT / "tests" / "e2e")]
import models  # noqa: E402
import random_models  # noqa: E402
from accuracy import errors  # noqa: E402
from contest import Contestant, ContestError, Race, race  # noqa: E402
from entries import parse, sizes_of  # noqa: E402
from resize import ResizeError, fitted, regrouped  # noqa: E402

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
    contestants = [
        Contestant(name, [sys.executable, "-c", RUNNER, str(left)], folder / f"{name}.log")
        for name, left in turns.items()
    ]
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


def verdict(sensitive: bool, second: str, waived: bool) -> str:
    """What becomes of a random case that differs from its stored answer."""
    entry = Entry("0/0", "", (), (), 0.0, 0.0)
    case = random_models.Case(entry, doubtful=False, sensitive=sensitive)
    return random_models.judge(case, Answer("0/0", "mismatch"), {"0/0": Answer("0/0", second)}, waived)


def widened(folder: Path, spread: float, float_lstm: bool = False) -> tuple[float, str]:
    """The tolerance that a peer with this spread gives to an exact output, and what is printed."""

    def answers(model: Path, inputs: object, names: object, **way: object) -> list[np.ndarray]:
        return [
            np.full(3, 2.0 - (spread if way.get("move") == 5 else 0.0) - (0.5 if not way.get("float_lstm") else 0.0))
        ]

    np.save(folder / "stored.npy", np.full(3, 1.0))
    entry = Entry("selftest[set]", "", (), (Tensor("y", str(folder / "stored.npy"), atol=0.0),), 0.0, 0.0)
    said, before = io.StringIO(), sys.modules.get("onnxruntime_here")
    sys.modules["onnxruntime_here"] = SimpleNamespace(answers=answers)  # type: ignore[assignment]
    try:
        with contextlib.redirect_stdout(said):
            judged = models.judge_here(entry, models.Waiver(float_lstm, "a reason"), folder)
    finally:
        sys.modules.pop("onnxruntime_here")
        if before is not None:
            sys.modules["onnxruntime_here"] = before
    return (judged[0].outputs or ())[0].atol or 0.0, said.getvalue() + f"{len(judged)} answers"


def refused_list(folder: Path, line: str) -> bool:
    (folder / "list.txt").write_text(f"# a comment\n\n{line}\n")
    try:
        models.read_waivers(folder / "list.txt")
    except ValueError:
        return True
    return False


def regroups() -> bool:
    """Targets of reshapes at other sizes, as exporters of attention and of classifiers write them."""
    rows = [
        ([1, 128, 384], [8, 128, 384], [1, 128, 12, 32], [8, 128, 12, 32]),
        ([1, 12, 128, 32], [8, 12, 128, 32], [12, 128, 32], [96, 128, 32]),
        ([12, 128, 32], [96, 128, 32], [1, 12, 128, 32], [8, 12, 128, 32]),
        ([1, 128, 384], [1, 16, 384], [128, 384], [16, 384]),
        ([1, 2048, 1, 1], [4, 2048, 1, 1], [1, 2048], [4, 2048]),
        ([1, 3], [1, 3], [3], [3]),
    ]
    try:
        regrouped([1, 6], [1, 4], [4])
    except ResizeError:
        return all(regrouped(old, new, target) == wanted for old, new, target, wanted in rows)
    return False


def resizes() -> bool:
    """Names of variants and their inputs."""
    entry = parse("m@b2@s3")
    if entry is None or (entry.base, entry.batch, entry.length) != ("m", 2, 3):
        return False
    array = np.arange(5).reshape(1, 5)
    sizes = sizes_of(entry, {"x": array})
    return (
        np.array_equal(fitted(array, sizes), [[0, 1, 2], [0, 1, 2]])
        and not parse("m").is_variant  # type: ignore[union-attr]
        and all(parse(bad) is None for bad in ("m@", "m@b0", "m@x3", "m@b"))
    )


def compares() -> bool:
    """Errors are told by the largest element, of the worst output; integers have none; what is not a number is worst."""
    exact = [np.array([1.0, -4.0]), np.array([0.5]), np.array([7])]
    near = errors([np.array([1.0, -4.004]), np.array([0.5005]), np.array([8])], exact)
    lost = errors([np.array([1.0, np.nan]), np.array([0.5]), np.array([7])], exact)
    return abs(near["max"] - 1e-3) < 1e-9 and near["rms"] <= near["max"] and lost["max"] == float("inf")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checks = {
            "reshapes of models at other sizes": regroups(),
            "variants of models and their inputs": resizes(),
            "errors against exact results": compares(),
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
        small, large = widened(folder, 0.001), widened(folder, 1.0)
        lstm = widened(folder, 0.0, float_lstm=True)
        checks |= {
            "a spread is added and printed": abs(small[0] - 0.001) < 1e-9 and "spread 0.00067" in small[1],
            "a spread is capped": abs(large[0] - 0.015) < 1e-9 and "(capped)" in large[1] and "a reason" in large[1],
            "answers that fall apart are told apart": "2 answers" in large[1] and "1 answers" in small[1],
            "a changed peer is printed as waived": "WAIVED" in lstm[1] and "0.25 of the scale" in lstm[1],
            "only a float-lstm model changes the peer": "WAIVED" not in small[1],
            "a model without a reason is refused": refused_list(folder, "some_model spread"),
            "an unknown kind is refused": refused_list(folder, "some_model anything a reason"),
            "a listed model is read": not refused_list(folder, "some_model spread a reason"),
            "undecided is told apart": verdict(True, "mismatch", waived=False) == "undecided",
            "undecided may be waived": verdict(True, "mismatch", waived=True) == "waived",
            "the interpreter may acquit": verdict(True, "pass", waived=False) == "passed",
            "a crash of the second run fails": verdict(True, "crash", waived=True) == "failed",
            "a steady case that differs fails": verdict(False, "pass", waived=False) == "failed",
        }
    for what, holds in checks.items():
        if not holds:
            print(f"FAILED {what}")
    return finish(sum(checks.values()), sum(not holds for holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
