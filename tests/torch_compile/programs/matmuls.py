"""Matrix products by the templates of Inductor, alone and with what is fused to them."""

import torch
from torch.nn import functional as F
from torch_compile.declaration import declare, integers, normal, program

# One template for every product that has any. Measuring fused kernels writes code that does not parse on the CPU.
TEMPLATES = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "benchmark_epilogue_fusion": False,
    "test_configs.autotune_choice_desc_regex": "BLOCK_K=(16|32), BLOCK_M=32, BLOCK_N=(16|32),.*num_stages=(2|5)",
}

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    name = f"mm_{dtype}".replace("torch.", "")
    declare(name, torch.mm, normal(37, 65, dtype=dtype), normal(65, 49, dtype=dtype), config=TEMPLATES)
declare("mm_by_the_library", lambda x, y: torch.relu(x @ y), normal(37, 65), normal(65, 49))


@program(normal(33, 48), normal(48, 40), normal(40), config=TEMPLATES)
def mm_with_epilogue(x, y, bias):
    return torch.relu(x @ y + bias) * 0.5


@program(normal(33, 48), normal(40, 48), normal(40), config=TEMPLATES)
def linear_with_gelu(x, weight, bias):
    return F.gelu(F.linear(x, weight, bias))


@program(normal(33, 48), normal(40, 48), normal(33, 40), config=TEMPLATES)
def linear_with_residual(x, weight, residual):
    return F.linear(x, weight) + residual


@program(normal(33, 48), normal(48, 40), config={**TEMPLATES, "prologue_fusion": True})
def mm_with_prologue(x, y):
    return torch.mm(x.to(torch.float16).to(y.dtype), y)


@program(normal(5, 17, 33), normal(5, 33, 19), normal(5, 17, 19), config=TEMPLATES)
def bmm_with_epilogue(x, y, z):
    return torch.tanh(torch.bmm(x, y)) + z


@program(normal(5, 17, 33), normal(5, 33, 19), normal(5, 17, 19), config=TEMPLATES)
def baddbmm(x, y, z):
    return torch.baddbmm(z, x, y, beta=0.5, alpha=2.0)


@program(normal(48, 33), normal(40, 48), config=TEMPLATES)
def mm_of_transposes(x, y):
    return x.t() @ y.t()


@program(normal(17, 70), normal(70, 18), normal(18, 23), config=TEMPLATES)
def chained_products(x, y, z):
    return torch.relu(x @ y) @ z


@program(normal(33, 48, dtype=torch.float16), normal(48, 40, dtype=torch.float16), normal(40), config=TEMPLATES)
def half_product_with_float_epilogue(x, y, scale):
    return (x @ y).float() * scale


@program(integers(33, 48, high=5, dtype=torch.int8), integers(48, 40, high=5, dtype=torch.int8), config=TEMPLATES)
def integer_product(x, y):
    return torch._int_mm(x, y) * 2


@program(normal(1, 65), normal(65, 33), normal(33, 1))
def thin_products(x, y, z):
    return x @ y, (x @ y) @ z, torch.mv(y, z[:, 0]), torch.dot(x[0], y[:, 0]), torch.outer(x[0], z[:, 0])


@program(normal(2, 3, 7, 11), normal(11, 5), normal(2, 3, 11, 4), gradients=True)
def broadcast_products(x, y, z):
    return torch.matmul(x, y), torch.einsum("abij,abjk->abik", x, z)


@program(normal(33, 40), normal(40, 36), normal(36), gradients=True, config=TEMPLATES)
def addmm_and_gradients(x, y, bias):
    return torch.addmm(bias, x, y).sigmoid()


@program(normal(4, 33), normal(3, 12, 33), normal(3, 12))
def products_in_a_loop(x, weights, biases):
    outputs = [torch.tanh(x @ weights[number].t() + biases[number]) for number in range(3)]
    return torch.cat(outputs, -1)


@program(normal(8, 64), integers(32, 64, low=-8, high=8, dtype=torch.int8), normal(32))
def dequantised_product(x, weight, scale):
    return x @ (weight.to(torch.float32) * scale[:, None]).t()
