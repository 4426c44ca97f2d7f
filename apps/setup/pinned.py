#!/usr/bin/env python3
"""Exits with 0 when every `name==version` line of the given file is installed in this interpreter, else with 1."""

import sys
from importlib import metadata
from pathlib import Path


def is_installed(requirement: str) -> bool:
    name, version = requirement.split("==")
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False


def main() -> int:
    lines = [line.strip() for line in Path(sys.argv[1]).read_text().splitlines()]
    return 0 if all(is_installed(line) for line in lines if line and not line.startswith("#")) else 1


if __name__ == "__main__":
    sys.exit(main())
