"""The models of tests/bench/models_*.cpp in PyTorch: a class each, of the same name, whose
parameters stand in the order of the C++ struct's tensors."""
import torch
import torch.nn.functional as F
from torch import nn


class ConvNorm(nn.Sequential):
    """Batch norm by the batch's own statistics, as in training, without running ones."""

    def __init__(self, inputs, outputs, kernel, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs, track_running_stats=False))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = ConvNorm(inputs, outputs, 3, stride)
        self.second = ConvNorm(outputs, outputs, 3)
        self.shortcut = (ConvNorm(inputs, outputs, 1, stride) if inputs != outputs
                         else nn.Identity())

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = ConvNorm(3, width, 7, 2)
        self.blocks = nn.Sequential(ResidualBlock(width, width, 1),
                                    ResidualBlock(width, 2 * width, 2),
                                    ResidualBlock(2 * width, 4 * width, 2))
        self.head = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class InvertedBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        wide = 4 * inputs
        self.up = ConvNorm(inputs, wide, 1)
        self.each = ConvNorm(wide, wide, 3, stride, wide)
        self.down = ConvNorm(wide, outputs, 1)

    def forward(self, x):
        y = self.down(F.relu6(self.each(F.relu6(self.up(x)))))
        return x + y if y.shape == x.shape else y


class MobileNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = ConvNorm(3, width, 3, 2)
        self.blocks = nn.Sequential(
            *(InvertedBlock(i * width, o * width, s)
              for i, o, s in [(1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2)]))
        self.last = ConvNorm(4 * width, 8 * width, 1)
        self.head = nn.Linear(8 * width, 10)

    def forward(self, x):
        x = self.blocks(F.relu6(self.stem(x)))
        return self.head(F.relu6(self.last(x)).mean((2, 3)))


def smooth_pair(inputs, outputs):
    def one(width):
        return [nn.Conv2d(width, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU()]
    return nn.Sequential(*one(inputs), *one(outputs))


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down = nn.ModuleList([smooth_pair(3, width), smooth_pair(width, 2 * width)])
        self.bottom = smooth_pair(2 * width, 4 * width)
        self.up = nn.ModuleList([smooth_pair(6 * width, 2 * width),
                                 smooth_pair(3 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        skips = []
        for pair in self.down:
            skips.append(pair(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for pair in self.up:
            x = pair(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
        return self.last(x)


def mlp(width, wide):
    return nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))


class Attention(nn.Module):
    """Queries share keys and values where there are fewer groups than heads."""

    def __init__(self, width, heads, groups=None, bias=True, causal=False):
        super().__init__()
        self.heads, self.groups, self.causal = heads, groups or heads, causal
        narrow = width // heads * self.groups
        self.query = nn.Linear(width, width, bias)
        self.key = nn.Linear(width, narrow, bias)
        self.value = nn.Linear(width, narrow, bias)
        self.output = nn.Linear(width, width, bias)

    def forward(self, x, turn=lambda x: x):
        def split(y, count):
            return y.unflatten(-1, (count, -1)).transpose(1, 2)
        q, k = turn(split(self.query(x), self.heads)), turn(split(self.key(x), self.groups))
        v = split(self.value(x), self.groups)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal,
                                           enable_gqa=self.groups != self.heads)
        return self.output(y.transpose(1, 2).flatten(2))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, width=128, places=64, layers=3, heads=4):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, places + 1, width))
        self.embed = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.Sequential(*(VitBlock(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class MixerBlock(nn.Module):
    def __init__(self, width, places):
        super().__init__()
        self.norm1, self.places = nn.LayerNorm(width), mlp(places, 2 * places)
        self.norm2, self.channels = nn.LayerNorm(width), mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.places(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width=128, places=64, layers=4):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.Sequential(*(MixerBlock(width, places) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.blocks(self.embed(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.attention(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(
            2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, words=256, width=128, length=64, layers=2, heads=4):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(GptBlock(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, index):
        x = self.tokens(index) + self.positions.weight[:index.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class LlamaBlock(nn.Module):
    def __init__(self, width, wide, heads, groups):
        super().__init__()
        self.norm1 = nn.RMSNorm(width, 1e-6)
        self.attention = Attention(width, heads, groups, bias=False, causal=True)
        self.norm2 = nn.RMSNorm(width, 1e-6)
        self.gate = nn.Linear(width, wide, bias=False)
        self.up = nn.Linear(width, wide, bias=False)
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x, turn):
        x = x + self.attention(self.norm1(x), turn)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words=256, width=128, wide=352, layers=2, heads=4, groups=2):
        super().__init__()
        self.half = width // heads // 2
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, wide, heads, groups)
                                    for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, 1e-6), nn.Linear(width, words, bias=False)

    def forward(self, index):
        x = self.words(index)
        rates = 10000.0**(torch.arange(self.half, dtype=x.dtype) / -self.half)
        angles = torch.outer(torch.arange(index.shape[1], dtype=x.dtype), rates).repeat(1, 2)
        cosine, sine = angles.cos(), angles.sin()

        def turn(y):
            first, second = y.chunk(2, -1)
            return y * cosine + torch.cat([-second, first], -1) * sine
        for block in self.blocks:
            x = block(x, turn)
        return self.head(self.norm(x))


class Lstm(nn.Module):
    def __init__(self, inputs=64, width=128, words=64):
        super().__init__()
        self.cell = nn.LSTM(inputs, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.cell(x)[0])


class Gru(nn.Module):
    def __init__(self, inputs=64, width=128, classes=10):
        super().__init__()
        self.cell = nn.GRU(inputs, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class StateSpace(nn.Module):
    def __init__(self, width, states):
        super().__init__()
        wide = 2 * width
        self.log_rates = nn.Parameter(torch.zeros(wide, states))
        self.skip = nn.Parameter(torch.zeros(wide))
        self.window = nn.Parameter(torch.zeros(wide, 1, 1, 4))
        self.input = nn.Linear(width, 2 * wide, bias=False)
        self.chosen = nn.Linear(wide, 2 * states, bias=False)
        self.rates = nn.Linear(wide, wide)
        self.output = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        given, gate = self.input(x).chunk(2, -1)
        before = F.pad(given.transpose(1, 2), (3, 0))
        near = F.conv1d(before, self.window[:, :, 0], groups=len(self.skip))
        u = F.silu(near).transpose(1, 2)
        step = F.softplus(self.rates(u))
        taken, shown = self.chosen(u).chunk(2, -1)
        decay = torch.exp(step[..., None] * -torch.exp(self.log_rates))
        added = (step * u)[..., None] * taken[:, :, None]
        h, found = torch.zeros_like(added[:, 0]), []
        for t in range(x.shape[1]):
            h = decay[:, t] * h + added[:, t]
            found.append((h * shown[:, t, None]).sum(-1))
        return self.output((torch.stack(found, 1) + u * self.skip) * F.silu(gate))


class Mamba(nn.Module):
    def __init__(self, width=64, states=8, words=64):
        super().__init__()
        self.norm, self.mixer = nn.RMSNorm(width, 1e-6), StateSpace(width, states)
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(x + self.mixer(self.norm(x)))


MODELS = {"resnet": ResNet, "mobilenet": MobileNet, "unet": UNet, "vit": Vit, "mixer": Mixer,
          "gpt": Gpt, "llama": Llama, "lstm": Lstm, "gru": Gru, "mamba": Mamba}


def loss_of(scores, target):
    if target.is_floating_point():
        return F.mse_loss(scores, target)
    return F.cross_entropy(scores.flatten(0, -2), target.flatten())


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, target):
        return loss_of(self.model(x), target)


def bound(name, inputs, compiled=lambda module: module):
    """A call of the row "model/forward" or "model/gradients" with inputs as C++ has them: the
    weights, the data and, of gradients, the target."""
    kind, asked = name.split("/")
    model = MODELS[kind]()
    weights = list(model.parameters())
    for parameter, value in zip(weights, inputs):
        assert parameter.shape == value.shape, (name, parameter.shape, value.shape)
        parameter.data = value.detach().clone()
    data = inputs[len(weights):]
    assert len(data) == (1 if asked == "forward" else 2), (name, len(weights), len(inputs))
    if asked == "forward":
        f = compiled(model)

        def call():
            with torch.no_grad():
                return f(*data)
        return call
    f = compiled(WithLoss(model))

    def call():
        loss = f(*data)
        return (loss.detach(), *torch.autograd.grad(loss, weights))
    return call
