#!/usr/bin/env python3
"""The workloads of tests/bench/hand.h in PyTorch: eager and torch.compile on the CPU.

Prints one JSON object {"torch": version, "threads": n, "rows": {name: {"eager_ms": x,
"compiled_ms": y, "first_call_s": z}}}, medians over calls; or one line "skipped: why".

    python3 tests/bench/torch_peers.py [--threads 2] [--repeats 15]
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)


def median_ms(call, repeats):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


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
    yield "layer_norm", lambda x, w, b: F.layer_norm(x, (1024,), w, b), (
        r(8192, 1024), r(1024), r(1024))
    yield "mse", lambda a, b: ((a - b) ** 2).mean(), (r(n), r(n))
    yield "adamw", adamw, (r(n), r(n), r(n).abs(), r(n))
    yield "mlp", mlp, (r(256, 784), r(784, 1024) * 0.05, r(1024), r(1024, 1024) * 0.05, r(1024),
                       r(1024, 10) * 0.05, r(10))
    yield "tiny_chain", tiny_chain, (r(64),)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = {}
    with torch.no_grad():
        for name, function, inputs in workloads():
            repeats = options.repeats * (100 if name == "tiny_chain" else 1)
            row = {"eager_ms": median_ms(lambda: function(*inputs), repeats)}
            if hasattr(torch, "compile"):
                try:
                    compiled = torch.compile(function)
                    start = time.perf_counter()
                    compiled(*inputs)
                    row["first_call_s"] = time.perf_counter() - start
                    row["compiled_ms"] = median_ms(lambda: compiled(*inputs), repeats)
                except Exception as error:  # no C++ compiler, say: eager still counts
                    row["compile_error"] = str(error).splitlines()[0]
            rows[name] = row
    print(json.dumps({"torch": torch.__version__, "threads": options.threads, "rows": rows},
                     indent=1))


if __name__ == "__main__":
    main()
