#!/usr/bin/env python3
"""The GPU benchmark: tiny_compile beside PyTorch and XLA, same inputs, one run, taking turns.

    python3 tests/bench/gpu_bench.py                      # the table, record in tests/bench/records
    python3 tests/bench/gpu_bench.py --rows softmax,mse --record part.json
    python3 tests/bench/gpu_bench.py --ragged --autotune none --no-xla
    python3 tests/bench/gpu_bench.py --join a.json b.json --record tests/bench/records/h200-DATE.json
    python3 tests/bench/gpu_bench.py --trial              # everything small on the CPU, no record

Each row: both sides make the same inputs (checksums compared); tiny_compile's results are compared
with the interpreter's bits (small), the C++ back end's bits (full size) and float64 (all
contestants); then contestants and a device copy are timed in turns with events. The record is
written after every row, rows already in it are replaced. Without PyTorch: tiny_compile alone.
"""
import argparse
import collections
import datetime
import gc
import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COPIED = 1 << 30
TURN_MS = 10.0
sys.path.insert(0, HERE)


class TooSlow(BaseException):  # no `except Exception` on the way may keep it
    pass


class Failed(Exception):
    pass


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# tiny_compile's side -------------------------------------------------------------------------

class Ours:
    """build/gpu_bench --serve: a command a line, an answer a line."""

    def __init__(self, program, trial):
        self.command = [program, "--serve"] + (["--cpu"] if trial else [])
        self.process = None

    def ask(self, *words, seconds=300):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE)
        self.process.stdin.write((" ".join(str(w) for w in words) + "\n").encode())
        self.process.stdin.flush()
        answer = json.loads(self.read_line(seconds) or '{"error": "gpu_bench ended"}')
        if "error" in answer:
            if self.process.poll() is not None:
                self.process = None
            raise Failed(answer["error"])
        return answer

    def read_line(self, seconds):
        line, stop = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0, stop - time.monotonic()))
            if not ready:
                raise TooSlow(f"no answer in {seconds} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                self.process.wait()
                break
            line += part
        return line.decode()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


def run_text(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT,
                              timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


# One row -------------------------------------------------------------------------------------

def check_ours(ours, row):
    row["checks"] = checks = {}
    checks["interpreter_small"] = ours.ask("check_small")["ok"]
    try:
        checks["cpp_full"] = ours.ask("check_full")["ok"]  # null: outside the contract
    except Failed as error:
        if "differs" in str(error):
            raise
        checks["cpp_full"] = f"skipped: {error}".splitlines()[0]


def check_torch(ours, row, peers, scratch):
    ours.ask("save", scratch)
    row["errors"] = peers.errors(scratch)
    limit = max(peers.limit(), 4 * row["errors"]["eager"])
    row["checks"]["float64"] = row["errors"]["tiny_compile"] <= limit
    if not row["checks"]["float64"]:
        raise Failed(f"off from float64 by {row['errors']['tiny_compile']:.3g}, "
                     f"eager by {row['errors']['eager']:.3g}")


def take_turns(timers, seconds):
    """Milliseconds of each contestant's calls; the order rotates from round to round."""
    spent = {name: [] for name in timers}
    counts = {}
    for name, timer in timers.items():
        ms = max(statistics.median(timer(3)), 1e-4)
        counts[name] = int(min(50, max(3, TURN_MS / ms)))
    names, stop, turn = list(timers), time.monotonic() + seconds, 0
    while turn < 5 or time.monotonic() < stop:
        for k in range(len(names)):
            name = names[(k + turn) % len(names)]
            spent[name] += timers[name](counts[name])
        turn += 1
    return spent, turn


def summary(times):
    return {"ms": statistics.median(times), "min_ms": min(times), "calls": len(times)}


def calls_for_host(entry, tiny):
    """As many as the launch queue takes, and the device a fifth of a second."""
    most = min(500 if tiny else 100, 600 // max(1, entry["kernels"] or 20))
    return max(3, min(most, int(200 / entry["ms"])))


def add_in_time(add, seconds):
    """Throws Failed where it takes longer; the row's alarm goes on behind it."""
    began, left = time.monotonic(), signal.alarm(seconds)
    try:
        add()
    except TooSlow as error:
        raise Failed(f"more than {seconds} s") from error
    finally:
        signal.alarm(max(1, left - int(time.monotonic() - began)))


def add_contestants(row, peers, options, jax_side, begun):
    """Compiled, each once; what fails to is a note of the row's. max-autotune, which may take minutes,
    has half of the row's time that is left."""
    adders = {f"torch.compile {mode}": lambda mode=mode: peers.add_compiled(mode)
              for mode in peers.modes(options.autotune)}
    if jax_side and peers.name in jax_side.ROWS:
        adders["jax.jit"] = lambda: jax_side.add(peers)
    for what, add in adders.items():
        spent = time.monotonic() - begun
        say(f"  {spent:5.1f} s: {what}")
        try:
            if what.endswith("max_autotune"):
                add_in_time(add, max(1, int((options.limit - spent) / 2)))
            else:
                add()
        except Exception as error:
            row.setdefault("notes", []).append(" ".join(f"{what}: {error}".split())[:400])


def measure_row(ours, name, options, sides, scratch):
    torch_side, jax_side = sides
    row = {"row": name, "date": options.date, "commit": options.commit}
    start = time.monotonic()
    spec = ours.ask("load", name)
    for key in ("what", "bytes", "operations", "tiny", "exact"):
        row[key] = spec[key]
    check_ours(ours, row)
    peers = None
    if torch_side:
        peers = torch_side.TorchRow(spec, options.device, scratch)
        if peers.checksums != ours.ask("inputs")["checksums"]:
            raise Failed("the two sides' inputs differ")
        add_contestants(row, peers, options, jax_side, start)
        check_torch(ours, row, peers, scratch)
    say(f"  {time.monotonic() - start:5.1f} s: checked, timing")
    time_row(ours, row, spec, peers, torch_side, options)
    ours.ask("check_last")
    if peers:
        peers.check_last(row["errors"])
    measure_rest(ours, row, spec, peers)
    say(f"  {time.monotonic() - start:5.1f} s: starting afresh")
    measure_startups(ours, row, spec, peers, options, scratch)
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def time_row(ours, row, spec, peers, torch_side, options):
    timers = {"tiny_compile": lambda n: ours.ask("time", n)["ms"],
              "copy": lambda n: ours.ask("copy", COPIED, n)["ms"]}
    pause = torch_side.pause_for(options.device) if peers else None
    for contestant in peers.contestants if peers else []:
        timers[contestant.name] = lambda n, c=contestant: c.time_calls(n, pause, spec["tiny"])
    spent, row["rounds"] = take_turns(timers, options.seconds)
    row["copy_gbps"] = 2 * COPIED / statistics.median(spent.pop("copy")) * 1e-6
    row["contestants"] = {name: summary(times) for name, times in spent.items()}


def measure_rest(ours, row, spec, peers):
    mine = row["contestants"]["tiny_compile"]
    mine["kernels"] = ours.ask("launches")["count"]
    count = calls_for_host(mine, spec["tiny"])
    mine["host_us"] = statistics.median(ours.ask("host", count)["us"] for _ in range(5))
    mine["peak_bytes"] = ours.ask("memory")["bytes"]
    for contestant in peers.contestants if peers else []:
        entry = row["contestants"][contestant.name]
        entry["kernels"] = contestant.kernels()
        count = calls_for_host(entry, spec["tiny"])
        entry["host_us"] = contestant.host_microseconds(count)
        entry["peak_bytes"] = contestant.peak_bytes(spec["input_bytes"])
        entry["cold_ms"] = contestant.cold_ms


def measure_startups(ours, row, spec, peers, options, scratch):
    if options.starts > 0:
        row["contestants"]["tiny_compile"].update(ours.ask("startup", options.starts))
    if not peers or not options.torch_start:
        return
    path = os.path.join(scratch, "spec.json")
    with open(path, "w") as f:
        json.dump(spec, f)
    for contestant in peers.contestants:
        if contestant.name != "default":
            continue
        try:
            row["contestants"]["default"]["warm_ms"] = contestant.warm_ms(path)
        except Exception as error:
            row.setdefault("notes", []).append(f"warm start of PyTorch: {error}"[:200])


# The record ----------------------------------------------------------------------------------

def load_record(path):
    if path and os.path.exists(path):
        with open(path) as f:
            return json.load(f)
    return {"rows": []}


def commits(rows):
    """Of these rows, the most frequent first."""
    counted = collections.Counter(row["commit"] for row in rows if "commit" in row)
    return [commit for commit, _ in counted.most_common()]


def put(record, row):
    """In place of the row of that name, if there is one; an error never replaces figures."""
    for old in record["rows"]:
        if old["row"] == row["row"] and "error" in row and "error" not in old:
            say(f"{row['row']}: what was measured at {old.get('commit')} stays in the record, "
                f"now: {row['error']}")
            return
    rows = [r for r in record["rows"] if r["row"] != row["row"]]
    record["rows"] = rows + [row]
    record["commit"] = next(iter(commits(record["rows"])), record.get("commit"))
    copies = [r["copy_gbps"] for r in record["rows"] if "copy_gbps" in r]
    if copies:
        record["copy_gbps"] = statistics.median(copies)


def save_record(record, path):
    if not path:
        return
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w") as f:
        json.dump(record, f, indent=1, sort_keys=False)
        f.write("\n")
    os.replace(path + ".new", path)


def join(paths, to):
    record = {"rows": []}
    for path in paths:
        part = load_record(path)
        rows = part.pop("rows")
        command = "; ".join(filter(None, [record.get("command"), part.get("command")]))
        record.update(part, command=command)
        for row in rows:
            put(record, row)
    save_record(record, to)


def best_peer(row):
    """Of those that compute what we do: SDPA, another attention, is there for the record."""
    peers = {n: c["ms"] for n, c in row.get("contestants", {}).items()
             if n not in ("tiny_compile", "sdpa")}
    return min(peers.items(), key=lambda item: item[1]) if peers else (None, None)


def line_of(row):
    if "contestants" not in row:
        return f"{row['row']:24s} FAILED: {row.get('error', '')}"[:160]
    mine = row["contestants"]["tiny_compile"]
    name, ms = best_peer(row)
    gbps = row["bytes"] / mine["ms"] * 1e-6
    text = (f"{row['row']:24s} {mine['ms']:9.4f} ms {gbps:7.0f} GB/s "
            f"{gbps / row['copy_gbps']:5.2f} of copy {mine.get('kernels', 0):4d} k "
            f"{mine.get('cold_ms', 0):5.0f} cold {mine.get('again_ms', 0):5.0f} again "
            f"{mine.get('warm_ms', 0):6.1f} warm "
            f"{mine.get('host_us', 0):7.2f} us ")
    if name:
        text += f"| {name} {ms:.4f} ms, {ms / mine['ms']:.2f}x"
    return text + (f"  FAILED: {row['error']}"[:120] if "error" in row else "")


def describe_machine(record, ours, options, torch_side, jax_side):
    record["date"], record["commit"] = options.date, options.commit
    record["device"] = ours.ask("hello")["device"]
    record["driver"] = run_text("nvidia-smi", "--query-gpu=driver_version",
                                "--format=csv,noheader").split("\n")[0]
    record["command"] = " ".join(["tests/bench/gpu_bench.py"] + sys.argv[1:])
    if torch_side:
        import torch
        record["torch"] = torch.__version__
        record["cuda"] = torch.version.cuda
        record["matmul_tflops"] = torch_side.matmul_tflops(options.device)
    if jax_side:
        record["jax"] = jax_side.VERSION


# Running -------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rows", default="", help="comma-separated; default: the whole table")
    add("--ragged", action="store_true", help="the variants instead: softmax/127, ...")
    add("--record", default="", help="JSON to write and merge into")
    add("--join", nargs="+", metavar="PART", help="merge records, later ones win; nothing is run")
    add("--autotune", default="all", choices=["none", "some", "all"],
        help="which rows max-autotune compiles too; some: ten with reductions or matmuls, quicker")
    add("--no-torch", action="store_true")
    add("--no-xla", action="store_true")
    add("--seconds", type=float, default=1.5, help="of timing for a row")
    add("--limit", type=int, default=150, help="seconds a row may take in all")
    add("--budget", type=float, default=1e9, help="start no row after so many seconds")
    add("--starts", type=int, default=3, help="processes for cold and warm start; 0: none")
    add("--no-torch-start", dest="torch_start", action="store_false")
    add("--resume", action="store_true", help="leave out rows that the record has")
    add("--trial", action="store_true", help="small instances on the CPU")
    add("--commit", default="")
    add("--program", default=os.path.join(ROOT, "build", "gpu_bench"))
    options = parser.parse_args()
    options.device = "cpu" if options.trial else "cuda"
    options.date = datetime.date.today().isoformat()
    options.commit = (options.commit or run_text("git", "describe", "--always", "--dirty")
                      or "unknown")
    return options


def find_torch(options):
    """The module of PyTorch's side, or None after a line that says why."""
    if options.no_torch:
        return None
    try:
        import torch
        if int(torch.__version__.split(".")[0]) < 2:
            say(f"PyTorch {torch.__version__} has no torch.compile: tiny_compile alone")
            return None
        if not options.trial and not torch.cuda.is_available():
            say("PyTorch sees no GPU: tiny_compile alone")
            return None
        import gpu_torch
        return gpu_torch
    except ImportError as error:
        say(f"no PyTorch ({error}): tiny_compile alone")
        return None


def find_jax(options, torch_side):
    """The module of XLA's side, or None after a line that says why. It gets PyTorch's inputs."""
    if options.no_xla or not torch_side:
        return None
    try:
        import gpu_jax
        gpu_jax.warm_up(options.device)
        return gpu_jax
    except Exception as error:  # not installed, or without this GPU
        say(f"no XLA ({type(error).__name__}: {error})"[:300])
        return None


def names_of(options):
    if options.rows:
        return options.rows.split(",")
    return run_text(options.program, "--ragged" if options.ragged else "--list").split("\n")


def guarded_row(ours, name, options, sides):
    """The row, or what stopped it."""
    def alarm(signum, frame):
        raise TooSlow(f"more than {options.limit} s")
    empty = {"row": name, "date": options.date, "commit": options.commit}
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    scratch = tempfile.mkdtemp(prefix="tc_gpu_bench_", dir=place)
    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(options.limit)
    try:
        return measure_row(ours, name, options, sides, scratch)
    except TooSlow as error:
        ours.stop()
        frames = traceback.extract_tb(error.__traceback__)
        where = [frame.name for frame in frames if frame.filename.startswith(HERE)][1:-1]
        # what it had is lost
        return {**empty, "error": f"too slow: {error}, in {' > '.join(where)}"}
    except Exception as error:  # a row that fails must not take the others with it
        ours_ended = isinstance(error, (BrokenPipeError, json.JSONDecodeError))
        if ours_ended:
            ours.stop()
        return {**empty, "error": f"{type(error).__name__}: {error}"[:400]}
    finally:
        signal.alarm(0)
        shutil.rmtree(scratch, ignore_errors=True)
        if sides[0] and not options.trial:
            import torch
            gc.collect()
            torch.cuda.empty_cache()
            try:
                ours.ask("drop", seconds=60)
            except (Failed, TooSlow, OSError):
                ours.stop()


def default_record(device, date):
    return os.path.join(HERE, "records", f"{device.split()[-1].lower()}-{date}.json")


def main():
    options = parse()
    if options.join:
        return join(options.join, options.record)
    if not os.path.exists(options.program):
        print(f"GPU rows: skipped, there is no {options.program}: make build/gpu_bench")
        return 0
    why = "" if options.trial else run_text(options.program, "--why")
    if why:
        print(f"GPU rows: skipped, {why}")
        return 0
    begun, failed = time.monotonic(), False
    torch_side = find_torch(options)
    ours = Ours(options.program, options.trial)
    if not options.record and not options.trial:
        options.record = default_record(ours.ask("hello")["device"], options.date)
    record = load_record(options.record)
    jax_side = find_jax(options, torch_side)
    describe_machine(record, ours, options, torch_side, jax_side)
    if torch_side:
        say("warming torch.compile up")
        torch_side.warm_up(options.device, ["default"] + (
            ["max_autotune"] if options.autotune != "none" else []))
    done = {r["row"] for r in record["rows"] if "error" not in r} if options.resume else set()
    lines = []
    for name in names_of(options):
        if name in done:
            continue
        if time.monotonic() - begun > options.budget:
            say(f"{name}: left out, the budget of {options.budget:.0f} s is spent")
            continue
        say(f"{name} ({time.monotonic() - begun:.0f} s)")
        row = guarded_row(ours, name, options, (torch_side, jax_side))
        failed |= "error" in row
        put(record, row)
        save_record(record, options.record)
        lines.append(line_of(row))
        say(lines[-1])
    ours.stop()
    print(f"\n{record['device']}, copy {record.get('copy_gbps', 0):.0f} GB/s, "
          f"{options.date}, {options.commit}")
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
