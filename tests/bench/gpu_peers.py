"""PyTorch's side of the GPU benchmark: the rows' functions, and inputs with the same bits as
tiny_compile's (tests/bench/gpu_inputs.h says how they are made)."""
import math

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
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
        if spec["dtype"] in ("i64", "i32", "i8", "u8"):
            part = word % spec["classes"] + int(spec["shift"])
        else:
            step = torch.tensor(spec["scale"], dtype=torch.float32, device=device) * 2.0**-23
            part = ((word >> 8) - 8388608).to(torch.float32) * step
            part = part + torch.tensor(spec["shift"], dtype=torch.float32, device=device)
        out[first:first + CHUNK] = part.to(out.dtype)
    return out


def make_input(spec, device):
    """The view that the function is given, and the checksum of its storage."""
    storage = storage_of(spec, device)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[storage.element_size()]
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


def linear_xent(x, w, target):
    logits = F.linear(x, w)
    return F.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), target)


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


def attend_in_parts(q, k, v):
    length = q.shape[-2]
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
    allowed = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
    return torch.softmax(scores.masked_fill(~allowed, -math.inf), -1) @ v


def attend_at_once(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention(x, w, heads, attend):
    batch, length, width = x.shape
    q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2)
               for part in F.linear(x, w[0], w[1]).split(width, -1))
    return F.linear(attend(q, k, v).transpose(1, 2).reshape(batch, length, width), w[2], w[3])


def halved(weight):
    """What the network reads: bf16, of the f64 reference all of it."""
    return weight if weight.dtype == torch.float64 else weight.to(torch.bfloat16)


def gpt2(index, target, *weights, attend=attend_in_parts):
    wte, wpe, *w = (halved(weight) for weight in weights)
    width = wte.shape[1]
    heads = 12 if width == 768 else 2
    h = F.embedding(index, wte) + wpe
    for layer in range(0, len(w) - 2, 12):
        p = w[layer:layer + 12]
        h = h + attention(F.layer_norm(h, (width,), p[0], p[1]), p[2:6], heads, attend)
        a = F.linear(F.layer_norm(h, (width,), p[6], p[7]), p[8], p[9])
        h = h + F.linear(F.gelu(a, approximate="tanh"), p[10], p[11])
    h = F.layer_norm(h, (width,), w[-2], w[-1])
    logits = h.reshape(-1, width) @ wte.t()
    wide = torch.promote_types(logits.dtype, torch.float32)
    loss = F.cross_entropy(logits.to(wide), target)
    return loss if width == 768 else (loss, h)  # as gpu_gpt2.cpp


def gpt2_at_once(*inputs):
    return gpt2(*inputs, attend=attend_at_once)


def clipped_adamw(step, weights, first, second, gradients):
    """A step of AdamW on all weights at once, as torch.optim makes it for many tensors, but of
    functions; gpu_gpt2.cpp's rate 1e-3, decay 0.1, norm at most 1."""
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    step = step + 1
    t = step.double()
    size, root = (x.to(norm.dtype) for x in (1e-3 / (1.0 - 0.9**t), (1.0 - 0.999**t).sqrt()))
    gradients = torch._foreach_mul(gradients, scale)
    first = torch._foreach_lerp(first, gradients, 1 - 0.9)
    second = torch._foreach_addcmul(torch._foreach_mul(second, 0.999), gradients, gradients,
                                    1 - 0.999)
    below = torch._foreach_add(torch._foreach_div(torch._foreach_sqrt(second), root), 1e-8)
    moves = torch._foreach_mul(torch._foreach_div(first, below), size)
    weights = torch._foreach_sub(torch._foreach_mul(weights, 1 - 1e-3 * 0.1), moves)
    return weights, first, second, step


# A row is what makes its call from `compiled`, which is torch.compile or, in eager mode, nothing: a
# function of the inputs, whose parts outside `compiled` are autograd's.

def whole(function):
    return lambda compiled: compiled(function)


def xent_gradient(function):
    def make(compiled):
        f = compiled(function)

        def call(x, target):
            leaf = x.detach().requires_grad_()
            loss = f(leaf, target)
            return loss.detach(), torch.autograd.grad(loss, leaf)[0]
        return call
    return make


def linear_xent_gradients(compiled):
    f = compiled(linear_xent)

    def call(x, w, target):
        leaves = [t.detach().requires_grad_() for t in (x, w)]
        loss = f(*leaves, target)
        return (loss.detach(), *torch.autograd.grad(loss, leaves))
    return call


def given_gradient(function):
    """The last of the inputs is the result's gradient."""
    def make(compiled):
        f = compiled(function)

        def call(*inputs):
            *rest, dy = inputs
            leaves = [t.detach().requires_grad_() for t in rest]
            y = f(*leaves)
            return (y.detach(), *torch.autograd.grad(y, leaves, dy))
        return call
    return make


def gpt2_gradients(function):
    def make(compiled):
        f = compiled(function)

        def call(index, target, *weights):
            leaves = [w.detach().requires_grad_() for w in weights]
            result = f(index, target, *leaves)
            loss = outputs_of(result)[0]  # the small instance gives its hidden state too
            return (loss.detach(), *torch.autograd.grad(loss, leaves))
        return call
    return make


def gpt2_step(function):
    def make(compiled):
        gradients, update = gpt2_gradients(function)(compiled), compiled(clipped_adamw)

        def call(index, target, *state):
            *tensors, step = state
            size = len(tensors) // 3
            weights, first, second = (tensors[k * size:(k + 1) * size] for k in range(3))
            loss, *slopes = gradients(index, target, *weights)
            weights, first, second, step = update(step, weights, first, second, slopes)
            return (loss, *weights, *first, *second, step)
        return call
    return make


def clip_adamw(compiled):
    update = compiled(clipped_adamw)

    def call(*state):
        *tensors, step = state
        size = len(tensors) // 4
        parts = (tensors[k * size:(k + 1) * size] for k in range(4))
        weights, first, second, step = update(step, *parts)
        return (*weights, *first, *second, step)
    return call


ROWS = {
    "pointwise": whole(pointwise),
    "bias_gelu_f32": whole(bias_gelu),
    "bias_gelu_bf16": whole(bias_gelu),
    "softmax": whole(softmax),
    "softmax_wide": whole(softmax),
    "layernorm": whole(layernorm),
    "add_rmsnorm_bf16": whole(add_rmsnorm),
    "mse": whole(mse),
    "colsum": whole(colsum),
    "transpose_add": whole(transpose_add),
    "swiglu_bf16": whole(swiglu),
    "adamw": whole(adamw),
    "xent_fwd": whole(xent_fwd),
    "xent_fwdbwd": xent_gradient(xent_fwd),
    "layernorm_fwdbwd": given_gradient(layernorm),
    "tiny_chain": whole(tiny_chain),
    "mlp_bf16": whole(mlp),
    "mlp_fwdbwd_bf16": given_gradient(mlp),
    "gpt2_fwd": whole(gpt2),
    "gpt2_fwdbwd": gpt2_gradients(gpt2),
    "gpt2_step": gpt2_step(gpt2),
    "linear_xent_bf16": linear_xent_gradients,
    "logits_xent_bf16": linear_xent_gradients,
    "clip_adamw": clip_adamw,
}

# Compiled in other ways, for the record: the gradient written out as in C++; attention in one call.
OTHERS = {
    "xent_fwdbwd": {"by_hand": whole(xent_by_hand)},
    "layernorm_fwdbwd": {"by_hand": whole(layernorm_by_hand)},
    "gpt2_fwd": {"sdpa": whole(gpt2_at_once)},
    "gpt2_fwdbwd": {"sdpa": gpt2_gradients(gpt2_at_once)},
    "gpt2_step": {"sdpa": gpt2_step(gpt2_at_once)},
}

# --autotune some: where max-autotune has most to choose, reductions and matmuls.
AUTOTUNED = {"bias_gelu_bf16", "softmax", "softmax_wide", "mse", "colsum", "xent_fwd",
             "xent_fwdbwd", "layernorm_fwdbwd", "mlp_bf16", "mlp_fwdbwd_bf16"}


def others_of(row):
    """Contestants of the row beside the function itself, by name."""
    return OTHERS.get(row.split("/")[0], {})


def bound(row, contestant, compiled, inputs):
    """A call of the row with these inputs."""
    make = others_of(row).get(contestant, ROWS[row.split("/")[0]])
    call = make(compiled)
    return lambda: call(*inputs)


def outputs_of(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]
