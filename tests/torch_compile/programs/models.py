"""Small models: forward, backward, and whole steps of training."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_compile.declaration import integers, model, normal, program


@model(normal(9, 17), gradients=True)
def perceptron():
    return nn.Sequential(nn.Linear(17, 33), nn.GELU(), nn.LayerNorm(33), nn.Linear(33, 5))


class Block(nn.Module):
    """A transformer block, norm first."""

    def __init__(self, width, heads, is_causal=True):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.out(self.attention(self.norms[0](x)))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))

    def attention(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if self.is_causal:
            length = x.shape[1]
            scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


@model(normal(2, 13, 24))
def transformer_block():
    return Block(24, 3)


@model(normal(2, 13, 24), gradients=True)
def transformer_block_and_gradients():
    return Block(24, 3)


@model(normal(2, 9, 16), gradients=True)
def encoder_layer():
    return nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)


class Gated(nn.Module):
    """The layer of a decoder with gated units, norms of root mean squares and shared keys."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model(normal(2, 7, 24), gradients=True)
def gated_layer():
    return Gated(24, 40)


class Residual(nn.Module):
    """Two convolutions with norms, and a way around them."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)]
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.around = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norms[0](self.convolutions[0](x)))
        return F.relu(self.norms[1](self.convolutions[1](y)) + self.around(x))


def _residual_network():
    stem = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(
        *stem, Residual(8, 8, 1), Residual(8, 12, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5)
    )


@model(normal(2, 3, 17, 15))
def residual_network():
    return _residual_network().eval()


@model(normal(3, 3, 17, 15), gradients=True, tolerance=30)
def residual_network_and_gradients():
    return _residual_network()


class Language(nn.Module):
    """A small language model: its loss for some tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(31, 24), nn.Embedding(16, 24)
        self.blocks = nn.Sequential(Block(24, 3), Block(24, 3))
        self.norm = nn.LayerNorm(24)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        logits = self.norm(self.blocks(x)) @ self.tokens.weight.t()
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Training:
    """Steps of training, forward, backward and the optimiser: the losses, and the parameters after them."""

    def __init__(self, network, loss, make_optimiser):
        self._network, self._loss, self._make_optimiser = network, loss, make_optimiser

    def double(self):
        self._network.double()
        return self

    def compiled(self, compile, *inputs):
        network, optimiser = compile(self._network), self._make_optimiser(self._network.parameters())
        update, losses = compile(optimiser.step), []
        for _ in range(3):
            optimiser.zero_grad()
            loss = self._loss(network, *inputs)
            loss.backward()
            update()
            losses.append(loss.detach())
        return *losses, *(parameter.detach() for parameter in self._network.parameters())


@model(integers(2, 12, high=31), tolerance=30)
def language_model_in_training():
    return Training(Language(), lambda f, tokens: f(tokens), lambda p: torch.optim.SGD(p, 0.1, foreach=True))


@model(integers(2, 12, high=31))
def language_model():
    return Language()


@model(normal(9, 17), integers(9, high=5), tolerance=30)
def perceptron_in_training():
    network = nn.Sequential(nn.Linear(17, 33), nn.Tanh(), nn.Linear(33, 5))
    return Training(
        network, lambda f, x, y: F.cross_entropy(f(x), y), lambda p: torch.optim.Adam(p, 0.01, foreach=True)
    )


@model(normal(7, 12), normal(7, 16), normal(7, 16), gradients=True)
def recurrent_cells():
    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTMCell(12, 16), nn.GRUCell(16, 16)

        def forward(self, x, h, c):
            h, c = self.lstm(x, (h, c))
            return self.gru(h, c), c

    return Cells()


@model(normal(3, 33), gradients=True)
def autoencoder():
    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(33, 12), nn.Linear(6, 33)

        def forward(self, x):
            mean, log_variance = self.encode(torch.tanh(x)).chunk(2, -1)
            y = torch.sigmoid(self.decode(mean + torch.exp(0.5 * log_variance)))
            divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1)
            return F.binary_cross_entropy(y, torch.sigmoid(x)), divergence.mean()

    return Autoencoder()


@program(normal(11, 12), normal(12, 4), normal(4, 12, 8), gradients=True)
def mixture_of_experts(x, gate, experts):
    weights, chosen = torch.topk(torch.softmax(x @ gate, -1), 2, dim=-1)
    outputs = torch.einsum("nd,ndh->nh", x, experts[chosen[:, 0]]) * weights[:, :1]
    return outputs + torch.einsum("nd,ndh->nh", x, experts[chosen[:, 1]]) * weights[:, 1:]


@program(normal(2, 5, 9), normal(2, 5, 9), normal(9, 4), normal(2, 5, 4), normal(2, 5, 4))
def state_space_steps(x, delta, a, b, c):
    state, outputs = torch.zeros(2, 9, 4), []
    for step in range(5):
        rate = F.softplus(delta[:, step])[..., None]
        state = state * torch.exp(-rate * a.abs()) + rate * b[:, step, None] * x[:, step, :, None]
        outputs.append((state * c[:, step, None]).sum(-1))
    return torch.stack(outputs, 1)


@model(normal(1, 3, 16, 12))
def upsampling_network():
    down, up = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 3, 3, 1, 1)
    return nn.Sequential(down, nn.GroupNorm(2, 6), nn.SiLU(), nn.Upsample(scale_factor=2.0), up, nn.Tanh())
