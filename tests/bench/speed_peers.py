#!/usr/bin/env python3
"""Speed fuzzing beside PyTorch: random functions of networks, same inputs, taking turns.

    python3 tests/bench/speed_peers.py --seeds=1..20
    python3 tests/bench/speed_peers.py --commit=HASH --shard=2/10 --record=part2.json
    python3 tests/bench/speed_peers.py --patterns --shard=1/4  # named patterns of fixed sizes instead
    python3 tests/bench/speed_peers.py --seeds=7 --print       # the draw as a Python function
    python3 tests/bench/speed_peers.py --seeds=1..100 --target=cpp --small --check  # no times
    python3 tests/bench/speed_chart.py part*.json --record=tests/bench/records/speed-DATE.json

Each draw: both sides make the same inputs (checksums compared); tiny_compile's results are
compared with the interpreter's bits (small), the C++ back end's (full size) and the results of eager
PyTorch in float64; then eager mode, torch.compile, on a third of the draws max-autotune, ours and a device
copy are timed in turns with events. The record is written after every draw. Without PyTorch: ours
alone.
"""
import argparse
import atexit
import datetime
import gc
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_bench
import speed_chart
from gpu_bench import COPIED, HERE, ROOT, Failed, TooSlow, run_text, say

PROGRAM = os.path.join(ROOT, "build", "speed")
PREAMBLE = '''
import math
import torch
import torch.nn.functional as F


def parts(tensors, kinds):
    size = len(tensors) // kinds
    return [list(tensors[k * size:(k + 1) * size]) for k in range(kinds)]


# Steps of optimisers, as torch.optim makes them for many tensors, but functions. Operands are
# the parameters, each kind of state, the gradients; they return new parameters and states.
def adamw(*tensors):
    weights, first, second, gradients = parts(tensors, 4)
    first = torch._foreach_add(torch._foreach_mul(first, 0.9), gradients, alpha=1 - 0.9)
    second = torch._foreach_addcmul(torch._foreach_mul(second, 0.999), gradients, gradients,
                                    1 - 0.999)
    root = 1 / math.sqrt(1 - 0.999**3)
    below = torch._foreach_add(torch._foreach_mul(torch._foreach_sqrt(second), root), 1e-8)
    moves = torch._foreach_mul(torch._foreach_div(first, below), 1e-3 / (1 - 0.9**3))
    weights = torch._foreach_sub(torch._foreach_mul(weights, 1 - 1e-3 * 0.01), moves)
    return *weights, *first, *second


def sgd(*tensors):
    weights, speeds, gradients = parts(tensors, 3)
    gradients = torch._foreach_add(gradients, weights, alpha=1e-4)
    speeds = torch._foreach_add(torch._foreach_mul(speeds, 0.9), gradients)
    return *torch._foreach_add(weights, speeds, alpha=-0.1), *speeds


def lion(*tensors):
    weights, means, gradients = parts(tensors, 3)
    ways = torch._foreach_add(torch._foreach_mul(means, 0.9), gradients, alpha=1 - 0.9)
    moves = torch._foreach_mul(torch._foreach_sign(ways), 1e-4)
    weights = torch._foreach_sub(torch._foreach_mul(weights, 1 - 1e-4 * 0.1), moves)
    means = torch._foreach_add(torch._foreach_mul(means, 0.99), gradients, alpha=1 - 0.99)
    return *weights, *means


def average(*tensors):
    means, weights = parts(tensors, 2)
    return tuple(torch._foreach_add(torch._foreach_mul(means, 0.999), weights, alpha=1 - 0.999))


def clip(*gradients):
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    return tuple(torch._foreach_mul(gradients, (1.0 / (norm + 1e-6)).clamp(max=1.0)))
'''


class Draws(gpu_bench.Ours):
    """build/speed --serve: a command a line, an answer a line."""

    def __init__(self, options):
        super().__init__(PROGRAM, False)
        self.command = [PROGRAM, "--serve", "--target=" + options.target] + (
            ["--small"] if options.small else [])


def names_of(options):
    """[(seed, whether max-autotune compiles it too)]"""
    said = subprocess.run([PROGRAM, "--list"] + chosen(options), capture_output=True, text=True)
    if said.returncode:
        sys.exit(said.stderr.strip())
    return [(name, mark == "1") for name, mark in map(str.split, said.stdout.splitlines())]


def chosen(options):
    words = {"seeds": options.seeds, "commit": options.commit, "shard": options.shard,
             "class": options.family, "draws": options.draws, "target": options.target}
    return [f"--{key}={value}" for key, value in words.items() if value] + (
        ["--small"] if options.small else []) + (
        [] if options.patterns is None else [f"--patterns={options.patterns}"])


# PyTorch's side ------------------------------------------------------------------------------

class Drawn:
    """A draw's inputs on the device and its contestants."""

    def __init__(self, spec, device, scratch, kernels=None):
        import torch
        import gpu_peers
        self.spec, self.device, self.scratch, self.kernels = spec, device, scratch, kernels
        made = [gpu_peers.make_input(s, device) for s in spec["inputs"]]
        self.inputs = [view for view, _ in made]
        self.checksums = [checksum for _, checksum in made]
        self.module = self.defined(spec["python"])
        self.notes = []
        torch._dynamo.reset()
        self.contestants = []
        self.add("eager", self.module["f"])
        self.limits = limits_of(spec)

    def defined(self, text):
        """What the draw's text defines: f, and call, which calls it with the inputs."""
        module = {}
        exec(compile(PREAMBLE + text, f"draw_{self.spec['name']}", "exec"), module)
        return module

    def add(self, name, f):
        from gpu_torch import Contestant
        call = lambda: self.module["call"](f, *self.inputs)
        self.contestants.append(Contestant(name, call, self.device))
        return self.contestants[-1]

    def add_compiled(self, name):
        import gpu_torch
        contestant = self.add(name, gpu_torch.compiled(self.module["f"],
                                                       gpu_torch.MODES.get(name)))
        try:
            contestant.compile(tempfile.mkdtemp(prefix=name + "_", dir=self.scratch),
                               self.kernels and os.path.join(self.kernels, name))
        except BaseException:
            self.contestants.remove(contestant)
            raise

    def ours(self):
        import torch
        import gpu_peers
        outputs = []
        for k, out in enumerate(self.spec["outputs"]):
            count = math.prod(out["shape"])
            flat = torch.from_file(os.path.join(self.scratch, f"out{k}"), shared=False,
                                   size=count, dtype=gpu_peers.DTYPES[out["dtype"]])
            outputs.append(flat.view(out["shape"]).to(self.device))
        return outputs

    def exact(self):
        """Eager PyTorch's results in f64: f's inputs and its casts are f64 where they have
        fractions. None where no input has, or where PyTorch cannot."""
        from gpu_peers import outputs_of
        if not any(x.is_floating_point() for x in self.inputs):
            return None
        module = self.defined(in_float64(self.spec["python"]))
        try:
            wide = [x.double() if x.is_floating_point() else x for x in self.inputs]
            return outputs_of(module["call"](module["f"], *wide))
        except RuntimeError as error:  # no such kernel, or no memory
            self.notes.append(error_text("float64", error)[:300])
            return None

    def errors(self):
        """How far each is from PyTorch's results: ours, and what torch.compile made."""
        from gpu_peers import outputs_of
        exact = self.exact()
        want = outputs_of(self.contestants[0].call())
        found = {"tiny_compile": distances(self.ours(), want, exact)}
        for contestant in self.contestants[1:]:
            found[contestant.name] = distances(outputs_of(contestant.call()), want, exact)
        return found

    def release(self):
        """Gives the memory of a comparison back, so that the other process finds it."""
        if self.device == "cuda":
            import torch
            torch.cuda.empty_cache()


def in_float64(text):
    """x0.to(torch.bfloat16) -> x0.to(torch.float64)"""
    return re.sub(r"torch\.(float32|float16|bfloat16)\b", "torch.float64", text)


def distances(got, want, exact=None):
    """Of each output of floats |got - want| / |want|, where want is PyTorch's in f64 or, if nearer,
    in the draw's dtypes: who sums halves in halves is far from f64, and who rounds between two
    operations as PyTorch does, near to PyTorch. Of others the share that differs. NaN where a shape
    or dtype is another."""
    if [(t.shape, t.dtype) for t in got] != [(t.shape, t.dtype) for t in want]:
        return [math.nan]
    found = []
    for k, (a, b) in enumerate(zip(got, want)):
        if not b.is_floating_point():
            found.append(float((a != b).double().mean()))
            continue
        off = [distance(a, b)] + ([distance(a, exact[k])] if exact else [])
        found.append(min((d for d in off if not math.isnan(d)), default=math.nan))
    return found


def distance(a, b):
    import torch
    a, b = a.double(), b.double()
    off = torch.where((a == b) | (a.isnan() & b.isnan()), 0, a - b).norm()  # infinities too
    norm = b.nan_to_num(0, 0, 0).norm()
    return float(off) / (float(norm) or 1.0)


def limits_of(spec):
    """Of each output. Integers: of two values that are nearly equal the sides may take either."""
    half = any(s["dtype"] in ("f16", "bf16") for s in spec["inputs"])
    near = 3e-2 if half else 1e-4
    return [near if out["dtype"] in ("f16", "bf16", "f32") else 2e-2 for out in spec["outputs"]]


def compare(ours, row, peers):
    ours.ask("save", peers.scratch)
    errors = peers.errors()
    peers.release()
    if peers.notes:
        row.setdefault("notes", []).extend(peers.notes)
    row["errors"] = {name: max(found) for name, found in errors.items()}
    found = errors["tiny_compile"]
    far = [k for k, (off, limit) in enumerate(zip(found, peers.limits)) if not off <= limit]
    row["checks"]["eager"] = not far
    if far:
        raise Failed(f"output {far[0]} is off from PyTorch by {found[far[0]]:.3g}")


# One draw ------------------------------------------------------------------------------------

def check_ours(ours, row, spec, options):
    row["checks"] = checks = {"interpreter_small": ours.ask("check_small")["ok"]}
    if options.small or spec["bytes"] > options.full_bytes:
        checks["full"] = None
        return
    try:
        checks["full"] = ours.ask("check_full")["ok"]  # null: outside the contract
    except Failed as error:
        if "differs" in str(error):
            raise
        checks["full"] = without_paths(f"skipped: {error}".splitlines()[0])


def without_paths(text):
    """Files lose their folders: --record=/tmp/out/part1.json -> --record=part1.json"""
    return re.sub(r"(?<![\w./])(?:/[\w.+@-]+)*/(?=[\w.+@-])", "", text)


def error_text(who, error):
    return without_paths(" ".join(f"{who}: {error}".split()))


def add_contestants(row, peers, autotuned, options, begun):
    for name in ["default"] + (["max_autotune"] if autotuned and options.autotune else []):
        left = options.limit - (time.monotonic() - begun)
        try:
            gpu_bench.add_in_time(lambda: peers.add_compiled(name), max(1, int(left * 0.6)))
        except Exception as error:
            row.setdefault("notes", []).append(error_text(name, error)[:300])


def measure(ours, name, autotuned, options, torch_side, scratch):
    begun = time.monotonic()
    row = {"seed": name, "date": options.date, "commit": options.label}
    spec = ours.ask("load", name)
    row.update({"class": spec["family"], "text": spec["what"]})
    row.update({key: spec[key] for key in ("bytes", "operations", "tiny", "exact")})
    if name in options.checked:
        row["checks"] = dict(options.checked[name])
    else:
        check_ours(ours, row, spec, options)
    peers = None
    if torch_side:
        kernels = options.ahead and os.path.join(options.ahead, name)
        peers = Drawn(spec, options.device, scratch, kernels)
        if peers.checksums != ours.ask("inputs")["checksums"]:
            raise Failed("the two sides' inputs differ")
        if not options.check or options.part:
            add_contestants(row, peers, autotuned, options, begun)
        compare(ours, row, peers)
    if not options.check:
        time_draw(ours, row, spec, peers, torch_side, options)
    row["seconds"] = round(time.monotonic() - begun, 1)
    return row


def time_draw(ours, row, spec, peers, torch_side, options):
    timers = {"tiny_compile": lambda n: ours.ask("time", n)["ms"],
              "copy": lambda n: ours.ask("copy", options.copied, n)["ms"]}
    pause = torch_side.pause_for(options.device) if peers else None
    for contestant in peers.contestants if peers else []:
        timers[contestant.name] = lambda n, c=contestant: c.time_calls(n, pause, spec["tiny"])
    spent, row["rounds"] = gpu_bench.take_turns(timers, options.seconds)
    ours.ask("check_last")
    copy = gpu_bench.summary(spent.pop("copy"))["ms"]
    row["copy_gbps"] = 2 * options.copied / copy * 1e-6
    row["floor_ms"] = floor_ms(row, spec)
    row["contestants"] = entries = {name: gpu_bench.summary(t) for name, t in spent.items()}
    entries["tiny_compile"]["kernels"] = ours.ask("launches")["count"]
    entries["tiny_compile"]["compile_ms"] = spec["compile_ms"]
    for contestant in peers.contestants if peers else []:
        entries[contestant.name]["kernels"] = contestant.kernels()
        entries[contestant.name]["compile_ms"] = contestant.cold_ms


def floor_ms(row, spec):
    """Of bytes, and of a product on a GPU also of its operations."""
    of_bytes = row["bytes"] / row["copy_gbps"] * 1e-6
    if row["exact"]:
        return of_bytes
    half = any(s["dtype"] in ("f16", "bf16") for s in spec["inputs"])
    rate = speed_chart.TERAFLOPS["half" if half else "f32"] * 1e9
    return max(of_bytes, row["operations"] / rate)


def guarded(ours, name, autotuned, options, torch_side):
    """The row, or what stopped it."""
    def alarm(signum, frame):
        raise TooSlow(f"more than {options.limit} s")
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    scratch = tempfile.mkdtemp(prefix="tc_speed_", dir=place)
    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(options.limit)
    try:
        return measure(ours, name, autotuned, options, torch_side, scratch)
    except TooSlow as error:
        ours.stop()
        return {"seed": name, "commit": options.label, "error": f"too slow: {error}"}
    except Exception as error:  # a draw that fails must not take the others with it
        if isinstance(error, (BrokenPipeError, json.JSONDecodeError)):
            ours.stop()
        return {"seed": name, "commit": options.label,
                "error": error_text(type(error).__name__, error)[:400]}
    finally:
        signal.alarm(0)
        shutil.rmtree(scratch, ignore_errors=True)
        clean_up(ours, options, torch_side)


def clean_up(ours, options, torch_side):
    gc.collect()
    if torch_side and options.device == "cuda":
        import torch
        torch.cuda.empty_cache()
    try:
        ours.ask("drop", seconds=60)
    except (Failed, TooSlow, OSError):
        ours.stop()


# Ahead of the turns --------------------------------------------------------------------------

def go_ahead(options, directory):
    """Other processes do all but the timing, a part of the draws each. What stays: Triton's binaries
    in `directory`, and the checks of each draw that passed; the others are checked again."""
    say(f"{options.processes} processes compile and check")
    began, running = time.monotonic(), []
    for k in range(options.processes):
        words = [f"--ahead={directory}", f"--part={k + 1}/{options.processes}",
                 f"--record={directory}/part{k}.json", f"--budget={options.budget / 3}"]
        # Ours are compiled again when it is their turn, and that time is told.
        place = dict(os.environ, TC_CACHE_DIR=os.path.join(directory, "tiny_compile"),
                     TORCHINDUCTOR_COMPILE_THREADS="1", OMP_NUM_THREADS="2")
        running.append(subprocess.Popen([sys.executable, os.path.abspath(__file__)] + sys.argv[1:] +
                                        words, env=place, stdout=subprocess.DEVNULL))
    for process in running:
        process.wait()
    options.ahead = directory
    for k in range(options.processes):
        for row in gpu_bench.load_record(f"{directory}/part{k}.json")["rows"]:
            # What failed beside the others, for want of memory say, is tried again.
            if "error" not in row and not isinstance(row["checks"]["full"], str):
                options.checked[row["seed"]] = row["checks"]
    say(f"{len(options.checked)} draws checked in {time.monotonic() - began:.0f} s")


def part_of(names, part):
    k, n = map(int, part.split("/"))
    return names[k - 1::n]


# Running -------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--target", default="", choices=["", "cuda", "cpp"], help="default: cuda with a GPU")
    add("--seeds", default="", help="A..B,C, for tuning; a record's come from --commit")
    add("--commit", default="",
        help="whose hash names the seeds, and what the rows say was measured: HEAD, or 7 digits "
             "or more")
    add("--patterns", nargs="?", const="", metavar="PART",
        help="the named patterns instead of draws, or those that have PART in their names; --commit "
             "only says what was measured then")
    add("--shard", default="",
        help="K/N: each N-th draw of the commit's, or pattern, from the K-th")
    add("--draws", type=int, default=200, help="of a commit")
    add("--class", dest="family", default="", help="draws of this class alone")
    add("--print", dest="print_only", action="store_true", help="the draws as Python functions")
    add("--record", "--json", default="", help="JSON to write and merge into")
    add("--check", action="store_true", help="results alone, no times")
    add("--small", action="store_true", help="a few thousand elements, as for the interpreter")
    add("--no-torch", action="store_true")
    add("--no-autotune", dest="autotune", action="store_false")
    add("--processes", type=int, default=0,
        help="so many check and compile draws at once before the turns; PyTorch's compile times "
             "are not told then")
    add("--ahead", default="", help=argparse.SUPPRESS)  # such a process: where kernels go,
    add("--part", default="", help=argparse.SUPPRESS)  # and which draws, K/N
    add("--seconds", type=float, default=0.4, help="of timing for a draw")
    add("--limit", type=int, default=75, help="seconds a draw may take in all")
    add("--budget", type=float, default=1e9, help="start no draw after so many seconds")
    add("--full-bytes", type=float, default=3e8,
        help="the C++ back end's bits are asked for up to so many bytes that a call moves")
    return parser.parse_args()


def label_of(commit):
    """The commit that was given: a copy of the tree on another machine describes itself wrongly."""
    if commit not in ("", "HEAD"):
        return commit[:7]
    return run_text("git", "describe", "--always", "--dirty")


def settled(options):
    """The rest of the options, which the machine decides."""
    why = run_text(PROGRAM, "--why")
    options.target = options.target or ("cpp" if why else "cuda")
    options.device = "cuda" if options.target == "cuda" else "cpu"
    options.copied = COPIED if options.target == "cuda" else COPIED >> 3
    options.date = datetime.date.today().isoformat()
    options.label = label_of(options.commit)
    if options.commit == "HEAD":
        options.commit = run_text("git", "rev-parse", "HEAD")
    if options.target == "cpp" and options.full_bytes == 3e8:
        options.full_bytes = 16e6  # there the interpreter's are, element by element
    options.trial = options.target == "cpp"
    options.check = options.check or bool(options.part)
    options.checked = {}
    return why


def describe_machine(record, ours, options, torch_side):
    record["date"], record["commit"] = options.date, options.label
    record["device"] = ours.ask("hello")["device"]
    record["seeds"] = options.commit[:7] or options.seeds
    if options.patterns is not None:
        record["seeds"] = "named patterns"
    record["command"] = without_paths(" ".join(["tests/bench/speed_peers.py"] + sys.argv[1:]))
    if torch_side:
        import torch
        record["torch"] = torch.__version__


def put(record, row):
    record["rows"] = [r for r in record["rows"] if r["seed"] != row["seed"]] + [row]


def measure_all(options, torch_side):
    ours, begun = Draws(options), time.monotonic()
    if options.processes and not options.part:
        directory = tempfile.mkdtemp(prefix="tc_speed_ahead_")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        go_ahead(options, directory)
    record = gpu_bench.load_record(options.record)
    describe_machine(record, ours, options, torch_side)
    names = names_of(options)
    if options.part:
        names = part_of(names, options.part)
    for k, (name, autotuned) in enumerate(names):
        if time.monotonic() - begun > options.budget:
            say(f"{len(names) - k} draws left out: {options.budget:.0f} s are spent")
            break
        if sys.stderr.isatty():
            print(f"\r\033[K{k + 1} of {len(names)}: {name} ({time.monotonic() - begun:.0f} s)",
                  end="", file=sys.stderr, flush=True)
        row = guarded(ours, name, autotuned, options, torch_side)
        put(record, row)
        gpu_bench.save_record(record, options.record)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print(speed_chart.line_of(row), flush=True)
    ours.stop()
    return record


def main():
    options = parse()
    if not os.path.exists(PROGRAM):
        print(f"speed: skipped, there is no {PROGRAM}: make build/speed")
        return 0
    why = settled(options)
    if options.print_only:
        print(PREAMBLE, flush=True)
        return subprocess.run([PROGRAM, "--print"] + chosen(options)).returncode
    if options.target == "cuda" and why:
        print(f"speed: skipped, {why}")
        return 0
    torch_side = gpu_bench.find_torch(options)
    if torch_side and not options.check:
        say("warming torch.compile up")
        torch_side.warm_up(options.device,
                           ["default"] + (["max_autotune"] if options.autotune else []))
    record = measure_all(options, torch_side)
    print("\n" + "\n".join(speed_chart.summary(record)))
    return 1 if any("error" in row for row in record["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
