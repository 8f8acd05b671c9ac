"""A random share of the mutants of `make mutations`: a synchronising instruction that is left out is noticed."""

from __future__ import annotations

import pytest
from emulator.mutations.explained import too_many
from emulator.mutations.launches import all_subjects, recorded
from emulator.mutations.mutants import mutants
from emulator.mutations.run import NOT_EXECUTED, SURVIVES, Trial

SUBJECTS, MUTANTS, SEEDS = 3, 10, range(8)


def test_mutants_of_some_kernels_are_caught(rng):
    subjects = all_subjects()
    for index in rng.choice(len(subjects), SUBJECTS, replace=False):
        subject, target = subjects[index]
        for trial in map(Trial, recorded(subject, target)):
            every = list(trial.mutants())
            chosen = rng.choice(len(every), min(MUTANTS, len(every)), replace=False)
            survivors = [every[i] for i in chosen if trial.outcome(every[i], SEEDS) == SURVIVES]
            assert not too_many((f"{subject} {target}", mutant) for mutant in survivors)


def test_what_is_not_executed_says_nothing():
    """The second loop of a causal attention has two iterations, whose copies are all issued before it."""
    trial = Trial(recorded("attention", "cuda:90")[0])
    copies = [mutant for mutant in trial.mutants() if "without mbarrier.arrive.expect_tx" in mutant.change]
    assert trial.outcome(copies[-1], SEEDS) == NOT_EXECUTED
    assert trial.outcome(copies[0], SEEDS) not in (SURVIVES, NOT_EXECUTED)


KERNEL = """.entry k() {
  @%p1 mbarrier.init.shared::cta.b64 [%r1], 8;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
  bar.sync 1, 128;
  { .reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], %r2; @P bra D; bra W; D: }
  cp.async.wait_group 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2}, %rd1, %rd2, p, 1, 1, 0, 0;
}"""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("without both fences of an mbarrier", "8;\n  \n  bar.sync"),
        ("without mbarrier.init.shared::cta.b64 [%r1], 8", "{\n  \n  fence"),
        ("mbarrier.init.shared::cta.b64 [%r1], 8 -> 7", "@%p1 mbarrier.init.shared::cta.b64 [%r1], 7;"),
        ("bar.sync 1, 128 -> 64 threads", "bar.sync 1, 64;"),
        (
            "mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], %r2 -> other parity",
            "{ .reg .b32 other; xor.b32 other, %r2, 1; mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], other; } @P",
        ),
        ("mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], %r2 -> no wait", "W: setp.eq.b32 P, 0, 0; @P"),
        ("cp.async.wait_group 1 -> 2", "cp.async.wait_group 2;"),
    ],
)
def test_a_mutant(change: str, text: str):
    made = {mutant.change: mutant.ptx for mutant in mutants(KERNEL, 128)}
    assert text in made[change]
    assert len(made) == 9
