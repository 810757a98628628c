"""XLA as a contestant of the GPU benchmark: the rows' functions in JAX, under jax.jit, on PyTorch's
inputs (shared by DLPack).

JAX has no events on its streams, so a call's time is the mean over a queue of calls, by the host's
clock: right where a call takes longer on the device than on the host, that is for all rows but
tiny_chain, whose figure is its host's time.
"""
import math
import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch and we need memory too

import jax
import jax.numpy as jnp
import torch
from jax import nn

import gpu_peers
import gpu_torch

jax.config.update("jax_enable_x64", True)  # classes are int64; floats stay what they are

VERSION = jax.__version__
QUEUES = 4  # times as many calls as the others time one by one, so that a wait is little of it


def pointwise(x, w, b):
    return jnp.tanh(x * w + b) * nn.sigmoid(x) + 0.5 * x


def bias_gelu(x, bias):
    return nn.gelu(x + bias, approximate=False)


def softmax(x):
    return nn.softmax(x, -1)


def layernorm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias


def add_rmsnorm(x, r, g):
    h = x + r
    wide = h.astype(jnp.float32)
    scale = jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
    return h, (wide * scale).astype(h.dtype) * g


def mse(a, b):
    return ((a - b) ** 2).mean()


def transpose_add(x, y):
    return x.T + y


def swiglu(g, u):
    return nn.silu(g) * u


def adamw(p, m, v, g):
    m = m * 0.9 + g * (1 - 0.9)
    v = v * 0.999 + g * g * (1 - 0.999)
    rate, root = 1e-3 / (1 - 0.9**3), 1 / math.sqrt(1 - 0.999**3)
    return p * (1 - 1e-3 * 0.01) - rate * m / (jnp.sqrt(v) * root + 1e-8), m, v


def xent(x, target):
    return -jnp.take_along_axis(nn.log_softmax(x, -1), target[:, None], 1).mean()


def mlp(x, w1, b1, w2, b2):
    return nn.gelu(x @ w1.T + b1, approximate=True) @ w2.T + b2


def with_gradients(function):
    """Its result and its inputs' gradients, from the inputs and the result's gradient."""
    def both(*inputs):
        y, pull = jax.vjp(function, *inputs[:-1])
        return (y, *pull(inputs[-1]))
    return both


# Not gpt2_fwd: what is asked of that row is PyTorch's time.
ROWS = {
    "pointwise": pointwise,
    "bias_gelu_f32": bias_gelu,
    "bias_gelu_bf16": bias_gelu,
    "softmax": softmax,
    "softmax_wide": softmax,
    "layernorm": layernorm,
    "add_rmsnorm_bf16": add_rmsnorm,
    "mse": mse,
    "colsum": gpu_peers.colsum,
    "transpose_add": transpose_add,
    "swiglu_bf16": swiglu,
    "adamw": adamw,
    "xent_fwd": xent,
    "xent_fwdbwd": jax.value_and_grad(xent),
    "layernorm_fwdbwd": with_gradients(layernorm),
    "tiny_chain": gpu_peers.tiny_chain,
    "mlp_bf16": mlp,
    "mlp_fwdbwd_bf16": with_gradients(mlp),
}


class JaxContestant(gpu_torch.Contestant):
    """Its call gives PyTorch's tensors, which share JAX's memory; what is timed gives JAX's."""

    def __init__(self, row, inputs, device):
        super().__init__("xla", self.call_for_torch, device)
        self.function = ROWS[row]
        self.inputs = [jax.dlpack.from_dlpack(x) for x in inputs]
        self.jitted = None

    def compile(self):
        """In a process that has compiled before, as the others' is measured."""
        jax.clear_caches()
        self.jitted = jax.jit(lambda *inputs: self.function(*inputs))
        first, again = self.queue(1), self.queue(1)
        self.cold_ms = first - again

    def queue(self, count):
        """Milliseconds a call."""
        start = time.perf_counter()
        for _ in range(count):
            result = self.jitted(*self.inputs)
        jax.block_until_ready(result)
        return (time.perf_counter() - start) / count * 1e3

    def call_for_torch(self):
        result = self.jitted(*self.inputs)
        jax.block_until_ready(result)
        results = result if isinstance(result, (tuple, list)) else [result]
        return [torch.from_dlpack(array) for array in results]

    def time_calls(self, count, pause=None, tiny=False):
        gpu_torch.wait(self.device)
        self.queue(1)
        times = [self.queue(QUEUES * count)]
        self.last = self.call_for_torch()
        return times

    def host_microseconds(self, count, repeats=5):
        times = []
        for _ in range(repeats):
            jax.block_until_ready(self.jitted(*self.inputs))
            start = time.perf_counter()
            for _ in range(count):
                result = self.jitted(*self.inputs)
            times.append((time.perf_counter() - start) / count * 1e6)
            jax.block_until_ready(result)
        return sorted(times)[len(times) // 2]

    def peak_bytes(self, input_bytes):
        return None  # JAX's high water mark cannot be set back


def add(peers):
    """To the contestants of a gpu_torch.TorchRow."""
    contestant = JaxContestant(peers.name, peers.inputs, peers.device)
    contestant.compile()
    peers.contestants.append(contestant)


def warm_up(device):
    """XLA's own start, so that no row pays for it. Throws where it has no such device."""
    x = jnp.ones((64, 64), device=jax.devices("cpu" if device == "cpu" else "cuda")[0])
    jax.block_until_ready(jax.jit(lambda t: nn.softmax(t + 1.0, -1))(x))
