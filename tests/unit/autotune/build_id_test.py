"""The digest that records carry: code changes it, explanations do not."""

import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT, CMAKE = Path(sys.argv[1]), sys.argv[2]
CODE = 'int twice(int x) {\n  return 2 * x;\n}\n'


def digest(files: dict[str, str], generator: str = "LLVM-19.1.7") -> str:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        out = root / "build_id.cpp"
        subprocess.run(
            [CMAKE, f"-DROOT={root}", f"-DOUT={out}", f"-DCODE_GENERATOR={generator}", "-P", str(SCRIPT)], check=True
        )
        return out.read_text().split('"')[3]


base = {"tensor/a.cpp": CODE, "schedule/lower/b.h": CODE, "codegen/c.cpp": CODE, "autotune/rule.cpp": CODE}
first = digest(base)
assert len(first) == 12, first
same = {
    "comment": base | {"tensor/a.cpp": "// Why.\n" + CODE.replace(";\n", ";  // twice; [so]\n")},
    "white space": base | {"codegen/c.cpp": CODE.replace("\n", "  \n\n\n")},
    "search": base | {"autotune/search/tuner.cpp": CODE, "autotune/space/space.cpp": CODE},
    "graph": base | {"graph/graph.cpp": CODE, "tests/a.cpp": CODE},
}
for what, files in same.items():
    assert digest(files) == first, f"{what}: expected the same digest"
other = {
    "lowering": base | {"schedule/lower/b.h": CODE.replace("2 *", "3 *")},
    "code generation": base | {"codegen/c.cpp": CODE.replace("x;", "x + 1;")},
    "default schedule": base | {"autotune/rule.cpp": CODE + "int more;\n"},
    "a rule of the space": base | {"autotune/space/tile_decisions.cpp": CODE},
    "a new file": base | {"tensor/d.cpp": ""},
    "a renamed file": {("tensor/z.cpp" if k == "tensor/a.cpp" else k): v for k, v in base.items()},
}
seen = {first}
for what, files in other.items():
    now = digest(files)
    assert now not in seen, f"{what}: expected another digest"
    seen.add(now)
assert digest(base, "LLVM-20.1.0") not in seen, "another code generator: expected another digest"
print("ok")
