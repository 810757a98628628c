"""PyTorch's side of the GPU benchmark: the rows' functions, and inputs with the same bits as
tiny_compile's (tests/bench/gpu_inputs.h says how they are made)."""
import math

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}
WORD = 0xFFFFFFFF
CHUNK = 1 << 24


def mix(x):
    """lowbias32 on the low 32 bits of int64 numbers."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & WORD
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & WORD
    return x ^ (x >> 16)


def storage_of(spec, device):
    out = torch.empty(spec["count"], dtype=DTYPES[spec["dtype"]], device=device)
    for first in range(0, spec["count"], CHUNK):
        i = torch.arange(first, min(first + CHUNK, spec["count"]), device=device)
        word = mix((i * 0x9E3779B9 + spec["seed"] * 0x85EBCA6B) & WORD)
        if spec["dtype"] == "i64":
            part = word % spec["classes"]
        else:
            step = torch.tensor(spec["scale"], dtype=torch.float32, device=device) * 2.0**-23
            part = ((word >> 8) - 8388608).to(torch.float32) * step
            part = part + torch.tensor(spec["shift"], dtype=torch.float32, device=device)
        out[first:first + CHUNK] = part.to(out.dtype)
    return out


def make_input(spec, device):
    """The view that the function is given, and the checksum of its storage."""
    storage = storage_of(spec, device)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[storage.element_size()]
    checksum = int(storage.view(bits).sum(dtype=torch.int64))
    return storage.as_strided(spec["shape"], spec["strides"], spec["start"]), checksum


# The rows ------------------------------------------------------------------------------------

def pointwise(x, w, b):
    return torch.tanh(x * w + b) * torch.sigmoid(x) + 0.5 * x


def bias_gelu(x, bias):
    return F.gelu(x + bias)


def softmax(x):
    return torch.softmax(x, -1)


def layernorm(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias)


def add_rmsnorm(x, r, g):
    h = x + r
    return h, F.rms_norm(h, g.shape, g, 1e-6)


def mse(a, b):
    return F.mse_loss(a, b)


def colsum(x):
    return x.sum(0)


def transpose_add(x, y):
    return x.t() + y


def swiglu(g, u):
    return F.silu(g) * u


def adamw(p, m, v, g):
    m = m * 0.9 + g * (1 - 0.9)
    v = v * 0.999 + g * g * (1 - 0.999)
    rate, root = 1e-3 / (1 - 0.9**3), 1 / math.sqrt(1 - 0.999**3)
    return p * (1 - 1e-3 * 0.01) - rate * m / (v.sqrt() * root + 1e-8), m, v


def tiny_chain(x):
    for _ in range(10):
        x = x * 1.01 + 0.1
    return x


def xent_fwd(x, target):
    return F.cross_entropy(x, target)


def xent_by_hand(x, target):
    column, m = target[:, None], x.amax(1, True)
    e = (x - m).exp()
    total = e.sum(1, True)
    p = e * (1.0 / total)
    loss = (m + total.log() - x.gather(1, column)).mean()
    hit = torch.arange(x.shape[1], device=x.device)[None] == column
    return loss, torch.where(hit, p - 1.0, p) * (1.0 / x.shape[0])


def layernorm_by_hand(x, w, b, dy):
    centred = x - x.mean(-1, True)
    inverse = torch.rsqrt((centred * centred).mean(-1, True) + 1e-5)
    h, g = centred * inverse, dy * w
    dx = (g - g.mean(-1, True) - h * (g * h).mean(-1, True)) * inverse
    return h * w + b, dx, (dy * h).sum(0), dy.sum(0)


def mlp(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1), approximate="tanh"), w2, b2)


def attention(x, w, heads):
    batch, length, width = x.shape
    q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2)
               for part in F.linear(x, w[0], w[1]).split(width, -1))
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(width // heads))
    allowed = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    y = torch.softmax(scores.masked_fill(~allowed, -math.inf), -1) @ v
    return F.linear(y.transpose(1, 2).reshape(batch, length, width), w[2], w[3])


def gpt2(index, target, wte, wpe, *w):
    width = wte.shape[1]
    heads = 12 if width == 768 else 2
    h = F.embedding(index, wte) + wpe
    for layer in range(0, len(w) - 2, 12):
        p = w[layer:layer + 12]
        h = h + attention(F.layer_norm(h, (width,), p[0], p[1]), p[2:6], heads)
        a = F.linear(F.layer_norm(h, (width,), p[6], p[7]), p[8], p[9])
        h = h + F.linear(F.gelu(a, approximate="tanh"), p[10], p[11])
    h = F.layer_norm(h, (width,), w[-2], w[-1])
    logits = h.reshape(-1, width) @ wte.t()
    wide = torch.promote_types(logits.dtype, torch.float32)
    loss = F.cross_entropy(logits.to(wide), target)
    return loss if width == 768 else (loss, h)  # as gpu_gpt2.cpp


ROWS = {
    "pointwise": pointwise,
    "bias_gelu_f32": bias_gelu,
    "bias_gelu_bf16": bias_gelu,
    "softmax": softmax,
    "softmax_wide": softmax,
    "layernorm": layernorm,
    "add_rmsnorm_bf16": add_rmsnorm,
    "mse": mse,
    "colsum": colsum,
    "transpose_add": transpose_add,
    "swiglu_bf16": swiglu,
    "adamw": adamw,
    "xent_fwd": xent_fwd,
    "xent_fwdbwd": xent_fwd,
    "layernorm_fwdbwd": layernorm,
    "tiny_chain": tiny_chain,
    "mlp_bf16": mlp,
    "mlp_fwdbwd_bf16": mlp,
    "gpt2_fwd": gpt2,
    "gpt2_fwdbwd": gpt2,
}

# Rows with gradients: PyTorch's by autograd, and in another contestant written out as in C++.
BY_HAND = {"xent_fwdbwd": xent_by_hand, "layernorm_fwdbwd": layernorm_by_hand}


def xent_gradient(f, x, target):
    leaf = x.detach().requires_grad_()
    loss = f(leaf, target)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]


def given_gradient(f, *inputs):
    """The last of the inputs is the result's gradient."""
    *rest, dy = inputs
    leaves = [t.detach().requires_grad_() for t in rest]
    y = f(*leaves)
    return (y.detach(), *torch.autograd.grad(y, leaves, dy))


def gpt2_gradients(f, index, target, *weights):
    leaves = [w.detach().requires_grad_() for w in weights]
    result = f(index, target, *leaves)
    loss = outputs_of(result)[0]  # the small instance gives its hidden state too
    return (loss.detach(), *torch.autograd.grad(loss, leaves))


GRADIENTS = {"xent_fwdbwd": xent_gradient, "gpt2_fwdbwd": gpt2_gradients, "layernorm_fwdbwd": given_gradient,
             "mlp_fwdbwd_bf16": given_gradient}

# --autotune some: where max-autotune has most to choose, reductions and matmuls.
AUTOTUNED = {"bias_gelu_bf16", "softmax", "softmax_wide", "mse", "colsum", "xent_fwd",
             "xent_fwdbwd", "layernorm_fwdbwd", "mlp_bf16", "mlp_fwdbwd_bf16"}


def function_of(row):
    return ROWS[row.split("/")[0]]


def bound(row, function, inputs):
    """A call of the row: gradients by autograd where it has some."""
    if row in GRADIENTS:
        return lambda: GRADIENTS[row](function, *inputs)
    return lambda: function(*inputs)


def outputs_of(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]
