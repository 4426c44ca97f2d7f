"""A C program around an exported library, built by gcc alone: what a user's program with it starts, runs and needs."""

import json
import subprocess
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def build_host_program(library: Path, arrays: dict[str, np.ndarray]) -> tuple[Path, list[str]]:
    """Builds startup.c for `library` (its header and manifest beside it); the program and its files of inputs.

    Raises subprocess.CalledProcessError.
    """
    stem, folder = library.stem.removeprefix("lib"), library.parent
    program = folder / stem
    defines = [f'-DHEADER="{stem}.h"', f"-DGET_API={stem}_get_api"]
    link = [f"-L{folder}", f"-l{stem}", f"-Wl,-rpath,{folder}"]
    line = ["gcc", "-O2", *defines, f"-I{folder}", str(HERE / "startup.c"), "-o", str(program), *link]
    subprocess.run(line, capture_output=True, text=True, check=True)
    files = []
    for entry in json.loads(library.with_suffix(".json").read_text())["inputs"]:
        raw = folder / f"{stem}_{len(files)}.raw"
        raw.write_bytes(np.ascontiguousarray(arrays[entry["name"]]).tobytes())
        files.append(str(raw))
    return program, files
