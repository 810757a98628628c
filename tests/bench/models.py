#!/usr/bin/env python3
"""Small models on the CPU beside PyTorch: the same weights and data, one run, taking turns.

    python3 tests/bench/models.py                     # 1 thread and all, forward and gradients
    python3 tests/bench/models.py --threads=16 resnet lstm/forward
    python3 tests/bench/models.py --record=tests/bench/records/models-DATE.json

Each row: both sides make the same inputs (checksums compared); a small instance has the
interpreter's bits; the results, tiny_compile's, eager's and torch.compile's, are compared with
eager PyTorch's in float64, and nothing is timed that is further off than LIMIT or four times
eager's own distance. Then the three take turns, a few calls each; figures are medians. First,
processes side by side fill torch.compile's cache (C++, inductor); what is not there after
--ahead seconds is measured beside eager mode alone, and its row says so. Without PyTorch: ours
alone.
"""
import argparse
import datetime
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_bench
from gpu_bench import ROOT, Failed, TooSlow, run_text, say

PROGRAM = os.path.join(ROOT, "build", "models")
# Of |got - want| / |want| of an output. An f32's own error is 6e-8; sums of some thousand and a
# hundred layers' roundings make a thousandfold of it, a norm over few values a little more.
LIMIT = 1e-4


class Ours(gpu_bench.Ours):
    """build/models --serve, with so many threads."""

    def __init__(self, threads):
        super().__init__(PROGRAM, False)
        self.command = ["env", f"OMP_NUM_THREADS={threads}"] + self.command


# PyTorch's side ------------------------------------------------------------------------------

def use_threads(threads, directory):
    """Kernels of torch.compile have the number of threads in them: a cache for each."""
    import gpu_torch
    import torch
    torch.set_num_threads(threads)
    gpu_torch.new_cache(os.path.join(directory, str(threads)))


def compiled_module(module):
    import torch
    return torch.compile(module, dynamic=False)


class Peers:
    def __init__(self, spec, scratch):
        import gpu_peers
        import models_torch
        import torch
        from gpu_torch import Contestant
        self.spec, self.scratch = spec, scratch
        made = [gpu_peers.make_input(s, "cpu") for s in spec["inputs"]]
        self.inputs = [view for view, _ in made]
        self.checksums = [checksum for _, checksum in made]
        torch._dynamo.reset()
        self.contestants = [
            Contestant("eager", models_torch.bound(spec["name"], self.inputs), "cpu")]

    def add_compiled(self):
        import models_torch
        from gpu_torch import Contestant
        call = models_torch.bound(self.spec["name"], self.inputs, compiled_module)
        contestant = Contestant("torch.compile", call, "cpu")
        start = time.perf_counter()
        contestant.call()
        contestant.cold_ms = (time.perf_counter() - start) * 1e3
        self.contestants.append(contestant)

    def errors(self):
        """How far each is from PyTorch's results in float64: the worst of the outputs."""
        import models_torch
        from gpu_peers import outputs_of
        wide = [x.double() if x.is_floating_point() else x for x in self.inputs]
        want = outputs_of(models_torch.bound(self.spec["name"], wide)())
        found = {"tiny_compile": distance(self.ours(), want)}
        for contestant in self.contestants:
            found[contestant.name] = distance(outputs_of(contestant.call()), want)
        return found

    def ours(self):
        import torch
        outputs = []
        for k, out in enumerate(self.spec["outputs"]):
            flat = torch.from_file(os.path.join(self.scratch, f"out{k}"), shared=False,
                                   size=math.prod(out["shape"]), dtype=torch.float32)
            outputs.append(flat.view(out["shape"]))
        return outputs


def distance(got, want):
    """Of each output |got - want| / |want|, the worst. What cancels to nothing, as the gradient
    of a bias before a norm, counts beside the others: as if it had 1e-3 of their size."""
    if [tuple(t.shape) for t in got] != [tuple(t.shape) for t in want]:
        return math.nan
    norms = [float(t.norm()) / math.sqrt(max(1, t.numel())) for t in want]
    least = 1e-3 * max(norms)
    worst = 0.0
    for a, b, norm in zip(got, want, norms):
        off = float((a.double() - b).norm()) / math.sqrt(max(1, b.numel()))
        error = off / (max(norm, least) or 1.0)
        if math.isnan(error):
            return error
        worst = max(worst, error)
    return worst


def compile_ahead(names, threads, directory, options):
    """A process for each row, so many side by side, which fills both sides' caches; the rows
    that were done in time. Gradients, which take longest, come first."""
    waiting = sorted(names, key=lambda name: not name.endswith("gradients"))
    running, done, begun = {}, set(), time.monotonic()
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    while waiting or running:
        for name, process in list(running.items()):
            if process.poll() is not None:
                del running[name]
                done.add(name)
                say(f"  {time.monotonic() - begun:5.1f} s: {name}")
        if time.monotonic() - begun > options.ahead:
            for process in running.values():
                os.killpg(process.pid, signal.SIGKILL)
            return done
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            running[name] = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--compile-alone", name,
                 f"--threads={threads}", f"--cache={directory}"], env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(0.05)
    return done


def compile_alone(name, threads, directory):
    use_threads(threads, directory)
    ours = Ours(1)
    spec = ours.ask("load", name)
    ours.stop()
    Peers(spec, "").add_compiled()


# One row -------------------------------------------------------------------------------------

def measure(ours, name, threads, options, scratch, compiled):
    row = {"row": name, "threads": threads}
    spec = ours.ask("load", name)
    row.update({"what": spec["what"], "operations": spec["operations"]})
    row["interpreter_small"] = ours.ask("check_small")["ok"]
    peers = None
    if options.torch:
        peers = Peers(spec, scratch)
        if peers.checksums != ours.ask("inputs")["checksums"]:
            raise Failed("the two sides' inputs differ")
        try:
            if not compiled:
                raise TimeoutError(f"not ready after {options.ahead} s")
            peers.add_compiled()
        except Exception as error:  # eager still counts
            row["notes"] = [" ".join(f"torch.compile: {error}".split())[:300]]
        ours.ask("save", scratch)
        row["errors"] = peers.errors()
        check_errors(row)
    timers = {"tiny_compile": lambda n: ours.ask("time", n)["ms"]}
    for contestant in peers.contestants if peers else []:
        timers[contestant.name] = lambda n, c=contestant: c.time_calls(n)
    spent, row["rounds"] = gpu_bench.take_turns(timers, options.seconds)
    ours.ask("check_last")
    row["contestants"] = {key: gpu_bench.summary(times) for key, times in spent.items()}
    return row


def check_errors(row):
    limit = max(LIMIT, 4 * row["errors"]["eager"])
    for name, error in row["errors"].items():
        if name != "eager" and not error <= limit:
            raise Failed(f"{name} is off from float64 by {error:.3g}, "
                         f"eager by {row['errors']['eager']:.3g}")


def guarded(ours, name, threads, options, compiled):
    def alarm(signum, frame):
        raise TooSlow(f"more than {options.limit} s")
    scratch = tempfile.mkdtemp(prefix="tc_models_")
    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(options.limit)
    try:
        return measure(ours, name, threads, options, scratch, compiled)
    except (TooSlow, Exception) as error:
        if not isinstance(error, Failed):
            ours.stop()
        return {"row": name, "threads": threads,
                "error": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
    finally:
        signal.alarm(0)
        shutil.rmtree(scratch, ignore_errors=True)


# The record ----------------------------------------------------------------------------------

def ratio(row):
    """The better of PyTorch's two by ours; None where one is missing."""
    times = {name: c["ms"] for name, c in row.get("contestants", {}).items()}
    mine = times.pop("tiny_compile", None)
    return min(times.values()) / mine if mine and times else None


def line_of(row):
    head = f"{row['row']:20s} {row['threads']:3d} thr "
    if "error" in row:
        return head + "FAILED: " + row["error"]
    times = [f"{name} {c['ms']:8.3f}" for name, c in row["contestants"].items()]
    value = ratio(row)
    return head + " ms, ".join(times) + " ms" + (f": {value:5.2f}" if value else "")


def summary(rows):
    lines = []
    for threads in sorted({row["threads"] for row in rows}) + [None]:
        found = [(ratio(r), r) for r in rows if ratio(r) and threads in (None, r["threads"])]
        if not found:
            continue
        mean = math.exp(sum(math.log(value) for value, _ in found) / len(found))
        least, worst = min(found, key=lambda item: item[0])
        lines.append(f"{threads or 'all'} threads: geometric mean {mean:.3f} "
                     f"of {len(found)} rows, least {least:.2f} "
                     f"({worst['row']}, {worst['threads']}), "
                     f"below 0.7: {sum(value < 0.7 for value, _ in found)}")
    failed = [row["row"] for row in rows if "error" in row]
    return lines + ([f"failed: {' '.join(failed)}"] if failed else [])


def machine_name():
    """ "AMD EPYC .., 16 cores": what /proc/cpuinfo calls it."""
    name = "unknown"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def new_record(options):
    from speed_peers import label_of, without_paths
    words = ["tests/bench/models.py"] + sys.argv[1:]
    record = {"date": datetime.date.today().isoformat(), "commit": label_of(options.commit),
              "machine": machine_name(),
              "compiler": run_text("g++", "--version").split("\n")[0],
              "command": without_paths(" ".join(words)), "rows": []}
    if options.torch:
        import torch
        record["torch"] = torch.__version__
    return record


# Running -------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    cores = len(os.sched_getaffinity(0))
    add("rows", nargs="*", help="resnet, or resnet/forward, ..; default: all")
    add("--threads", default=f"1,{cores}" if cores > 1 else "1", help="1,16")
    add("--record", default="", help="JSON to write")
    add("--commit", default="", help="what the record says was measured; default: git's word")
    add("--seconds", type=float, default=0.5, help="of timing a row")
    add("--limit", type=int, default=120, help="seconds a row may take in all")
    add("--jobs", type=int, default=max(1, cores // 2), help="processes that compile ahead")
    add("--ahead", type=float, default=600, help="seconds that they have; 0: eager mode alone")
    add("--no-torch", dest="torch", action="store_false")
    add("--cache", default="", help="where torch.compile's results are kept")
    add("--compile-alone", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def names_of(options):
    names = run_text(PROGRAM, "--list").split()
    wanted = options.rows or names
    return [name for name in names if name in wanted or name.split("/")[0] in wanted]


def measure_all(options, directory):
    record, names, compiled = new_record(options), names_of(options), set()
    for threads in map(int, options.threads.split(",")):
        if options.torch:
            say(f"compiling {len(names)} rows for {threads} threads")
            use_threads(threads, directory)
            compiled = compile_ahead(names, threads, directory, options)
        ours = Ours(threads)
        for name in names:
            record["rows"].append(guarded(ours, name, threads, options, name in compiled))
            gpu_bench.save_record(record, options.record)
            print(line_of(record["rows"][-1]), flush=True)
        ours.stop()
    return record


def main():
    options = parse()
    if not os.path.exists(PROGRAM):
        print(f"models: skipped, there is no {PROGRAM}: make build/models")
        return 0
    directory = options.cache or tempfile.mkdtemp(prefix="tc_models_cache_")
    if options.compile_alone:
        return compile_alone(options.compile_alone, int(options.threads), directory)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")  # jobs are side by side
    options.trial = True  # a CPU is enough
    options.no_torch = not options.torch
    options.torch = gpu_bench.find_torch(options) is not None
    try:
        record = measure_all(options, directory)
    finally:
        if not options.cache:
            shutil.rmtree(directory, ignore_errors=True)
    print("\n" + "\n".join(summary(record["rows"])))
    return 1 if any("error" in row for row in record["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
