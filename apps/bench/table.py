"""Prints the models' table."""

from typing import Any

NAME_WIDTH = 24


def pair(row: dict[str, Any], program: str) -> str:
    """Minimum and median with the spread."""
    score = row["scores"].get(program)
    return f"{score.min_ms:8.3f} {score.median_ms:8.3f} {score.spread:4.0%}" if score else f"{'-':>8} {'-':>8} {'-':>4}"


def ratio(row: dict[str, Any], peer: str) -> str:
    """The ratios of minima and medians; not shown for a row that load disturbed."""
    found = row["ratios"].get(peer)
    if not found or not row["judged"]:
        return f"{'-':>5} {'-':>5}"
    return f"{found['min']:5.2f} {found['median']:5.2f}"


def starts(row: dict[str, Any], ours: str) -> str:
    """Compile seconds, and start-up of ours and of ONNX Runtime in ms."""
    seconds = f"{row['compile_s']:7.2f}" if "compile_s" in row else f"{'-':>7}"
    times = row.get("start_ms", {})
    return " ".join([seconds, *(f"{times[name]:7.1f}" if name in times else f"{'-':>7}" for name in (ours, "onnxruntime"))])


def goal(row: dict[str, Any]) -> str:
    """The best peer's time by ours, and whether that is what must be (ok) or what we aim at (aim)."""
    if not row.get("wanted") or row.get("best_peer") is None or not row["judged"]:
        return f"{'-':>15}"
    must, aim = row["wanted"]
    verdict = "aim" if row["best_peer"] >= aim else "ok" if row["best_peer"] >= must else "below"
    return f"{row['best_peer']:5.2f} {must:4.2f} {verdict:>5}"


def remarks(row: dict[str, Any]) -> str:
    notes = list(row["notes"])
    verdict = "forced" if row["judged"] else "not judged"
    if row.get("unsteady"):
        notes.append(f"unsteady rounds of {', '.join(row['unsteady'])}, {verdict}")
    if row.get("disturbed"):
        notes.append(f"under load ({row['other_cpu']:.0%} others, {row['stolen_cpu']:.0%} stolen), {verdict}")
    return "; ".join(notes)


def print_table(head: dict[str, Any], rows: list[dict[str, Any]], ours: str, peers: tuple[str, ...]) -> None:
    """One line a model; times in ms, ratios are the peer's time by ours."""
    versions = {name: score.version for row in rows for name, score in row["scores"].items()}
    print(f"{head['cpu']}, {head['cpus']} CPUs, {head['threads']} threads, load {head['load_average']:.2f}, {head['date']}")
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"{head['rounds']} rounds in turns; min and median in ms, spread of the rounds; ratio = peer / {ours} (min, median)")
    if head["forced"]:
        print(f"MEASURED UNDER LOAD by --force: {head['forced']}")
    columns = [f"{name:^22}" for name in (ours, *peers)] + [f"{peer + ' /':>11}" for peer in peers]
    columns.append(f"{'best must':>15}")
    print(f"{'':{NAME_WIDTH}} {' | '.join(columns)} | compile s, start-up ms {ours}, onnxruntime")
    for row in rows:
        cells = [pair(row, name) for name in (ours, *peers)] + [ratio(row, peer) for peer in peers]
        cells += [goal(row), starts(row, ours)]
        print(f"{row['model']:{NAME_WIDTH}} {' | '.join(cells)}  {remarks(row)}".rstrip())
