#!/usr/bin/env python3
"""Runs the ONNX 1.22 backend test suite (node, simple, pytorch-*) through the built program.

    run.py [--filter REGEX] [--core] [--update] [--gains-fail] [-- PROGRAM FLAGS]

The cases come with the pinned `onnx` package; their data are converted once into build/conformance. All cases run in a
few processes of `tensmith verify --batch`; that mode and its files are described in tests/harness/batch.py.

The suite's own rule: same number of outputs, same shapes and dtypes, |got - want| <= 1e-7 + 1e-3 * |want|.

passing.txt lists the cases that pass. A listed case that no longer does is a failure; a case that newly passes is
reported (run with --update to rewrite the list). Every other case must be refused with a named reason: a wrong result,
an internal error, a crash or a hang is a failure, but for those in waivers.txt, whose data are known to be doubtful.
The last line is "N passed, N failed"; refused cases count as neither.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import cases  # noqa: E402
from batch import ROOT, Answer, BatchError, Entry, Runner, default_program  # noqa: E402
from scoreboard import finish, print_reasons, progress_printer  # noqa: E402

PASSING = HERE / "passing.txt"
WAIVERS = HERE / "waivers.txt"
RTOL, ATOL = 1e-3, 1e-7
CORE_COUNT = 1432


def read_list(path: Path) -> dict[str, str]:
    """The first word of each line with the rest of it; `#` opens a comment."""
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = (line.partition(" ") for line in lines if line.strip() and not line.startswith("#"))
    return {word: rest.strip() for word, _, rest in pairs}


def entry_of(case: cases.Case) -> Entry:
    outputs = None if case.outputs is None else case.tensors("outputs")
    return Entry(case.id, case.model, case.tensors("inputs"), outputs, RTOL, ATOL)


def is_refused(answer: Answer) -> bool:
    return answer.status == "unsupported" and answer.reason != ""


def print_groups(selected: list[cases.Case], answers: dict[str, Answer]) -> None:
    totals = Counter(case.group for case in selected)
    passing = Counter(case.group for case in selected if answers[case.id].status == "pass")
    for group, total in totals.most_common():
        print(f"  {passing[group]:5} of {total:5}  {group}")


def update(passing: set[str], selected: set[str]) -> None:
    """Rewrites the list; cases outside the selection keep their state."""
    kept = set(read_list(PASSING)) - selected
    head = "# Cases of the ONNX 1.22 backend suite that pass; written by run.py --update.\n"
    PASSING.write_text(head + "".join(f"{name}\n" for name in sorted(kept | passing)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only cases whose id this regular expression finds")
    parser.add_argument("--core", action="store_true", help="only the core set")
    parser.add_argument("--update", action="store_true", help="rewrite passing.txt")
    parser.add_argument("--gains-fail", action="store_true", help="a case that newly passes is a failure too")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("flags", nargs="*", help="flags for the program, after --")
    arguments = parser.parse_args()

    work = ROOT / "build" / "conformance"
    every = cases.load(work / "cache")
    core = sum(case.group == "core" for case in every)
    print(f"{len(every)} data sets, {core} in the core set (expected {CORE_COUNT})", flush=True)
    if core != CORE_COUNT:
        return finish(0, 1)
    selected = [case for case in every if re.search(arguments.filter, case.id) and (case.group == "core" or not arguments.core)]

    runner = Runner(default_program(), work / "run", ("--threads", "1", *arguments.flags), jobs=arguments.jobs)
    try:
        answers = runner.run([entry_of(case) for case in selected], progress_printer())
    except BatchError as error:
        print(f"conformance: {error}")
        return finish(0, 1)

    expected, waived = read_list(PASSING), read_list(WAIVERS)
    passing = {name for name, answer in answers.items() if answer.status == "pass"}
    lost = [answer for name, answer in answers.items() if name in expected and name not in passing]
    wrong = [
        answer
        for name, answer in answers.items()
        if name not in passing and name not in expected and not is_refused(answer) and name not in waived
    ]
    gained = sorted(passing - set(expected))
    stale = sorted(set(expected) - {case.id for case in every})

    print("why the others do not pass:")
    print_reasons(answer for answer in answers.values() if answer.status != "pass")
    print("passing by group:")
    print_groups(selected, answers)
    for answer in lost:
        print(f"LOST   {answer.id}: {answer.status} {answer.reason}: {answer.text}")
    for answer in wrong:
        print(f"WRONG  {answer.id}: {answer.status} {answer.reason}: {answer.text}")
    for name in stale:
        print(f"STALE  {name}: listed in passing.txt, no such case")
    if gained:
        print(f"{len(gained)} newly passing, run with --update: {' '.join(gained[:20])}{' ...' if len(gained) > 20 else ''}")
    if arguments.update:
        update(passing, {case.id for case in selected} | set(stale))
        return finish(len(passing), len(wrong), sum(map(is_refused, answers.values())))
    failed = len(lost) + len(wrong) + len(stale) + (len(gained) if arguments.gains_fail else 0)
    return finish(len(passing), failed, sum(map(is_refused, answers.values())))


if __name__ == "__main__":
    sys.exit(main())
