"""Losses of distributions, with their gradients."""

import triton
import triton.language as tl


@triton.jit
def kl_divergence(pred_ptr, truth_ptr, loss_ptr, V, eps, BLOCK: tl.constexpr):
    """Of logarithms and probabilities, a row a program."""
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < V
        y = tl.load(pred_ptr + row * V + i, mask=mask, other=0.0)
        t = tl.load(truth_ptr + row * V + i, mask=mask, other=0.0)
        total += tl.sum(t * (tl.log(tl.maximum(t, eps)) - y), axis=0)
    tl.store(loss_ptr + row, total)


@triton.jit
def jensen_shannon(x_ptr, y_ptr, loss_ptr, dx_ptr, beta, scale, V, BLOCK: tl.constexpr):
    """Generalised by beta, of logarithms of probabilities; the loss of each element, and the gradient."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < V
        x = tl.load(x_ptr + row * V + i, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.load(y_ptr + row * V + i, mask=mask, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(tl.max(x, axis=0), tl.max(y, axis=0))
        q = tl.exp(x - largest) * tl.exp(largest)
        p = tl.exp(y - largest) * tl.exp(largest)
        m = beta * p + (1 - beta) * q
        log_m = tl.log(m)
        loss = beta * p * (y - log_m) + (1 - beta) * q * (x - log_m)
        dx = (1 - beta) * q * (x - log_m)
        tl.store(loss_ptr + row * V + i, loss * scale, mask=mask)
        tl.store(dx_ptr + row * V + i, (dx * scale).to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def smooth_cross_entropy(
    logits_ptr, labels_ptr, loss_ptr, z_ptr, stride, V, eps, z_weight, count, ignored, BLOCK: tl.constexpr
):
    """Label smoothing and the z loss; the gradient goes where the logits were (in another array here)."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    logits_ptr += row * stride
    z_ptr += row * stride
    if label == ignored:
        for start in range(0, V, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(z_ptr + i, 0.0, mask=i < V)
        tl.store(loss_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    own = tl.load(logits_ptr + label).to(tl.float32)
    scaled = 0.0
    smooth = eps / V
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < V, other=float("-inf")).to(tl.float32)
        scaled += tl.sum(tl.where(i < V, -smooth * x, 0.0))
        new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new))
        m = new
    lse = m + tl.log(d)
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - m) / d
        p += 2 * z_weight * lse * p
        p += -smooth
        p = tl.where(i != label, p, p - (1 - eps))
        tl.store(z_ptr + i, (p / count).to(z_ptr.dtype.element_ty), mask=i < V)
    loss = (lse - own) * (1 - eps) + scaled + eps * lse + z_weight * lse * lse
    tl.store(loss_ptr + row, loss / count)
