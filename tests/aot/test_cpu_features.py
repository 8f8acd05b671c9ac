"""What processors must have, as LLVM knows it, and every processor of a level above has what one below has."""

import pytest

from deuteron.aot.targets.cpu_features import X86_FEATURES, required_features
from deuteron.backend.llvm.targets import machine

pytestmark = pytest.mark.skipif(machine() != "x86_64", reason="features are checked on x86-64 only")


def names(arch: str) -> set[str]:
    return {feature.name for feature in required_features(arch)}


def test_levels():
    assert names("x86-64") == set()
    assert names("x86-64-v2") == {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"}
    v3 = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
    assert names("x86-64-v3") == names("x86-64-v2") | v3
    v4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    assert names("x86-64-v4") == names("x86-64-v3") | v4


def test_named_processors():
    assert names("haswell") == names("x86-64-v3")
    assert names("znver4") - names("x86-64-v4") >= {"avx512bf16", "avx512vnni"}
    assert "avx512f" not in names("alderlake")


def test_every_feature_is_one_bit():
    bits = [(feature.leaf, feature.subleaf, feature.reg, feature.bit) for feature in X86_FEATURES]
    assert len(set(bits)) == len(bits)
