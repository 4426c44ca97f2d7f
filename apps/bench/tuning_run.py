"""A run of `tune` that faults are injected into, what it leaves behind, and the judge of both."""

import json
import os
import shlex
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from environment import ROOT

TOOL = Path(os.environ.get("TENSMITH") or ROOT / "build" / "tensmith")
MARK = "TUNING_FAULT_MARK"
# Of a candidate that was lost for reasons outside of it nothing is recorded.
ACCIDENTS = {"cancelled", "worker-lost", "bad-answer", "task-failed"}
PATIENCE_S = 120
GONE_S = 15


def marked(mark: str) -> list[int]:
    """Processes that carry the mark; those that have ended but were not waited for do not count."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found.append(int(folder.name))
        except OSError:
            continue
    return found


def stub() -> list[str]:
    """Words for a runner that makes costs up."""
    said = subprocess.run([str(TOOL), "target", "--json"], capture_output=True, text=True, check=True)
    target = json.loads(said.stdout)
    words = [str(ROOT / "apps" / "bench" / "tuning_stub_runner"), target["version"], target["target"]]
    return ["--runner", "cmd:" + shlex.join(words), "--workers", "1"]


class Run:
    """A run of `tune` whose acknowledged trials are noted while it goes."""

    def __init__(
        self,
        file: Path,
        op: str,
        trials: int,
        seed: int = 0,
        before: Callable[[], None] | None = None,
        extra: list[str] | None = None,
    ) -> None:
        self.mark = uuid.uuid4().hex
        what = [op] if op.endswith(".onnx") else ["--op", op]
        line = [TOOL, "tune", *what, "-o", file, "--trials", trials, "--threads", 1, "--seed", seed, *(extra or [])]
        self.process = subprocess.Popen(
            [str(word) for word in [*line, "--progress", "jsonl"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {MARK: self.mark},
            preexec_fn=before,
        )
        self.acknowledged: list[int] = []
        self.said: list[str] = []
        self.errors = ""
        self.threads = [threading.Thread(target=self.listen), threading.Thread(target=self.listen_errors)]
        for thread in self.threads:
            thread.start()

    def listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if not line.startswith("{") or not line.endswith("}\n"):
                self.said.append(line)
                continue
            trial = json.loads(line)
            if trial.get("error") not in ACCIDENTS:
                self.acknowledged.append(trial["trial"])

    def listen_errors(self) -> None:
        assert self.process.stderr
        self.errors = self.process.stderr.read()

    def wait_for(self, count: int) -> bool:
        """Whether so many trials were acknowledged before it ended."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            if len(self.acknowledged) >= count:
                return True
            time.sleep(0.002)
        return len(self.acknowledged) >= count

    def close(self) -> int:
        """Waits for its end; gives the exit code."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
            self.errors += f"\nit had not ended after {PATIENCE_S} s"
        for thread in self.threads:
            thread.join(GONE_S)
        return code

    def left(self) -> list[int]:
        """Processes that outlive it for more than some seconds; they are ended here."""
        end = time.monotonic() + GONE_S
        while (left := marked(self.mark)) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left


class Judge:
    """Collects what went wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.checks = 0

    def expect(self, right: bool, text: str) -> None:
        self.checks += 1
        if not right:
            self.faults.append(text)
            print(f"FAULT {text}", flush=True)


def read(file: Path) -> tuple[set[int], int, str]:
    """Numbers of the trials in the file, damaged lines, and why the tool cannot read it."""
    if not file.exists():
        return set(), 0, ""
    listed = subprocess.run([str(TOOL), "records", "ls", str(file), "--json"], capture_output=True, text=True)
    if listed.returncode != 0:
        return set(), 0, listed.stderr.strip()[-200:]
    known: dict[str, Any] = json.loads(listed.stdout)
    trials = set()
    for line in file.read_bytes().split(b"\n"):
        try:
            trials.add(json.loads(line)["record"]["trial"])
        except (ValueError, KeyError, TypeError):
            continue  # torn; the tool names it
    return trials, len(known["skipped"]), ""


def outcome(file: Path) -> tuple[dict[str, float], str]:
    """The trials of a file by their schedules, with the ratio to the default, and the winner's schedule."""
    trials, winner = {}, ""
    for line in file.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)["record"]
            schedule = json.dumps(record["schedule"]["steps"])
        except (ValueError, KeyError, TypeError):
            continue
        if record["standing"] == "winner":
            winner = schedule
        elif record["standing"] == "trial":
            trials[schedule] = record["median_us"] / record["default_us"] if record["default_us"] else 0.0
    return trials, winner
