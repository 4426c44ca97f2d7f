"""Runs many models through one `tensmith verify --batch`, so that a crash or a hang costs one case only.

The batch mode of the program, `tensmith verify --batch LIST.json --json OUT.jsonl [-O..] [--threads N]`:

  LIST.json   {"schema": "tensmith-batch-1", "entries": [ENTRY...]}
  ENTRY       {"id": text, "model": path, "inputs": [TENSOR...], "outputs": [TENSOR...], "rtol": number, "atol": number}
  TENSOR      {"name": as in the model, "file": path of an .npy}; an output may carry its own "rtol" and "atol"

  * Paths are absolute. Symbolic dims take the sizes of the arrays. A graph input that is not named has its initializer.
  * Outputs are named in the graph's order and must all be there. Without "outputs" the reference is the graph
    interpreter (float64) on the same inputs.
  * Types that .npy lacks: bfloat16 as its uint16 bits, float8 as uint8 bits, 4 and 2 bit types one element a byte
    (integers sign extended to int8, or uint8; float4 as its bits in uint8). The model's declared type decides.
  * A case passes when count, shapes and dtypes are equal and |got - want| <= atol + rtol * |want| for every element
    (NaN equals NaN, infinities are equal when their signs are). Integers and bool are compared the same way.

  OUT.jsonl   one line an entry, in the order of the list, flushed before the next entry starts:
              {"id", "status": "pass"|"mismatch"|"unsupported"|"error", "reason": error id or "", "text": message,
              "ms"?}
              unsupported: the model was refused with a named reason (the error's kebab-case id); error: anything else
              that went wrong without ending the process. The exit code is 0 when every entry has its line.

A crash or a hang is what the program cannot report: then this side names the first entry without a line, and goes on
with the rest in a new process.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

SCHEMA = "tensmith-batch-1"
USAGE = 2  # exit code: the program does not know these flags
ROOT = Path(__file__).resolve().parents[2]


class BatchError(Exception):
    """The batch mode itself does not work."""


@dataclass(frozen=True)
class Tensor:
    """One array on disk; tolerances of its own for an output."""

    name: str
    file: str
    rtol: float | None = None
    atol: float | None = None

    def to_json(self) -> dict[str, Any]:
        own = {"rtol": self.rtol, "atol": self.atol}
        return {"name": self.name, "file": self.file} | {key: value for key, value in own.items() if value is not None}


@dataclass(frozen=True)
class Entry:
    """One model with one set of data. `outputs` None: compare with the graph interpreter."""

    id: str
    model: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] | None
    rtol: float
    atol: float

    def to_json(self) -> dict[str, Any]:
        content = {"id": self.id, "model": self.model, "rtol": self.rtol, "atol": self.atol}
        content["inputs"] = [tensor.to_json() for tensor in self.inputs]
        if self.outputs is not None:
            content["outputs"] = [tensor.to_json() for tensor in self.outputs]
        return content


@dataclass(frozen=True)
class Answer:
    """What became of one entry; status is the program's, or `crash` or `hang`."""

    id: str
    status: str
    reason: str = ""
    text: str = ""


@dataclass(frozen=True)
class Runner:
    """How to run: flags for the program, processes side by side, entries a process, seconds without an answer."""

    program: Path
    work: Path
    options: tuple[str, ...] = ()
    jobs: int = 2
    chunk: int = 100
    patience_s: float = 60.0

    def run(self, entries: Sequence[Entry], progress: Callable[[int, int], None] | None = None) -> dict[str, Answer]:
        """The answer for every entry, by id."""
        if not self.program.exists():
            raise BatchError(f"{self.program} is missing: build it first (apps/setup/build)")
        self.work.mkdir(parents=True, exist_ok=True)
        answers: dict[str, Answer] = {}
        lock = threading.Lock()

        def work_off(chunk: Sequence[Entry]) -> None:
            for answer in self._chunk(chunk):
                with lock:
                    answers[answer.id] = answer
                    if progress is not None:
                        progress(len(answers), len(entries))

        chunks = [entries[i : i + self.chunk] for i in range(0, len(entries), self.chunk)]
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(work_off, chunks))
        return answers

    def _chunk(self, entries: Sequence[Entry]) -> Iterator[Answer]:
        while entries:
            answers, ending = self._process(entries)
            if len(answers) == len(entries) and ending.status != "pass":
                answers[-1] = replace(ending, id=answers[-1].id)  # all answered, then it fell over
            yield from answers
            if len(answers) < len(entries):
                yield replace(ending, id=entries[len(answers)].id)
            entries = entries[len(answers) + 1 :]

    def _process(self, entries: Sequence[Entry]) -> tuple[list[Answer], Answer]:
        stem = self.work / f"{os.getpid()}-{threading.get_ident()}"
        listing, results, log = (stem.with_suffix(suffix) for suffix in (".json", ".jsonl", ".log"))
        results.unlink(missing_ok=True)
        listing.write_text(json.dumps({"schema": SCHEMA, "entries": [entry.to_json() for entry in entries]}))
        command = [str(self.program), "verify", "--batch", str(listing), "--json", str(results), *self.options]
        with log.open("w") as sink:
            quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": sink, "stderr": sink}
            child = subprocess.Popen(command, start_new_session=True, **quiet)
            hung = not self._wait(child, results)
        answers = read_answers(results, entries)
        said = log.read_text(errors="replace").strip()[-2000:]
        if child.returncode == USAGE and not answers:
            raise BatchError(f"the program refuses batch mode: {said}")
        last = said.splitlines()[-1] if said else ""
        if hung:
            return answers, Answer("", "hang", "hang", f"no answer within {self.patience_s:g} s")
        if child.returncode == 0 and len(answers) == len(entries):
            return answers, Answer("", "pass")
        return answers, Answer("", "crash", "crash", f"{ending_text(child.returncode)}: {last}")

    def _wait(self, child: subprocess.Popen[bytes], results: Path) -> bool:
        """Waits for the end; False when the process had to be killed since no further answer came."""
        size, since = -1, time.monotonic()
        while child.poll() is None:
            now = results.stat().st_size if results.exists() else 0
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > self.patience_s:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return False
            time.sleep(0.02)
        return True


def read_answers(path: Path, entries: Sequence[Entry]) -> list[Answer]:
    """The complete lines of a results file; stops where the order of the list is left."""
    answers: list[Answer] = []
    lines = path.read_text(errors="replace").split("\n")[:-1] if path.exists() else []
    for line, entry in zip(lines, entries, strict=False):
        try:
            content = json.loads(line)
        except json.JSONDecodeError:
            break
        if content.get("id") != entry.id:
            break
        answers.append(Answer(entry.id, content["status"], content.get("reason", ""), content.get("text", "")))
    return answers


def ending_text(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code} without an answer"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def default_program() -> Path:
    """The built program; TENSMITH names another one."""
    return Path(os.environ.get("TENSMITH") or ROOT / "build" / "tensmith")


def default_shared() -> Path:
    """The folder of models and data beside the repository; TENSMITH_SHARED names another one."""
    return Path(os.environ.get("TENSMITH_SHARED") or ROOT.parent / "shared")
