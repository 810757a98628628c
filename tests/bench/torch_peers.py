#!/usr/bin/env python3
"""The workloads of tests/bench/hand.h in PyTorch: eager and torch.compile on the CPU.

Prints a line `row ours_ms eager_ms compiled_ms first_call_s` for each row, medians over at least
nine calls and so many seconds, `-` for what cannot run, after a line `torch VERSION`; or one line
"skipped: why". Ours is the median of three processes (`--ours build/bench`), before, between and
behind PyTorch's two, which sleep meanwhile. Nobody's threads are bound to cores.

    python3 tests/bench/torch_peers.py [--threads 2] [--seconds 0.7] [--ours build/bench] [row ...]
"""
import argparse
import atexit
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# The process that starts this one may be bound to a core by OpenMP.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, range(os.cpu_count()))

os.environ["OMP_PROC_BIND"] = "false"

# What another number of threads compiled must not be found: it is kept in the kernels.
if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="torch_peers_")
    atexit.register(shutil.rmtree, os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)


def median_ms(call, seconds):
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 9 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def ours_ms(row, options):
    """tiny_compile's, in a process of its own; None without --ours, or for a row it has not."""
    if not options.ours:
        return None
    said = subprocess.run([options.ours, "--alone", row, f"--threads={options.threads}",
                           f"--seconds={options.seconds}"], capture_output=True, text=True)
    return float(said.stdout) if said.returncode == 0 else None


def adamw(p, m, v, g, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.01, step=3):
    m = m * beta1 + g * (1 - beta1)
    v = v * beta2 + g * g * (1 - beta2)
    rate = lr / (1 - beta1**step)
    root = (1 - beta2**step) ** -0.5
    return p * (1 - lr * decay) - rate * m / (v.sqrt() * root + epsilon), m, v


def tiny_chain(x):
    for _ in range(10):
        x = x * 1.01 + 0.1
    return x


def mlp(x, w1, b1, w2, b2, w3, b3):
    h = torch.relu(x @ w1 + b1)
    h = torch.relu(h @ w2 + b2)
    return torch.log_softmax(h @ w3 + b3, -1)


def workloads():
    n = 16 << 20
    r = torch.randn
    yield "pointwise", lambda x, w, b: torch.tanh(x * w + b) * torch.sigmoid(x) + 0.5 * x, (
        r(n), r(n), r(n))
    yield "bias_gelu", lambda x, b: F.gelu(x + b), (r(4096, 4096), r(4096))
    yield "softmax", lambda x: torch.softmax(x, -1), (r(4096, 4096),)
    yield "layernorm", lambda x, w, b: F.layer_norm(x, (1024,), w, b), (
        r(8192, 1024), r(1024), r(1024))
    yield "mse", lambda a, b: ((a - b) ** 2).mean(), (r(n), r(n))
    yield "adamw", adamw, (r(n), r(n), r(n).abs(), r(n))
    yield "transpose_add", lambda x, y: x.t() + y, (r(4096, 4096), r(4096, 4096))
    yield "colsum", lambda x: x.sum(0), (r(4096, 4096),)
    yield "mlp", mlp, (r(256, 784), r(784, 1024) * 0.05, r(1024), r(1024, 1024) * 0.05, r(1024),
                       r(1024, 10) * 0.05, r(10))
    yield "tiny_chain", tiny_chain, (r(64),)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--ours", help="the program of tests/bench/bench.cpp")
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("torch", torch.__version__, flush=True)
    with torch.no_grad():
        for name, function, inputs in workloads():
            if options.rows and name not in options.rows:
                continue
            ours = [ours_ms(name, options)]
            line = [f"{median_ms(lambda: function(*inputs), options.seconds):.6f}"]
            ours.append(ours_ms(name, options))
            try:
                compiled = torch.compile(function)
                start = time.perf_counter()
                compiled(*inputs)
                first = time.perf_counter() - start
                line += [f"{median_ms(lambda: compiled(*inputs), options.seconds):.6f}", f"{first:.3f}"]
            except Exception as error:  # no torch.compile, no C++ compiler: eager still counts
                print(f"{name}: {error}".splitlines()[0], file=sys.stderr)
                line += ["-", "-"]
            ours.append(ours_ms(name, options))
            known = [ms for ms in ours if ms is not None]
            line = [name, f"{statistics.median(known):.6f}" if known else "-"] + line
            print(*line, flush=True)


if __name__ == "__main__":
    main()
