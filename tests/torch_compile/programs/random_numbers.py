"""Random numbers: what does not depend on the numbers drawn, and eager mode's own numbers."""

import torch
from torch.nn import functional as F
from torch_compile.declaration import normal, program

COUNT = 40000


def _is_near(value, expected, margin):
    return (value - expected).abs() < margin


@program(draws=True)
def uniform_numbers():
    x = torch.rand(COUNT)
    inside = ((x >= 0) & (x < 1)).all()
    return (
        inside,
        _is_near(x.mean(), 0.5, 0.01),
        _is_near(x.var(), 1 / 12, 0.005),
        _is_near((x[1:] * x[:-1]).mean(), 0.25, 0.01),
    )


@program(draws=True)
def normal_numbers():
    x = torch.randn(COUNT)
    return _is_near(x.mean(), 0.0, 0.03), _is_near(x.std(), 1.0, 0.03), _is_near((x**4).mean(), 3.0, 0.3)


@program(draws=True)
def random_integers():
    x = torch.randint(-3, 9, (COUNT,))
    return x.amin() == -3, x.amax() == 8, _is_near(x.float().mean(), 2.5, 0.1), (x == 5).float().mean() > 0.07


@program(normal(200, 201), draws=True)
def dropout(x):
    y = F.dropout(x, 0.25)
    kept = y != 0
    return _is_near(kept.float().mean(), 0.75, 0.01), ((y - x / 0.75).abs() * kept).amax() < 1e-5


@program(draws=True)
def bernoulli():
    x = torch.bernoulli(torch.full((COUNT,), 0.3))
    return _is_near(x.mean(), 0.3, 0.02), ((x == 0) | (x == 1)).all()


@program(draws=True)
def exponential_numbers():
    x = torch.empty(COUNT).exponential_(2.0)
    return (x >= 0).all(), _is_near(x.mean(), 0.5, 0.02)


@program(draws=True)
def two_draws_differ():
    x, y = torch.rand(COUNT), torch.rand(COUNT)
    return (x != y).float().mean() > 0.99, _is_near(((x - 0.5) * (y - 0.5)).mean(), 0.0, 0.005)


@program(normal(33, 65), config={"fallback_random": True}, draws=True)
def numbers_of_eager_mode(x):
    return torch.rand(33, 65) + x, F.dropout(x, 0.5) * 2, torch.randn(7)
