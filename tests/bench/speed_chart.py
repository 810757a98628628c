#!/usr/bin/env python3
"""A record of speed fuzzing in words and as a picture: the distribution, not chosen rows.

    python3 tests/bench/speed_chart.py RECORD.json                       # the summary
    python3 tests/bench/speed_chart.py part*.json --record=speed-DATE.json   # joined, and drawn

Speed is the best peer's time over ours: below 1 we lost. The picture, speed-DATE.png, has every
draw's speed in order, and its floor over its time. Without matplotlib there is the text alone.
"""
import json
import os
import statistics
import sys

LABELS = {"eager": "eager", "default": "torch.compile", "max_autotune": "max-autotune"}
FLOOR_MS = 0.02  # shorter floors are launches rather than bytes
# Of products, what a GPU's best kernels reach: PyTorch's f32 without TF32, and halves.
TERAFLOPS = {"f32": 50, "half": 700}
BUSY = 30  # operations a byte from which arithmetic, not memory, may be the limit


geometric = statistics.geometric_mean


def measured(record):
    return [row for row in record["rows"] if "contestants" in row]


def best_peer(row):
    peers = {name: entry["ms"] for name, entry in row["contestants"].items()
             if name != "tiny_compile"}
    return min(peers.items(), key=lambda item: item[1]) if peers else (None, None)


def speed(row, peer=None):
    ms = row["contestants"][peer]["ms"] if peer else best_peer(row)[1]
    return ms / row["contestants"]["tiny_compile"]["ms"] if ms else None


def of_floor(row):
    return row["floor_ms"] / row["contestants"]["tiny_compile"]["ms"]


def is_product(row):
    return row["class"].endswith("product")


def density(row):
    return row["operations"] / row["bytes"] if row["bytes"] else 0


def counts_for_floor(row):
    return row["floor_ms"] >= FLOOR_MS and not is_product(row) and density(row) < BUSY


def line_of(row):
    if "error" in row:
        return f"{row['seed']:>15s} FAILED: {row['error']}"[:300]
    if "contestants" not in row:
        worst = row.get("errors", {}).get("tiny_compile")
        off = "" if worst is None else f" off by {worst:.1e}"
        return f"{row['seed']:>15s} {row['class']:19s} checked{off} | {row['text']}"
    mine = row["contestants"]["tiny_compile"]
    text = (f"{row['seed']:>15s} {row['class']:19s} {mine['ms']:9.4f} ms  floor "
            f"{row['floor_ms']:8.4f} ({of_floor(row):4.2f}) {mine['kernels']:3d} k "
            f"{mine['compile_ms']:5.0f} compile")
    for name, label in LABELS.items():
        if name in row["contestants"]:
            text += f" | {label} {row['contestants'][name]['ms']:.4f}"
    name, _ = best_peer(row)
    text += f" | {speed(row):.2f}x" if name else ""
    return f"{text} | {row['text']}"


# Words ---------------------------------------------------------------------------------------

def reason(row):
    """What the figures say of a draw that is slow; not a diagnosis."""
    mine, (peer, _) = row["contestants"]["tiny_compile"], best_peer(row)
    theirs = row["contestants"][peer].get("kernels")
    words = []
    if is_product(row):
        words.append("a product")
    elif row["tiny"]:
        words.append("about as short as a launch")
    elif of_floor(row) > 0.85:
        words.append("near its floor: the peer moves fewer bytes, or from cache")
    else:
        words.append(f"{of_floor(row):.2f} of its floor")
    if theirs and mine["kernels"] > theirs:
        words.append(f"{mine['kernels']} kernels for {theirs}")
    if density(row) >= BUSY:
        words.append(f"{density(row):.0f} operations a byte")
    return ", ".join(words)


def by_class(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["class"], []).append(row)
    lines = [f"  {'class':20s} draws  speed, mean   worst   floor / time, median"]
    for name, group in sorted(groups.items()):
        speeds = [speed(row) for row in group if speed(row)]
        shares = [of_floor(row) for row in group if counts_for_floor(row)]
        mean = f"{geometric(speeds):11.2f} {min(speeds):9.2f}" if speeds else " " * 21
        share = f"{statistics.median(shares):8.2f} of {len(shares)}" if shares else ""
        lines.append(f"  {name:20s} {len(group):5d} {mean}  {share}")
    return lines


def against_peers(rows):
    speeds = [speed(row) for row in rows]
    lines = [f"speed against the best peer: geometric mean {geometric(speeds):.3f}, median "
             f"{statistics.median(speeds):.3f}; at least 0.9 in {sum(s >= 0.9 for s in speeds)} "
             f"of {len(speeds)}, at least 1 in {sum(s >= 1 for s in speeds)}"]
    for name, label in LABELS.items():
        those = [speed(row, name) for row in rows if name in row["contestants"]]
        if those:
            lines.append(f"  against {label} alone: {geometric(those):.3f} of {len(those)}")
    return lines


def slowest(rows):
    lines = ["the ten slowest against their best peer:"]
    for row in sorted(rows, key=speed)[:10]:
        name, ms = best_peer(row)
        mine = row["contestants"]["tiny_compile"]["ms"]
        lines.append(f"  {speed(row):.2f} {row['class']} {row['seed']}: {mine:.4f} ms for {ms:.4f} "
                     f"({LABELS[name]}); {reason(row)}; {row['text']}")
    return lines


def summary(record):
    rows = measured(record)
    failed = [row for row in record["rows"] if "error" in row]
    lines = [f"{record.get('device', '')}, PyTorch {record.get('torch', 'none')}, "
             f"{record.get('date', '')}, commit {record.get('commit', '')}, seeds: "
             f"{record.get('seeds', '')}: {len(record['rows'])} draws, {len(failed)} failed"]
    raced = [row for row in rows if best_peer(row)[0]]
    if raced:
        lines += against_peers(raced)
    shares = [of_floor(row) for row in rows if counts_for_floor(row)]
    if shares:
        lines.append(f"floor / time: median {statistics.median(shares):.3f} of {len(shares)} draws "
                     f"whose floor is 20 us or more, no products, below {BUSY} operations a byte")
    busy = [row for row in rows if density(row) >= BUSY]
    if busy:
        lines.append(f"{len(busy)} draws of {BUSY} operations a byte or more")
    lines += by_class(rows) if rows else []
    lines += slowest(raced) if raced else []
    return lines + [f"failed: {row['seed']}: {row['error']}" for row in failed]


# Joining and drawing -------------------------------------------------------------------------

def join(records):
    """One record of shards; of a draw in two of them the later."""
    whole = {"rows": []}
    for part in records:
        rows = {row["seed"]: row for row in whole["rows"] + part["rows"]}
        commands = "; ".join(filter(None, [whole.get("command"), part.get("command")]))
        seeds = dict.fromkeys(filter(None, [*whole.get("seeds", "").split("; "), part.get("seeds")]))
        whole = {**whole, **part, "command": commands, "seeds": "; ".join(seeds),
                 "rows": list(rows.values())}
    return whole


def save(record, path):
    """A row a line, so that a record's changes can be read."""
    head = {key: value for key, value in record.items() if key != "rows"}
    rows = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    with open(path, "w") as f:
        f.write(json.dumps(head, indent=1)[:-2] + ",\n \"rows\": [\n" + rows + "\n]}\n")


def draw(record, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    rows = [row for row in measured(record) if best_peer(row)[0]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[3, 2])
    colours = {"eager": "#999999", "default": "#E69F00", "max_autotune": "#D55E00"}
    order = sorted(rows, key=speed)
    for name, label in LABELS.items():
        at = [k for k, row in enumerate(order) if best_peer(row)[0] == name]
        left.plot(at, [speed(order[k]) for k in at], ".", color=colours[name], label=label)
    left.axhline(1, color="black", linewidth=0.8)
    left.set(yscale="log", xlabel="draws, slowest first", ylabel="best peer's time / ours",
             title=f"{len(rows)} draws, geometric mean "
                   f"{geometric([speed(row) for row in rows]):.2f}")
    left.legend(title="best peer")
    shares = [of_floor(row) for row in rows if counts_for_floor(row)]
    right.hist([min(share, 1.19) for share in shares], bins=[k / 20 for k in range(25)], color="#0072B2")
    right.set(xlabel="floor / time", ylabel="draws",
              title=f"against the bytes' floor, {len(shares)} draws")
    figure.suptitle(", ".join([record.get("device", ""), f"PyTorch {record.get('torch', '')}",
                               record.get("date", "")]))
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    paths = [word for word in sys.argv[1:] if not word.startswith("--")]
    to = next((w.split("=", 1)[1] for w in sys.argv[1:] if w.startswith("--record=")), "")
    if not paths:
        print(__doc__)
        return 1
    records = []
    for path in paths:
        with open(path) as f:
            records.append(json.load(f))
    record = join(records)
    print("\n".join(summary(record)))
    if to:
        save(record, to)
    picture = os.path.splitext(to or paths[0])[0] + ".png"
    try:
        if to and any(best_peer(row)[0] for row in measured(record)):
            draw(record, picture)
    except ImportError:
        print("no picture: matplotlib is missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
