"""Several programs run one model in turns, each in a process of its own, all with the same few lines of protocol.

The protocol of `tensmith bench MODEL|OUT.so --serve --threads N --input NAME=@FILE.npy ...`, which peer.py speaks too:

    on start   {"ready": true, "tool", "version", "load_ms", "first_ms"}  load: from the file to something that can run
               (compiling, for a model); first: the first run. Symbolic dims take the sizes of the arrays.
    "run N"    one untimed run, then N timed ones: {"times_ms": [N numbers]}
    "quit"     or the end of the input ends the process with exit code 0

Answers are single lines of JSON on stdout, flushed. Whatever else has to be said goes to stderr.
"""

import json
import select
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import quiet

TURN_MS = 30.0  # about what one turn takes
MOST_RUNS = 50
# Lets the spinning threads of the last one go to sleep. Measured with ONNX Runtime in two seats, 2 CPUs and nothing else
# running: after 0.01 s the seat behind the other had a spread of 30 to 70 % and up to 1.7 times the median, after 0.05
# and 0.1 s both had 3 to 7 % and medians within 2 %.
PAUSE_S = 0.1


class ContestError(Exception):
    """A program that does not start or does not answer."""


class Contestant:
    """One running program."""

    def __init__(self, name: str, command: list[str], log: Path, patience_s: float = 600.0) -> None:
        self.name, self.log, self.patience_s = name, log, patience_s
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"), text=True)
        try:
            self.ready = self._answer("ready")
        except ContestError:
            self.close()
            raise

    def run(self, count: int) -> list[float]:
        """Times of `count` runs in ms."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"run {count}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        return [float(value) for value in self._answer("times_ms")["times_ms"]]

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def _answer(self, key: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience_s)
        line = self.process.stdout.readline() if ready else ""
        content: dict[str, Any]
        try:
            content = json.loads(line)
        except json.JSONDecodeError:
            content = {"error": self._said() or f"no answer: {line!r}"}
        if key not in content:
            raise ContestError(f"{self.name}: {content.get('error', line)}")
        return content

    def _said(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


@dataclass
class Score:
    """What one program needed for one model; all times in ms."""

    version: str
    load_ms: float
    first_ms: float
    rounds: list[list[float]] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return sorted(time_ms for turn in self.rounds for time_ms in turn)

    @property
    def min_ms(self) -> float:
        return self.times[0]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times)

    @property
    def p90_ms(self) -> float:
        return self.times[int(0.9 * (len(self.times) - 1))]

    @property
    def spread(self) -> float:
        """The middle half of the rounds' medians, relative to their median."""
        medians = [statistics.median(turn) for turn in self.rounds]
        if len(medians) < 2:
            return 0.0
        low, middle, high = statistics.quantiles(medians, n=4)
        return (high - low) / middle

    def to_json(self) -> dict[str, Any]:
        figures = ("version", "load_ms", "first_ms", "min_ms", "median_ms", "p90_ms", "spread")
        return {name: getattr(self, name) for name in figures} | {"runs": len(self.times), "rounds": len(self.rounds)}


@dataclass
class Race:
    """What came out of a race: scores of those who finished, words of those who failed on the way."""

    scores: dict[str, Score]
    failures: list[str]
    seen: quiet.Disturbance


def race(contestants: list[Contestant], rounds: int) -> Race:
    """Takes turns for `rounds` rounds, another one first each time. Who fails drops out; the others go on."""
    scores: dict[str, Score] = {}
    runs: dict[str, int] = {}
    failures: list[str] = []
    running: list[Contestant] = []

    def drop(contestant: Contestant, error: ContestError) -> None:
        failures.append(str(error))
        scores.pop(contestant.name, None)
        if contestant in running:
            running.remove(contestant)

    for contestant in contestants:
        ready = contestant.ready
        try:
            runs[contestant.name] = max(1, min(MOST_RUNS, round(TURN_MS / max(min(contestant.run(3)), 1e-3))))
        except ContestError as error:
            drop(contestant, error)
            continue
        scores[contestant.name] = Score(ready["version"], ready["load_ms"], ready["first_ms"])
        running.append(contestant)
    pids = [contestant.process.pid for contestant in contestants]
    start = quiet.read_clock(pids)
    for number in range(rounds):
        shift = number % max(len(running), 1)
        for contestant in running[shift:] + running[:shift]:
            time.sleep(PAUSE_S)
            try:
                scores[contestant.name].rounds.append(contestant.run(runs[contestant.name]))
            except ContestError as error:
                drop(contestant, error)
    return Race(scores, failures, quiet.disturbance(start, quiet.read_clock(pids)))
