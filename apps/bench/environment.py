"""The Python environment of the bench scripts: build/venv (TENSMITH_VENV), filled by apps/setup/install on first use."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(os.environ.get("TENSMITH_VENV") or ROOT / "build" / "venv")


def help_first(doc: str | None) -> None:
    """Prints a script's help and ends, before anything is installed for it."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((doc or "").strip())
        sys.exit(0)


def need(part: str, what: str, modules: tuple[str, ...], files: tuple[Path, ...] = ()) -> None:
    """Goes on in the environment with the modules and files; installs `part` of apps/setup/install where one is missing
    and starts the script anew in the environment's Python. `what`: the missing thing in words."""
    if all(importlib.util.find_spec(module) for module in modules) and all(file.exists() for file in files):
        return
    if os.environ.get("TENSMITH_BENCH_AGAIN"):
        sys.exit(f"bench: {what} not installed and could not be: apps/setup/install {part}")
    subprocess.run([ROOT / "apps" / "setup" / "install", part], check=True)
    os.environ["TENSMITH_BENCH_AGAIN"] = "1"
    python = str(VENV / "bin" / "python")
    os.execv(python, [python, *sys.argv])
