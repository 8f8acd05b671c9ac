/* Whether this processor has what a kernel was compiled for. A feature is a bit of a register of the CPUID instruction;
   0xD in its `state` are the registers that the system must save (XCR0): 0x6 for AVX, 0xE6 for AVX-512, 0x60000 for the
   tiles of AMX, for which a process has to ask Linux (its documentation, arch/x86/xstate). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "cpu_types.h"
#include "status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

typedef struct {
  uint32_t leaf, subleaf;
  uint32_t reg; /* 0 eax, 1 ebx, 2 ecx, 3 edx */
  uint32_t bit;
  uint32_t state;
} deuteron_cpu_feature;

#if defined(__x86_64__)
static uint32_t deuteron_saved_state(void) {
  uint32_t low, high, regs[4];
  if (!__get_cpuid_count(1, 0, &regs[0], &regs[1], &regs[2], &regs[3]) || !(regs[2] >> 27 & 1))
    return 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0)); /* xgetbv */
  return low;
}

static int deuteron_may_use_tiles(void) {
#if defined(__linux__)
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0; /* ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA: of all threads */
#else
  return 0;
#endif
}

static int deuteron_has_feature(const deuteron_cpu_feature *feature) {
  uint32_t regs[4];
  if (feature->state && (deuteron_saved_state() & feature->state) != feature->state)
    return 0;
  if (!__get_cpuid_count(feature->leaf, feature->subleaf, &regs[0], &regs[1], &regs[2], &regs[3]))
    return 0;
  if (!(regs[feature->reg] >> feature->bit & 1))
    return 0;
  return !(feature->state & 0x40000) || deuteron_may_use_tiles();
}
#else
static int deuteron_has_feature(const deuteron_cpu_feature *feature) {
  (void)feature;
  return 0;
}
#endif

/* *known is 0 at first and keeps the answer: 1 all there, 2 not. CPUID is slow in virtual machines. */
__attribute__((unused)) static deuteron_status deuteron_check_cpu(const deuteron_cpu_feature *features,
                                                                  uint32_t count, int *known) {
  int state = __atomic_load_n(known, __ATOMIC_RELAXED);
  uint32_t i;
  if (state == 0) {
    state = 1;
    for (i = 0; i < count; i++)
      if (!deuteron_has_feature(&features[i]))
        state = 2;
    __atomic_store_n(known, state, __ATOMIC_RELAXED);
  }
  return state == 1 ? DEUTERON_SUCCESS : DEUTERON_ERROR_UNSUPPORTED_DEVICE;
}
