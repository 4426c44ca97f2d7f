"""What the suites print: progress, a table of reasons, and the last line that tests/run adds up."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from batch import Answer


def progress_printer(every_s: float = 20.0) -> Callable[[int, int], None]:
    """A callback that prints how far a long run is, at most once in `every_s`."""
    last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            print(f"  {done} of {total}", flush=True)

    return show


def print_reasons(answers: Iterable[Answer]) -> None:
    """One line for each status and reason, the most frequent first, with an example."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        key = (answer.status, answer.reason or "(no reason given)")
        counts[key] += 1
        examples.setdefault(key, answer)
    for (status, reason), count in counts.most_common():
        example = examples[status, reason]
        print(f"  {count:5}  {status:<11}  {reason:<32}  {example.id}: {example.text[:120]}")


def skip(suite: str, missing: Path) -> int:
    """Ends a suite that has nothing to run; tests/run repeats the line with "skipped: " at its end."""
    print(f"{suite}: skipped: no shared models folder; set TENSMITH_SHARED ({missing} is missing)")
    return finish(0, 0)


def finish(passed: int, failed: int, refused: int = 0) -> int:
    """Prints the last line; gives the exit code."""
    if refused:
        print(f"{refused} refused with a named reason")
    print(f"{passed} passed, {failed} failed")
    sys.stdout.flush()
    return 1 if failed else 0
