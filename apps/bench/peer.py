"""The serving loop of one peer: the same lines as `tensmith bench MODEL --serve`.

    on start   {"ready": true, "tool", "version", "load_ms", "first_ms"}
    "run N"    one untimed run, then N timed ones: {"times_ms": [..N numbers..]}
    "quit" or the end of the input ends the process

`load_ms` is what it takes from the model file to something that can run, `first_ms` the first run after that. The time
to start Python and to import the peer counts for neither.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Request:
    """What to serve."""

    model: Path
    threads: int
    inputs: dict[str, np.ndarray] = field(default_factory=dict)


def parse_request() -> Request:
    """The command line: MODEL --threads N --input NAME=@FILE.npy ..."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--input", action="append", default=[])
    arguments = parser.parse_args()
    pairs = (text.rpartition("=@") for text in arguments.input)
    return Request(arguments.model, arguments.threads, {name: np.load(file) for name, _, file in pairs})


def serve(tool: str, version: str, load: Callable[[], Callable[[], object]]) -> None:
    """Loads, runs once, and answers until told to stop."""
    start = time.perf_counter()
    run = load()
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    reply({"ready": True, "tool": tool, "version": version, "load_ms": (loaded - start) * 1e3, "first_ms": (first - loaded) * 1e3})
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["quit"]:
            break
        if len(words) != 2 or words[0] != "run" or not words[1].isdigit():
            reply({"error": f"expected 'run N' or 'quit', got {line.strip()!r}"})
            continue
        run()
        times = []
        for _ in range(int(words[1])):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        reply({"times_ms": times})


def reply(content: dict[str, object]) -> None:
    print(json.dumps(content), flush=True)
