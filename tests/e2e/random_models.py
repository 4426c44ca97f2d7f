#!/usr/bin/env python3
"""Runs small random models with stored right answers through the built program.

    random_models.py [--limit N] [--filter REGEX] [-- PROGRAM FLAGS]

--limit 0 runs all 825; the default is an even choice of 150. The archive shared/models/random/random_models.tar.xz is
unpacked into build/random_models once; without it nothing runs.

A clean model must agree with its stored outputs or be refused with a named reason. An element may differ by 1e-3 of
itself (half precision: 1e-2) plus 1e-5 of the output's largest element (2e-3), or by four times what two right runs of
the peers differ by on the same output: where terms cancel, as in 1 + erf(x) far below zero, rounding alone decides the
digits that are left. Where a tiny change of the input changes the result a lot (this set is "sensitive"), a difference
from the stored outputs is judged again against the graph interpreter; if that differs too the case is undecided, which
a miscompiled model is as well: it fails unless undecided.txt waives it, with its reason, at this optimisation level (a
set that it names is judged so even where its stored facts do not call it sensitive). A doubtful model (the peers
disagree about it) may answer what it likes but must not crash, hang or end in an internal error.
The last line is "N passed, N failed".
"""

import argparse
import json
import re
import shutil
import sys
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import numpy as np  # noqa: E402
from batch import ROOT, Answer, BatchError, Entry, Runner, Tensor, default_program, default_shared  # noqa: E402
from scoreboard import finish, print_reasons, progress_printer, skip  # noqa: E402

FOLDER = ROOT / "build" / "random_models"
WAIVERS = HERE / "undecided.txt"
LEVELS = ("-O0", "-O1", "-O2", "-O3")
RTOL, ATOL_SCALE = 1e-3, 1e-5
HALF_RTOL, HALF_ATOL_SCALE = 1e-2, 2e-3
NOISE = 4.0  # times the difference that two right runs show


@dataclass(frozen=True)
class Case:
    """One input set of one model."""

    entry: Entry
    doubtful: bool
    sensitive: bool


def read_waivers(path: Path) -> dict[tuple[str, str], str]:
    """The reasons of undecided.txt, by case and level."""
    waivers: dict[tuple[str, str], str] = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        case, levels, reason = (line.split(maxsplit=2) + ["", ""])[:3]
        if not reason or not set(levels.split(",")) <= {"default", *LEVELS}:
            raise ValueError(f"{path.name}: expected CASE LEVEL[,LEVEL] REASON, got '{line}'")
        waivers |= {(case, level): reason for level in levels.split(",")}
    return waivers


def level_of(flags: list[str]) -> str:
    return next((flag for flag in reversed(flags) if flag in LEVELS), "default")


def unpack(archive: Path) -> None:
    """Unpacks the archive and turns each data.npz into .npy files; done once."""
    done = FOLDER / "done"
    if done.exists():
        return
    print("unpacking the random models into build/random_models", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Debian's Python may lack it
        tar.extractall(FOLDER, **safe)
    for path in FOLDER.glob("*/data.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                np.save(path.parent / f"{key}.npy", arrays[key], allow_pickle=False)
        path.unlink()
    done.touch()


def largest_difference(facts: dict[str, Any], name: str) -> float:
    """By how much an element of one output differs between right runs of the peers; 0 where one of them overflows."""
    differences = [float((facts.get(key) or {}).get(name) or 0.0) for key in ("ref_max_abs", "opt_max_abs")]
    return max((d for d in differences if np.isfinite(d)), default=0.0)


def output_tensor(folder: Path, index: int, name: str, half: bool, facts: dict[str, Any]) -> Tensor:
    """One right output with the tolerance that its type and the measured noise allow; integers are exact."""
    path = folder / f"out{index}_{name}.npy"
    array = np.load(path, allow_pickle=False)
    if array.dtype.kind != "f":
        return Tensor(name, str(path), rtol=0.0, atol=0.0)
    values = np.abs(array.astype(np.float64))
    scale = float(np.max(values, initial=0.0, where=np.isfinite(values)))
    noise = min(float(facts.get("noise_floor_rel") or 0.0), 1.0)  # infinite where the peers give inf and a number
    rtol = max(HALF_RTOL if half else RTOL, NOISE * noise)
    atol = max(scale * (HALF_ATOL_SCALE if half else ATOL_SCALE), NOISE * largest_difference(facts, name))
    return Tensor(name, str(path), rtol=rtol, atol=atol)


def cases_of(model: dict[str, Any], doubtful: bool) -> list[Case]:
    folder = FOLDER / model["dir"]
    half = "float16" in model["dtypes"]
    cases = []
    for index in (0, 1):
        facts = model.get(f"set{index}") or {}
        files = [folder / f"in{index}_{name}.npy" for name in model["inputs"]]
        outputs = [folder / f"out{index}_{name}.npy" for name in model["outputs"]]
        if not all(path.exists() for path in files + outputs):
            continue
        right = tuple(output_tensor(folder, index, name, half, facts) for name in model["outputs"])
        given = tuple(Tensor(name, str(path)) for name, path in zip(model["inputs"], files, strict=True))
        entry = Entry(f"{model['dir']}/{index}", str(folder / "model.onnx"), given, right, RTOL, 0.0)
        cases.append(Case(entry, doubtful, bool(facts.get("sensitive"))))
    return cases


def choose(models: list[tuple[dict[str, Any], bool]], limit: int) -> list[tuple[dict[str, Any], bool]]:
    """An even choice over the sorted list."""
    if limit <= 0 or limit >= len(models):
        return models
    return [models[i * len(models) // limit] for i in range(limit)]


def judge(case: Case, answer: Answer, again: dict[str, Answer], waived: bool) -> str:
    """`passed`, `refused`, `waived`, `undecided` (a failure like the next) or `failed`."""
    if answer.status == "pass":
        return "passed"
    if answer.status == "unsupported" and answer.reason:
        return "refused"
    if answer.status == "mismatch" and case.doubtful:
        return "passed"
    if answer.status == "mismatch" and (case.sensitive or waived):
        second = again[case.entry.id].status
        return {"pass": "passed", "mismatch": "waived" if waived else "undecided"}.get(second, "failed")
    return "failed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=150, help="number of models, 0 for all")
    parser.add_argument("--filter", default="", help="only models whose folder this regular expression finds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("flags", nargs="*", help="flags for the program, after --")
    arguments = parser.parse_args()

    archive = default_shared() / "models" / "random" / "random_models.tar.xz"
    if not archive.exists():
        return skip("random_models", archive)
    unpack(archive)

    index = json.loads((FOLDER / "index.json").read_text())
    models = [(model, False) for model in index["models"]] + [(model, True) for model in index["doubtful"]]
    models = sorted((m for m in models if re.search(arguments.filter, m[0]["dir"])), key=lambda pair: pair[0]["dir"])
    cases = [case for model, doubtful in choose(models, arguments.limit) for case in cases_of(model, doubtful)]
    print(f"{len(cases)} input sets, {sum(case.doubtful for case in cases)} of them doubtful", flush=True)

    flags = ("--threads", "1", *arguments.flags)
    level, waivers = level_of(arguments.flags), read_waivers(WAIVERS)
    runner = Runner(default_program(), ROOT / "build" / "e2e", flags, jobs=arguments.jobs, chunk=50)
    try:
        answers = runner.run([case.entry for case in cases], progress_printer())
        shaky = [case for case in cases if case.sensitive or (case.entry.id, level) in waivers]
        torn = [case for case in shaky if answers[case.entry.id].status == "mismatch"]
        again = runner.run([replace(case.entry, outputs=None, atol=1e-5) for case in torn])
    except BatchError as error:
        print(f"random_models: {error}")
        return finish(0, 1)

    names = [case.entry.id for case in cases]
    verdicts = {
        name: judge(case, answers[name], again, (name, level) in waivers)
        for name, case in zip(names, cases, strict=True)
    }
    words = ("passed", "refused", "waived", "undecided", "failed")
    count = {word: sum(verdict == word for verdict in verdicts.values()) for word in words}
    print_reasons(answer for answer in answers.values() if answer.status != "pass")
    for case in cases:
        verdict, answer = verdicts[case.entry.id], answers[case.entry.id]
        if verdict in ("failed", "undecided"):
            print(f"FAILED {case.entry.id}: {answer.status} {answer.reason}: {answer.text}")
        if verdict == "undecided":
            print(f"  undecided: sensitive, and differs from the interpreter too: {again[case.entry.id].text}")
        if verdict == "waived":
            print(f"WAIVED {case.entry.id} at {level}: {waivers[case.entry.id, level]}: {answer.text}")
    if count["waived"]:
        print(f"{count['waived']} waived by {WAIVERS.name}")
    return finish(count["passed"], count["failed"] + count["undecided"], count["refused"])


if __name__ == "__main__":
    sys.exit(main())
