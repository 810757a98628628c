"""PyTorch as contestants of the GPU benchmark: compiled, checked against float64, timed.

As a program: `gpu_torch.py SPEC.json DEVICE CONTESTANT` makes the first compiled call of a fresh
process (the inductor cache is where TORCHINDUCTOR_CACHE_DIR says) and prints its milliseconds
beyond those of a second call.
"""
import atexit
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import gpu_peers

PAUSE_BYTES = 1 << 30
PAUSE_MS = 0.2  # a fill of as many takes longer on every GPU so far


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def compiled(function, mode=None):
    return torch.compile(function, dynamic=False, **({"mode": mode} if mode else {}))


def not_compiled(function):
    return function


MODES = {"max_autotune": "max-autotune-no-cudagraphs"}  # of contestants; the others have none


def compiled_call(row, name, inputs):
    return gpu_peers.bound(row, name, lambda f: compiled(f, MODES.get(name)), inputs)


def new_cache(directory, kernels=None):
    """Nothing that was compiled before is found again, neither on disk nor in this process, but for
    Triton's binaries in `kernels`. What autotuning found lies beside inductor's code, not there."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = directory
    os.environ["TRITON_CACHE_DIR"] = kernels or os.path.join(directory, "triton")
    try:
        from torch._inductor.codecache import FxGraphCache, PyCodeCache
        PyCodeCache.cache_clear()
        FxGraphCache.clear()
    except Exception as error:  # other versions keep other caches: the disk's is what counts
        print(f"inductor's caches in memory: {error}", file=sys.stderr)


class Contestant:
    def __init__(self, name, call, device):
        self.name, self.call, self.device = name, call, device
        self.cold_ms = None
        self.directory = None
        self.last = None

    def compile(self, directory, kernels=None):
        """With `kernels` (see new_cache) the time is nobody's."""
        self.directory = directory
        new_cache(directory, kernels)
        first, again = self.seconds(), self.seconds()
        self.cold_ms = None if kernels else (first - again) * 1e3

    def seconds(self):
        wait(self.device)
        start = time.perf_counter()
        self.call()
        wait(self.device)
        return time.perf_counter() - start

    def time_calls(self, count, pause=None, tiny=False):
        """Milliseconds on the device. A fill of `pause` before each tiny call, or fills before all
        of them, as long as the host takes to queue them: it never waits for the host."""
        self.call()
        start = time.perf_counter()
        self.call()
        host_ms = (time.perf_counter() - start) * 1e3
        if self.device != "cuda":
            times = [self.seconds() * 1e3 for _ in range(count)]
            self.last = self.call()
            return times
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                  for _ in range(count)]
        if pause is not None and not tiny:
            for _ in range(min(200, int(1.5 * count * host_ms / PAUSE_MS) + 1)):
                pause.zero_()
        for start, stop in events:
            if tiny and pause is not None:
                pause.zero_()
            start.record()
            self.last = self.call()
            stop.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(stop) for start, stop in events]

    def host_microseconds(self, count, repeats=5):
        times = []
        for _ in range(repeats):
            self.call()
            wait(self.device)
            start = time.perf_counter()
            for _ in range(count):
                self.call()
            times.append((time.perf_counter() - start) / count * 1e6)
            wait(self.device)
        return statistics.median(times)

    def peak_bytes(self, input_bytes):
        if self.device != "cuda":
            return None
        self.last = None
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = self.call()
        torch.cuda.synchronize()
        del result
        return torch.cuda.max_memory_allocated() - before + input_bytes

    def kernels(self):
        """Kernels, copies and fills that one call puts on the device."""
        if self.device != "cuda":
            return None
        try:
            from torch.profiler import ProfilerActivity, profile
            with profile(activities=[ProfilerActivity.CUDA]) as trace:
                self.call()
                torch.cuda.synchronize()
            names = [event.name for event in trace.events()
                     if event.device_type == torch.autograd.DeviceType.CUDA
                     and not getattr(event, "is_user_annotation", False)]
            return len([n for n in names if not n.startswith(("##", "Torch-Compiled"))])
        except Exception as error:
            print(f"kernels of {self.name} not counted: {error}", file=sys.stderr)
            return None

    def warm_ms(self, spec_path):
        """The first compiled call of another process that finds this one's cache."""
        said = subprocess.run(
            [sys.executable, os.path.abspath(__file__), spec_path, self.device,
             self.name], capture_output=True, text=True, timeout=120,
            env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=self.directory,
                     TRITON_CACHE_DIR=os.path.join(self.directory, "triton")))
        if said.returncode != 0:
            raise RuntimeError(said.stderr.strip().splitlines()[-1:] or "no word")
        return float(said.stdout.split()[-1])


class TorchRow:
    """A row's inputs on the device, its contestants and their distance from float64."""

    def __init__(self, spec, device, scratch):
        self.spec, self.device, self.scratch = spec, device, scratch
        self.name = spec["name"]
        made = [gpu_peers.make_input(s, device) for s in spec["inputs"]]
        self.inputs = [view for view, _ in made]
        self.checksums = [checksum for _, checksum in made]
        self.contestants = []
        torch._dynamo.reset()
        self.add("eager", gpu_peers.bound(self.name, "eager", not_compiled, self.inputs))

    def add(self, name, call):
        self.contestants.append(Contestant(name, call, self.device))
        return self.contestants[-1]

    def add_compiled(self, name):
        contestant = self.add(name, compiled_call(self.name, name, self.inputs))
        try:
            contestant.compile(tempfile.mkdtemp(prefix=name + "_", dir=self.scratch))
        except BaseException:
            self.contestants.remove(contestant)
            raise

    def modes(self, autotune):
        """Which compiled contestants this row has."""
        names = ["default", *gpu_peers.others_of(self.name)]
        if autotune == "all" or (autotune == "some" and self.name in gpu_peers.AUTOTUNED):
            names.append("max_autotune")
        return names

    def reference(self):
        wide = [x.double() if x.is_floating_point() else x for x in self.inputs]
        result = gpu_peers.bound(self.name, "float64", not_compiled, wide)()
        return [t.double() for t in gpu_peers.outputs_of(result)]

    def errors(self, directory):
        """|ours - f64| / |f64| and the contestants', the largest over the outputs."""
        self.want = self.reference()
        found = {"tiny_compile": distance(self.load_outputs(directory, self.want), self.want)}
        for contestant in self.contestants:
            got = gpu_peers.outputs_of(contestant.call())
            found[contestant.name] = distance(got, self.want)
        return found

    def check_last(self, errors):
        """The last timed calls gave what the first ones did."""
        for contestant in self.contestants:
            error = distance(gpu_peers.outputs_of(contestant.last), self.want)
            if not error <= 1.01 * errors[contestant.name] + 1e-9:
                raise ValueError(f"{contestant.name}: the last timed call is off by {error:.3g}")
        self.want = None

    def load_outputs(self, directory, like):
        outputs = []
        for k, (out, t) in enumerate(zip(self.spec["outputs"], like)):
            flat = torch.from_file(os.path.join(directory, f"out{k}"), shared=False,
                                   size=t.numel(), dtype=gpu_peers.DTYPES[out["dtype"]])
            outputs.append(flat.view(out["shape"]).to(self.device))
        return outputs

    def limit(self):
        """Less for a bf16 row that returns a mean alone, which hides most of an error: GPT-2's loss
        without its mask is off by 1.6e-4."""
        half = any(s["dtype"] == "bf16" for s in self.spec["inputs"])
        mean = all(not s["shape"] for s in self.spec["outputs"])
        return 1e-5 if not half else 3e-5 if mean else 1e-2


def distance(got, want):
    if [tuple(t.shape) for t in got] != [tuple(t.shape) for t in want]:
        return float("nan")
    worst = 0.0
    for a, b in zip(got, want):
        norm = float(b.norm()) or 1.0
        error = float((a.double() - b).norm()) / norm
        if math.isnan(error):
            return error
        worst = max(worst, error)
    return worst


def pause_for(device):
    if device != "cuda":
        return None
    return torch.empty(PAUSE_BYTES, dtype=torch.uint8, device=device)


def warm_up(device, modes):
    """torch.compile's own imports and worker processes, so that no row pays for them. The cache
    stays until the end: inductor keeps paths of what it made first (a precompiled header)."""
    directory = tempfile.mkdtemp(prefix="tc_gpu_bench_first_")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    new_cache(directory)
    for mode in {MODES.get(name) for name in modes}:
        x = torch.ones(64, 64, device=device)
        compiled(lambda t: torch.softmax(t + 1.0, -1), mode)(x)
    wait(device)


def matmul_tflops(device, n=8192):
    if device != "cuda":
        return None
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    times = Contestant("matmul", lambda: a @ b, device).time_calls(20)
    return 2 * n**3 / statistics.median(times) * 1e-9


def start(spec_path, device, name):
    with open(spec_path) as f:
        spec = json.load(f)
    inputs = []
    for s in spec["inputs"]:
        storage = torch.zeros(s["count"], dtype=gpu_peers.DTYPES[s["dtype"]], device=device)
        inputs.append(storage.as_strided(s["shape"], s["strides"], s["start"]))
    call = compiled_call(spec["name"], name, inputs)
    contestant = Contestant(name, call, device)
    wait(device)
    first, again = contestant.seconds(), contestant.seconds()
    print((first - again) * 1e3)


if __name__ == "__main__":
    start(*sys.argv[1:4])
