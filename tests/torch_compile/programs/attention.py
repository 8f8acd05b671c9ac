"""Attention: written out, by torch's operator, and flex_attention."""

import math

import torch
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch_compile.declaration import normal, program

HEADS = [normal(2, 3, 24, 16)] * 3


@program(*HEADS, gradients=True)
def attention_written_out(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(16)
    return torch.softmax(scores, -1) @ v


@program(*HEADS, gradients=True)
def causal_attention(q, k, v):
    mask = torch.arange(24)[:, None] >= torch.arange(24)
    scores = torch.where(mask, q @ k.transpose(-1, -2) * 0.25, float("-inf"))
    return torch.softmax(scores, -1) @ v


@program(*HEADS)
def attention_with_slopes(q, k, v):
    distance = (torch.arange(24)[:, None] - torch.arange(24)).abs()
    slopes = torch.exp2(-torch.arange(1.0, 4.0))[:, None, None]
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25 - slopes * distance, -1) @ v


@program(normal(2, 4, 24, 16), normal(2, 2, 24, 16), normal(2, 2, 24, 16))
def grouped_queries(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


@program(*HEADS, gradients=True)
def attention_by_operator(q, k, v):
    return F.scaled_dot_product_attention(q * 0.5, k, v, is_causal=True) * 2


@program(normal(2, 3, 24, 16), normal(24, 8), normal(24, 8))
def rotary_embedding(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


@program(normal(2, 3, 24, 16), normal(24, 16), normal(24, 16), gradients=True)
def rotary_embedding_of_halves(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


@program(normal(2, 3, 1, 16), normal(2, 3, 33, 16), normal(2, 3, 33, 16))
def decoding_step(q, k, v):
    weights = torch.softmax((q * k).sum(-1) * 0.25, -1)
    return (weights[..., None] * v).sum(-2)


@program(*HEADS)
def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.einsum("bhnd,bhne->bhde", k, v)
    return torch.einsum("bhnd,bhde->bhne", q, state) / (q @ k.sum(-2, keepdim=True).transpose(-1, -2))


# On the CPU torch has a template in C++ alone, whatever the backend; with a compiler, 2.13 fails to fill it in.
FLEXIBLE = {"refusal": r"No working C\+\+ compiler found|hint_override"}


@program(*[normal(1, 2, 128, 16)] * 3, **FLEXIBLE)
def flexible_attention(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (j - i) * 0.1)


@program(*[normal(1, 2, 128, 16)] * 3, **FLEXIBLE)
def flexible_causal_attention(q, k, v):
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cpu")
    return flex_attention(q, k, v, block_mask=mask)
