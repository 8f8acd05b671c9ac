"""Jobs that make the same code are known to, before anything is compiled."""

import dataclasses

import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend import get_backend, parse_target
from deuteron.compiler.job import Job, codes
from deuteron.compiler.source import ASTSource
from deuteron.options import CPUOptions

OTHER = {"num_warps": 8, "num_stages": 1, "num_ctas": 2, "maxnreg": 64}


@deuteron.jit
def double(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2.0)


@deuteron.jit
def store_warps(x, BLOCK: tl.constexpr):
    tl.store(x, tl.extra.cuda.num_warps() + BLOCK)


def job(kernel, target="cpu", block=64, **options):
    target = parse_target(target)
    backend = get_backend(target)
    source = ASTSource(kernel, {"x": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": block})
    return Job(backend, source, target, backend.make_options(options))


def groups(*jobs):
    found = codes(dict(enumerate(jobs)))
    return [next(other for other in found if found[other] == code) for code in found.values()]


def test_options_that_a_target_does_not_read_make_no_other_code():
    assert groups(job(double), job(double, num_warps=8), job(double, num_stages=1)) == [0, 0, 0]
    assert groups(job(double), job(double, block=128)) == [0, 1]
    assert groups(job(double), job(double, opt_level=1), job(double, debug=True)) == [0, 1, 2]
    assert groups(job(double, "cuda:90"), job(double, "cuda:90", num_stages=1), job(double, "cuda:90")) == [0, 1, 0]


def test_a_kernel_may_ask_for_its_warps():
    assert groups(job(store_warps), job(store_warps, num_warps=8), job(store_warps, num_stages=1)) == [0, 1, 0]


@pytest.mark.parametrize("option", CPUOptions.unread)
def test_what_is_said_not_to_be_read_is_not_read(option):
    default = next(field.default for field in dataclasses.fields(CPUOptions) if field.name == option)
    plain = job(double)
    other = job(double, **{option: OTHER.get(option, not default)})
    compiled = [deuteron.compile(one.source, one.target, options=vars(one.options)) for one in (plain, other)]
    assert compiled[0].asm["obj"] == compiled[1].asm["obj"]
