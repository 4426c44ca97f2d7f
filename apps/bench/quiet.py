"""Is the machine quiet enough for a measurement? What other processes, and the host above, took meanwhile."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
BUSY_LIMIT = 0.08  # share of all CPUs that others may use before the start
OTHER_LIMIT = 0.04  # ... and during the run
STEAL_LIMIT = 0.02
SPREAD_LIMIT = 0.15  # of one program's rounds: beyond it something disturbed them, whatever it was
LOAD_LIMIT = 1.0  # load average per CPU


def cpus() -> int:
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Clock:
    """CPU seconds of the whole machine and of our own processes, at one moment."""

    wall: float
    busy: float
    steal: float
    own: float


def machine_seconds() -> tuple[float, float]:
    """(busy, stolen) CPU seconds since boot; busy does not hold the stolen ones."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = (int(word) / TICKS for word in (words + ["0"] * 8)[:8])
    return user + nice + system + irq + softirq, steal


def process_seconds(pid: int) -> float:
    """CPU seconds of one process with its threads and its ended children; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / TICKS


def read_clock(pids: list[int]) -> Clock:
    """`pids`: the processes besides this one that are ours."""
    busy, steal = machine_seconds()
    return Clock(time.monotonic(), busy, steal, sum(map(process_seconds, [os.getpid(), *pids])))


@dataclass(frozen=True)
class Disturbance:
    """Shares of all CPUs' time that did not go to us, between two clocks."""

    other: float
    steal: float

    @property
    def too_much(self) -> bool:
        return self.other > OTHER_LIMIT or self.steal > STEAL_LIMIT


def disturbance(start: Clock, end: Clock) -> Disturbance:
    total = max(end.wall - start.wall, 1e-9) * (os.cpu_count() or 1)
    other = (end.busy - start.busy) - (end.own - start.own)
    return Disturbance(max(other, 0.0) / total, max(end.steal - start.steal, 0.0) / total)


def why_not_quiet(sample_s: float = 2.0) -> str | None:
    """A reason not to start measuring, or None."""
    load = os.getloadavg()[0]
    if load > LOAD_LIMIT * cpus():
        return f"load average {load:.2f} on {cpus()} CPUs: expected at most {LOAD_LIMIT * cpus():.2f}"
    start = read_clock([])
    time.sleep(sample_s)
    seen = disturbance(start, read_clock([]))
    if seen.other > BUSY_LIMIT or seen.steal > STEAL_LIMIT:
        found = f"other processes use {seen.other:.0%} of the CPUs and {seen.steal:.0%} is stolen"
        return f"{found}: expected at most {BUSY_LIMIT:.0%} and {STEAL_LIMIT:.0%}"
    return None
