#!/usr/bin/env python3
"""A record as README's table; of a GPU's also a roofline and bars.

    python3 tests/bench/charts.py [RECORD]     # default: the newest record of a GPU; or cpu-DATE

The table goes between `<!-- record: PATH -->` and `<!-- end -->` in README.md, the pictures beside
the record (h200-DATE-roofline.png, h200-DATE-bars.png). Without matplotlib there is the table
alone. `--check` changes nothing and fails where README's table is not what the record says; without
a record it looks at both tables, the GPU's and the CPU's.
"""
import glob
import json
import os
import re
import statistics
import sys

from gpu_bench import best_peer, commits

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- record:", "<!-- end -->"
F32_TFLOPS = 67  # NVIDIA's datasheet for the H200, not measured
# What a row is asked for, as tests/bench/NOTES.md has it.
MEAN_MARK, WARM_MARK_MS, COMPILE_MARK, COPY_MARK = 1.25, 3, 1 / 8, 0.75
DEFAULT_SECONDS = "1.5"  # gpu_bench.py's --seconds
INDEXED = {"xent_fwd", "xent_fwdbwd", "gpt2_fwd", "gpt2_fwdbwd", "gpt2_step",
           "linear_xent_bf16", "logits_xent_bf16"}  # whose kernels can find an index wrong
LABELS = {"eager": "eager", "default": "torch.compile", "max_autotune": "max-autotune",
          "by_hand": "torch.compile, by hand", "sdpa": "torch.compile, SDPA",
          "xla": "XLA", "tiny_compile": "tiny_compile"}
# Okabe and Ito's colours, told apart by every kind of colour blindness, and a mark for each.
COLOURS = {"tiny_compile": "#0072B2", "default": "#E69F00", "max_autotune": "#D55E00",
           "by_hand": "#CC79A7", "sdpa": "#56B4E9", "xla": "#009E73", "eager": "#999999"}
MARKS = {"tiny_compile": "o", "default": "s", "max_autotune": "^", "by_hand": "D", "sdpa": "P",
         "xla": "v", "eager": "x"}


# The table -----------------------------------------------------------------------------------

def measured(record):
    return [row for row in record["rows"] if "contestants" in row]


def plain(record):  # the table's rows, without their variants: softmax, not softmax/127
    return [row for row in measured(record) if "/" not in row["row"]]


def number(value, form):
    return "–" if value is None else format(value, form)


def milliseconds(ms):
    return "–" if ms is None else f"{ms:.4f}" if ms < 0.1 else f"{ms:.3f}"


def gbps(row, name="tiny_compile"):
    return row["bytes"] / row["contestants"][name]["ms"] * 1e-6 if row["bytes"] else None


def cells(row):
    mine = row["contestants"]["tiny_compile"]
    peer, ms = best_peer(row)
    rate = None if row["tiny"] else gbps(row)
    ratio = None if ms is None else ms / mine["ms"]
    peak = mine.get("peak_bytes")
    theirs = row["contestants"].get("default", {}).get("cold_ms")
    floor = rate and floor_ms(row)
    return [row["row"], milliseconds(mine["ms"]), milliseconds(floor), number(rate, ".0f"),
            number(rate and rate / row["copy_gbps"], ".2f"), number(mine.get("kernels"), "d"),
            number(peak and peak / 2**20, ".0f"),
            number(mine.get("cold_ms"), ".0f"), number(mine.get("warm_ms"), ".1f"),
            number(mine.get("again_ms"), ".0f") + " / " + number(theirs, ".0f"),
            number(mine.get("host_us"), ".1f"),
            "–" if peer is None else f"{milliseconds(ms)} {LABELS[peer]}",
            number(ratio, ".2f")]


HEAD = ["row", "ms", "floor, ms", "GB/s", "of copy", "kernels", "peak MiB", "cold ms", "warm ms",
        "compile ms, ours / torch.compile", "host µs a call", "best peer, ms", "speed against it"]


def floor_ms(row):
    return row["bytes"] / row["copy_gbps"] * 1e-6


def against_default(rows, ours):
    """The geometric mean of torch.compile's default over ours(row), where memory is the limit."""
    ratios = [row["contestants"]["default"]["ms"] / ours(row) for row in rows
              if row["bytes"] and not row["tiny"] and "default" in row["contestants"]]
    return statistics.geometric_mean(ratios) if ratios else None


def rows_table(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    verdicts = [compared(rows)] + missed(rows)
    return lines + ["", " ".join(filter(None, verdicts))] if any(verdicts) else lines


def compared(rows):
    ratios = {row["row"]: best_peer(row)[1] / row["contestants"]["tiny_compile"]["ms"]
              for row in rows if best_peer(row)[0]}
    if not ratios:
        return ""
    slower = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio < 1]
    text = (f"At least as fast as the best peer in {len(ratios) - len(slower)} of {len(ratios)} "
            f"rows, slower in {len(slower)}" + (f" ({', '.join(slower)})." if slower else "."))
    mine = lambda row: row["contestants"]["tiny_compile"]["ms"]
    mean = against_default(rows, mine)
    best = against_default(rows, lambda row: min(mine(row), floor_ms(row)))
    return text + ("" if mean is None else (
        f" Geometric mean against torch.compile's default, rows with a floor: {mean:.2f}"
        + ("" if "/" in rows[0]["row"] else f" (the mark is {MEAN_MARK})")
        + f"; it would be {best:.2f} if none took longer than its floor."))


def missed(rows):
    """A sentence for each mark that some rows miss, with their names."""
    mine = lambda row, what: row["contestants"]["tiny_compile"].get(what) or 0
    theirs = lambda row: row["contestants"].get("default", {}).get("cold_ms")
    warm = [f"{row['row']} {mine(row, 'warm_ms'):.1f}" for row in rows
            if mine(row, "warm_ms") > WARM_MARK_MS]
    compiling = [(row["row"], mine(row, "again_ms") / theirs(row)) for row in rows if theirs(row)]
    slow = [f"{name} {share:.2f}" for name, share in compiling if share > COMPILE_MARK]
    xla = lambda row: row["contestants"].get("xla", {}).get("cold_ms")
    behind = [f"{row['row']} {mine(row, 'again_ms'):.0f} for {xla(row):.0f}" for row in rows
              if xla(row) and mine(row, "again_ms") > xla(row)]
    copied = [(row["row"], gbps(row) / row["copy_gbps"]) for row in rows
              if row["bytes"] and not row["tiny"]]
    far = [f"{name} {share:.2f}" for name, share in copied if share < COPY_MARK]
    fat = more_than_peers(rows, "peak_bytes", 2**20)
    many = more_than_peers(rows, "kernels", 1)
    sentences = [f"{what}: {', '.join(names)}." for what, names in [
        (f"Warm starts above the mark of {WARM_MARK_MS} ms", warm),
        ("Compilation in more than an eighth of torch.compile's time, as a share of it", slow),
        ("Compilation slower than XLA's, ms", behind),
        (f"Less than {COPY_MARK} of the copy's speed, the mark", far),
        ("Peak memory above that of the thriftiest peer, MiB", fat),
        ("More kernels than the peer with the fewest", many)] if names]
    indexed = [row["row"] for row in rows if row["row"] in INDEXED]
    return sentences + ([
        "The peers' kernels are counted with copies and fills, ours without the copy and the fill "
        "of the word in which kernels report a wrong index: two more a call in "
        f"{listed(indexed)}."] if indexed and with_contestant({"rows": rows}, "eager") else [])


def more_than_peers(rows, what, unit):
    """Where ours is above the least of the peers', as the table rounds it."""
    names = []
    for row in rows:
        counts = {name: round(entry[what] / unit) for name, entry in row["contestants"].items()
                  if entry.get(what)}
        mine = counts.pop("tiny_compile", 0)
        least = min(counts, key=counts.get, default=None)
        if least and mine > counts[least]:
            names.append(f"{row['row']} {mine} for {counts[least]} ({LABELS[least]})")
    return names


def listed(names):
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def with_contestant(record, name):
    return [row["row"] for row in measured(record) if name in row["contestants"]]


def peers(record):
    """What the best peer is the best of; "" in a record without PyTorch."""
    if not with_contestant(record, "eager"):
        return ""
    kinds = ["PyTorch's eager mode", "torch.compile"]
    for name, words in [("max_autotune", "max-autotune, without CUDA graphs"),
                        ("by_hand", "our formula of the gradient under torch.compile, by hand"),
                        ("xla", f"XLA by jax.jit of JAX {record.get('jax', '')}")]:
        if rows := with_contestant(record, name):
            others = [row["row"] for row in plain(record) if row["row"] not in rows]
            if any("/" in row["row"] and row["row"] not in rows for row in measured(record)):
                others.append("the folded table")
            where = (f"in {listed(rows)} alone" if len(rows) <= len(others)
                     else f"not in {listed(others)}" if others else "in all")
            kinds.append(f"{words} ({where})")
    without = "" if with_contestant(record, "xla") else " XLA was not measured in this run."
    return f"The best peer is the fastest of {'; '.join(kinds)}.{without}"


def commit_words(rows):
    """2ad9b7c (gpt2_fwd c1183a2): that of most rows, then the others with their rows."""
    usual, *rare = commits(rows)
    others = [f"{listed([row['row'] for row in rows if row['commit'] == commit])} {commit}"
              for commit in rare]
    return usual + (f" ({', '.join(others)})" if others else "")


def timing(record):
    """How long a row was timed, and by how many commands."""
    commands = [c for c in record.get("command", "").split("; ") if "gpu_bench.py" in c]
    if not commands:
        return ""
    times = {False: [], True: []}
    for command in commands:
        given = re.search(r"--seconds[ =]([\d.]+)", command)
        times["--ragged" in command].append(given[1] if given else DEFAULT_SECONDS)
    span = lambda texts: " or ".join(sorted(set(texts), key=float)) + " s"
    parts = [f"{span(times[ragged])} {what}" for what, ragged in
             [("a row of the table", False), ("one of the folded table", True)] if times[ragged]]
    count = f"{len(commands)} commands" if len(commands) > 1 else "one command"
    return f"Timed for {' and '.join(parts)}, all contestants in turns; {count} made the record."


# The rows of the table, then, folded, their variants: softmax/127 is softmax with rows of 127.
def table(record):
    rows = measured(record)
    ragged = [row for row in rows if "/" in row["row"]]
    failed = [row["row"] for row in record["rows"] if "error" in row]
    lines = [f"{record['device']}, driver {record.get('driver') or 'unknown'}, "
             f"PyTorch {record.get('torch', 'none')}, {record['date']}, commit "
             f"{commit_words(rows)}; device copy {record['copy_gbps']:.0f} GB/s.", ""]
    about = " ".join(filter(None, [peers(record), timing(record)]))
    lines += [about, ""] if about else []
    lines += rows_table(plain(record))
    if ragged:
        lines += ["", "<details><summary>Other row lengths and layouts</summary>", ""]
        lines += rows_table(ragged) + ["", "</details>"]
    if failed:
        lines += ["", "Not measured, because a check failed or time ran out: "
                  + ", ".join(failed) + "."]
    return "\n".join(lines)


def best_torch(rows, name, threads):
    """The faster of eager and torch.compile, or None."""
    both = [row[mode] for row in rows if row["row"] == name and row["threads"] == threads
            for mode in ("eager_ms", "compiled_ms") if row[mode] is not None]
    return min(both, default=None)


def cpu_table(record):
    theirs = record["torch_rows"]
    ours = {(row["row"], row["threads"]): row["tiny_compile_ms"] for row in theirs}
    names = list(dict.fromkeys(name for name, _ in ours))
    counts = sorted({threads for _, threads in ours})
    ratios = {key: best_torch(theirs, *key) / ms for key, ms in ours.items()
              if best_torch(theirs, *key)}
    heads = [f"{n} thread{'s' * (n > 1)}: ours, PyTorch's best, ms | speed against it"
             for n in counts]
    lines = [f"{record['cpu']}, {record['cores']} cores, {record['compiler']}, PyTorch "
             f"{record['torch']}, {record['date']}, commit {record['commit']}. Each in a process of its "
             "own, ours before, between and behind PyTorch's two.", "",
             "| row | " + " | ".join(heads) + " |", "|" + "---|" * (1 + 2 * len(counts))]
    for name in names:
        cells = [name]
        for key in [(name, n) for n in counts]:
            cells += ([f"{milliseconds(ours[key])}, {milliseconds(best_torch(theirs, *key))}",
                       f"{ratios[key]:.2f}"] if key in ratios else ["–", "–"])
        lines.append("| " + " | ".join(cells) + " |")
    said = []
    for n in counts:
        of = {name: ratios[name, n] for name in names if (name, n) in ratios}
        slower = [f"{name} {ratio:.2f}" for name, ratio in of.items() if ratio < 1]
        said.append(f"By {n} thread{'s' * (n > 1)}: ahead in {len(of) - len(slower)} of {len(of)}, "
                    f"geometric mean {statistics.geometric_mean(of.values()):.2f}"
                    + (f"; slower in {', '.join(slower)}." if slower else "."))
    return "\n".join(lines + ["", " ".join(said)])


def with_table(text, path, record):
    """The text with this record's table in the place of the last one of its kind."""
    kind = lambda name: os.path.basename(name).startswith("cpu-")
    for place in re.finditer(re.escape(BEGIN) + r" (\S+) -->.*?" + END, text, re.DOTALL):
        if kind(place[1]) == kind(path):
            made = cpu_table(record) if kind(path) else table(record)
            return (f"{text[:place.start()]}{BEGIN} {path} -->\n\n{made}\n\n{END}"
                    f"{text[place.end():]}")
    return None


# Pictures ------------------------------------------------------------------------------------

def style(plt):
    plt.rcParams.update({"figure.facecolor": "white", "axes.facecolor": "white",
                         "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def title(record, rows):
    return f"{record['device']}, {record['date']}, commit {commit_words(rows)}"


# Names beside points that lie close together: none within a line's height of one before it.
def spread(points, least=1.22):
    placed, last = [], 0
    for x, y, name in sorted(points, key=lambda p: p[1]):
        last = max(y, last * least)
        placed.append((x, y, last, name))
    return placed


def draw_roofline(record, path, plt):
    rows = [row for row in plain(record) if row["bytes"] and not row["tiny"]
            and "/" not in row["row"]]
    figure, axes = plt.subplots(figsize=(9, 6))
    copy, matmul = record["copy_gbps"], record.get("matmul_tflops")
    xs = [0.05, 100]
    axes.plot(xs, [x * copy * 1e-3 for x in xs], color="black", lw=1)
    axes.text(0.055, 0.07 * copy * 1e-3, f"device copy {copy:.0f} GB/s", rotation=33, va="bottom")
    axes.axhline(F32_TFLOPS, color="black", lw=1, ls="--")
    axes.text(0.055, F32_TFLOPS * 1.08, f"f32 {F32_TFLOPS} TFLOP/s (datasheet)")
    points = []
    for row in rows:
        x = row["operations"] / row["bytes"]
        y = row["operations"] / row["contestants"]["tiny_compile"]["ms"] * 1e-9
        peer, ms = best_peer(row)
        axes.plot(x, y, MARKS["tiny_compile"], color=COLOURS["tiny_compile"], ms=7, zorder=3)
        if peer:
            axes.plot(x, row["operations"] / ms * 1e-9, MARKS["default"], mfc="none",
                      color=COLOURS["max_autotune"], ms=7, zorder=2)
        points.append((x, y, row["row"]))
    for x, y, label, name in spread(points):
        axes.annotate(name, (x, y), (14, label), va="center", fontsize=8, color="#333333",
                      arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "lw": 0.6})
    axes.plot([], [], MARKS["tiny_compile"], color=COLOURS["tiny_compile"], label="tiny_compile")
    axes.plot([], [], MARKS["default"], mfc="none", color=COLOURS["max_autotune"],
              label="the best peer")
    axes.set(xscale="log", yscale="log", xlim=xs, ylim=(0.1, 150),
             xlabel="operations a byte that must be moved", ylabel="Toperations/s",
             title="Roofline: " + title(record, rows))
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def draw_bars(record, path, plt):
    order, limit, gap = list(COLOURS), 3.0, 0.8
    figure, axes = plt.subplots()
    ticks, y = [], 0.0
    for row in [row for row in plain(record) if best_peer(row)[0]]:
        names = [name for name in order if name in row["contestants"]]
        ticks.append((y + (len(names) - 1) / 2, row["row"]))
        for name in names:
            ms = row["contestants"][name]["ms"]
            ratio = ms / best_peer(row)[1]
            axes.barh(y, min(ratio, limit), 0.92, color=COLOURS[name])
            text = f"{milliseconds(ms)} ms" + (f" ({ratio:.1f}×)" if ratio > limit else "")
            axes.text(min(ratio, limit) + 0.02, y, text, va="center", fontsize=7, zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4})
            y += 1
        y += gap
    figure.set_size_inches(9, 1 + 0.145 * y)
    axes.axvline(1, color="black", lw=0.8, zorder=3)
    axes.set(yticks=[at for at, _ in ticks], yticklabels=[name for _, name in ticks],
             xlim=(0, limit + 0.5), ylim=(y - gap, -1),
             xlabel="time against the best peer's (1): shorter is faster")
    axes.set_title("Time: " + title(record, plain(record)), pad=24)
    used = [n for n in order if any(n in row["contestants"] for row in plain(record))]
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=COLOURS[n]) for n in used],
                [LABELS[n] for n in used], loc="lower left", bbox_to_anchor=(0, 1),
                borderaxespad=0.2, ncols=len(used), frameon=False, fontsize=8)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def draw(record, stem):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no matplotlib: the table alone, no charts (pip install matplotlib)")
        return
    style(plt)
    draw_roofline(record, stem + "-roofline.png", plt)
    draw_bars(record, stem + "-bars.png", plt)
    print(f"{stem}-roofline.png {stem}-bars.png")


def newest_record(of_cpu=False):
    paths = [p for p in glob.glob(os.path.join(HERE, "records", "*.json"))
             if os.path.basename(p).startswith("cpu-") == of_cpu
             and not os.path.basename(p).startswith(
                 ("fuzz-", "gpt2-", "models-", "speed-", "train-"))]
    return max(paths, key=lambda p: os.path.basename(p)[-15:], default=None)


def main(arguments):
    check = "--check" in arguments
    paths = [a for a in arguments if a != "--check"] or [newest_record()] + (
        [newest_record(of_cpu=True)] if check else [])
    return max(write_table(path, check) for path in paths)


def write_table(path, check):
    if not path:
        print("no such record in tests/bench/records yet: make bench writes them")
        return 0
    with open(path) as f:
        record = json.load(f)
    with open(README) as f:
        before = f.read()
    after = with_table(before, os.path.relpath(os.path.abspath(path), ROOT), record)
    if after is None:
        print(f"README.md has no place for the table: {BEGIN} {path} --> and {END}")
        return 1
    if check:
        name = os.path.basename(path)
        print(f"README.md's table is that of {name}" if before == after else
              f"README.md's table is not what {name} says: make bench-table RECORD={path}")
        return int(before != after)
    with open(README, "w") as f:
        f.write(after)
    if "device" in record:
        draw(record, os.path.splitext(path)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
