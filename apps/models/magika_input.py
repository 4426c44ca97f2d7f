#!/usr/bin/env python3
"""Makes the input of the `magika` model from a file, and reads its answer: which kind of file is it?

    magika_input.py make FILE OUT.npy           the bytes that the model looks at, int32 [1, 2048]
    magika_input.py answer CONFIG OUTPUT.npy    the most likely kinds; CONFIG is the model's config.min.json

The model sees the first 1,024 bytes (leading blanks stripped) and the last 1,024 (trailing blanks stripped); a shorter
file is filled up with the token 256: the beginning at its end, the end at its beginning.
"""

import argparse
import json
from pathlib import Path

import numpy as np

SIDE = 1024
BLOCK = 4096  # blanks are stripped within this many bytes of either end
PADDING = 256


def model_input(content: bytes) -> np.ndarray:
    """The model's input for a file's content."""
    head = content[:BLOCK].lstrip()[:SIDE]
    tail = content[-BLOCK:].rstrip()[-SIDE:]
    tokens = np.full((1, 2 * SIDE), PADDING, np.int32)
    tokens[0, : len(head)] = np.frombuffer(head, np.uint8)
    tokens[0, 2 * SIDE - len(tail) :] = np.frombuffer(tail, np.uint8)
    return tokens


def answers(labels: list[str], scores: np.ndarray, count: int) -> list[tuple[str, float]]:
    """The `count` most likely labels with their probabilities."""
    row = scores.reshape(-1)
    return [(labels[i], float(row[i])) for i in np.argsort(-row)[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("file", type=Path)
    make.add_argument("out", type=Path)
    answer = commands.add_parser("answer")
    answer.add_argument("config", type=Path)
    answer.add_argument("output", type=Path)
    answer.add_argument("--top", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.command == "make":
        np.save(arguments.out, model_input(arguments.file.read_bytes()))
        return
    labels = json.loads(arguments.config.read_text())["target_labels_space"]
    found = answers(labels, np.load(arguments.output), arguments.top)
    print(", ".join(f"{label} {100 * probability:.1f} %" for label, probability in found))


if __name__ == "__main__":
    main()
