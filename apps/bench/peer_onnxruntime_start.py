#!/usr/bin/env python3
"""One start of ONNX Runtime: a session, one run with inputs and outputs bound; tells when, on the clock of startup.c."""

import json
import time

BEGIN = time.monotonic() * 1e3

from peer_onnxruntime import load  # noqa: E402: the import is part of the start


def main() -> None:
    read = time.monotonic() * 1e3
    run = load()
    created = time.monotonic() * 1e3
    run()
    first = time.monotonic() * 1e3
    run()
    again = time.monotonic() * 1e3
    print(json.dumps({"main": BEGIN, "read": read, "created": created, "first": first, "again": again}))


main()
