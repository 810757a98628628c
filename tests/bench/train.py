"""Does our training follow PyTorch's, and how long is a step beside its?

    python3 tests/bench/train.py [--steps 300] [--threads 2] [--record tests/bench/records/train-DATE.json]

A checkpoint of step 0 is written with PyTorch's initial weights; `build/train --resume` goes on from there,
PyTorch from the same weights over the same windows with the same hyper-parameters. The mean loss of every
50 steps must agree within 1 %. Then step times: medians of warm steps of ours, of eager PyTorch and of
torch.compile, each in a process of its own, ours before and behind theirs. Needs PyTorch and build/train (make build/train).
"""
import argparse
import datetime
import glob
import json
import math
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTEXT, LAYERS, HEADS, WIDTH, BATCH, SEED = 128, 2, 4, 128, 8, 1
RATE, DECAY, CLIP = 3e-3, 0.1, 1.0
SIZES = {'f32': 4, 'i64': 8, 'f64': 8}


def corpus():
    lessons = sorted(glob.glob(os.path.join(ROOT, 'lessons', '[0-9]*', 'README.md')))
    return b''.join(open(page, 'rb').read() for page in [os.path.join(ROOT, 'README.md')] + lessons)


def mark(data):  # FNV-1a, as a signed number
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value - (1 << 64) if value >> 63 else value


def philox(seed, draw, index):  # base/prelude_random.h
    k0, k1 = seed & 0xffffffff, seed >> 32
    c = [(index >> 2) & 0xffffffff, index >> 34, draw & 0xffffffff, draw >> 32]
    for _ in range(10):
        p, q = 0xd2511f53 * c[0], 0xcd9e8d57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k0, q & 0xffffffff, (p >> 32) ^ c[3] ^ k1, p & 0xffffffff]
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return c[index & 3]


def starts_of(step, held_from):
    return [philox(SEED, step, row) * (held_from - CONTEXT) >> 32 for row in range(BATCH)]


def rate_at(step, steps):
    warmup, last = int(0.05 * steps), 0.05 * RATE
    if step < warmup:
        return RATE * (step + 1) / warmup
    return last + (RATE - last) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def save_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, (kind, shape, data) in sorted(tensors.items()):
        header[name] = {'dtype': kind.upper(), 'shape': shape, 'data_offsets': [offset, offset + len(data)]}
        offset += len(data)
        blobs.append(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as out:
        out.write(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def load_losses(path):
    with open(path, 'rb') as file:
        length = struct.unpack('<Q', file.read(8))[0]
        begin, end = json.loads(file.read(length))['losses']['data_offsets']
        file.seek(8 + length + begin)
        return list(struct.unpack(f'<{(end - begin) // 4}f', file.read(end - begin)))


def make_model():
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention, self.attention_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = self.attention(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attention_out(y.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            for name, p in self.named_parameters():
                if p.dim() > 1:
                    residual = '_out.' in name or '.down.' in name
                    nn.init.normal_(p, std=0.02 / (math.sqrt(2 * LAYERS) if residual else 1))
                elif 'norm' not in name:
                    nn.init.zeros_(p)

        def forward(self, x, y):
            h = self.tokens(x) + self.positions.weight
            for block in self.blocks:
                h = block(h)
            scores = self.norm(h) @ self.tokens.weight.T
            return F.cross_entropy(scores.flatten(0, 1), y.flatten())

    torch.manual_seed(SEED)
    return Gpt()


def checkpoint(path, model, steps, data):
    def kept(tensor):
        return 'f32', list(tensor.shape), tensor.detach().numpy().tobytes()

    def packed(kind, letter, values):
        return kind, [len(values)], struct.pack(f'<{len(values)}{letter}', *values)

    tensors = {
        'setup': packed('i64', 'q', [256, CONTEXT, LAYERS, HEADS, WIDTH, 1, steps, BATCH, SEED, mark(data)]),
        'rates': packed('f64', 'd', [RATE, DECAY, CLIP]),
        'losses': packed('f32', 'f', []),
        'adam.step': ('i64', [], struct.pack('<q', 0))}
    for name, p in model.named_parameters():
        tensors['gpt.' + name] = kept(p)
        for moment in ('first', 'second'):
            tensors[f'adam.{moment}.{name}'] = kept(p * 0)
    save_safetensors(path, tensors)


def run_torch(steps, threads, compiled):
    """In this process: losses and seconds of each step."""
    import torch
    torch.set_num_threads(threads)
    data = corpus()
    held_from = len(data) - len(data) // 10
    text = torch.tensor(list(data))
    model = make_model()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimiser = torch.optim.AdamW([{'params': decayed, 'weight_decay': DECAY},
                                   {'params': others, 'weight_decay': 0}], betas=(0.9, 0.99), fused=True)
    loss_of = torch.compile(model) if compiled else model
    losses, seconds = [], []
    for step in range(steps):
        begin = time.perf_counter()
        for group in optimiser.param_groups:
            group['lr'] = rate_at(step, steps)
        starts = starts_of(step, held_from)
        x = torch.stack([text[s:s + CONTEXT] for s in starts])
        y = torch.stack([text[s + 1:s + CONTEXT + 1] for s in starts])
        optimiser.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def torch_process(steps, threads, compiled):
    words = [sys.executable, __file__, '--child', '--steps', str(steps), '--threads', str(threads)]
    text = subprocess.run(words + (['--compiled'] if compiled else []), check=True, capture_output=True,
                          env={**os.environ, 'OMP_NUM_THREADS': str(threads)}, text=True).stdout
    return json.loads(text.splitlines()[-1])


def ours(steps, threads, data):
    """Losses, and the median of a step in ms."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'gpt.safetensors')
        checkpoint(path, make_model(), steps, data)
        told = subprocess.run([os.path.join(ROOT, 'build', 'train'), '--resume', '--device=cpu', '--checkpoint=' + path,
                               f'--every={steps}'], check=True, capture_output=True, cwd=ROOT, text=True,
                              env={**os.environ, 'OMP_NUM_THREADS': str(threads)}).stdout
        return load_losses(path), float(re.search(r'of a step: ([0-9.]+) ms', told).group(1))


def means(losses):
    return [statistics.fmean(losses[k:k + 50]) for k in range(0, len(losses) - 49, 50)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--timed', type=int, default=60, help='steps of each process that is timed')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--record')
    parser.add_argument('--child', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('--compiled', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run_torch(options.steps, options.threads, options.compiled)))
        return 0
    import torch
    data = corpus()
    our_losses, _ = ours(options.steps, options.threads, data)
    their_losses, _ = torch_process(options.steps, options.threads, False)
    a, b = means(our_losses), means(their_losses)
    worst = max(abs(x / y - 1) for x, y in zip(a, b))
    print('mean loss of every 50 steps, nats\n  ours    ' + ' '.join(f'{x:.4f}' for x in a) +
          '\n  PyTorch ' + ' '.join(f'{x:.4f}' for x in b) + f'\n  worst difference {100 * worst:.3f} %')
    times = {'ours': [ours(options.timed, options.threads, data)[1]]}
    for name in ('eager', 'torch.compile'):
        seconds = torch_process(options.timed, options.threads, name != 'eager')[1]
        times[name] = [1e3 * statistics.median(seconds[options.timed // 3:])]
    times['ours'].append(ours(options.timed, options.threads, data)[1])
    for name, ms in times.items():
        print(f'  {name:14s} ' + ' '.join(f'{x:.1f}' for x in ms) + ' ms a step')
    if options.record:
        record = {'date': str(datetime.date.today()), 'torch': torch.__version__, 'threads': options.threads,
                  'layers': LAYERS, 'width': WIDTH, 'context': CONTEXT, 'batch': BATCH,
                  'losses': {'ours': our_losses, 'torch': their_losses}, 'worst_of_50': worst,
                  'step_ms': times}
        with open(options.record, 'w') as out:
            json.dump(record, out)
            out.write('\n')
    return 0 if worst < 0.01 else 1


if __name__ == '__main__':
    sys.exit(main())
