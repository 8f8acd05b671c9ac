/* AMX on processors that have none: each of its instructions traps (SIGILL), and is done here by the manual's pseudocode
   (Intel SDM vol. 2, "TDPBF16PS" and its neighbours). Tiles are private to a thread, as they are in a processor.

   A mistake that a processor would fault on (no configuration, sizes that do not fit) ends the process. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { ROWS = 16, ROW_BYTES = 64, TILES = 8 };
enum { NP, P66, PF3, PF2 }; /* the prefix of a VEX instruction */

static __thread struct {
  uint8_t is_configured;
  uint8_t rows[TILES];
  uint16_t row_bytes[TILES];
  uint8_t data[TILES][ROWS][ROW_BYTES];
} tiles;

static unsigned long num_done;
static struct sigaction others;

unsigned long amx_instructions_done(void) { return __atomic_load_n(&num_done, __ATOMIC_RELAXED); }

static uint64_t reg(const ucontext_t *context, int number) {
  static const int places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return (uint64_t)context->uc_mcontext.gregs[places[number]];
}

/* The base of a memory operand with its displacement, its index register times scale, and the bytes after ModRM. */
static uint64_t memory(const ucontext_t *context, const uint8_t *code, int x, int b, uint64_t *index, int *length) {
  const int mod = code[4] >> 6, rm = code[4] & 7;
  int at = 5, base = rm | b << 3;
  uint64_t address = 0;
  int32_t far = 0;
  *index = 0;
  if (rm == 4) {
    const int number = (code[5] >> 3 & 7) | x << 3;
    base = (code[5] & 7) | b << 3;
    if (number != 4)
      *index = reg(context, number) << (code[5] >> 6);
    at = 6;
  }
  if (mod == 0 && (base & 7) == 5) {
    memcpy(&far, code + at, 4);
    *length = at + 4;
    return (uint64_t)(int64_t)far + (rm == 4 ? 0 : (uint64_t)(uintptr_t)code + (uint64_t)*length);
  }
  address = reg(context, base);
  if (mod == 1)
    address += (uint64_t)(int64_t)(int8_t)code[at++];
  if (mod == 2) {
    memcpy(&far, code + at, 4);
    address += (uint64_t)(int64_t)far;
    at += 4;
  }
  *length = at;
  return address;
}

static void configure(const uint8_t *bytes) {
  int t;
  memset(&tiles, 0, sizeof tiles);
  tiles.is_configured = bytes[0];
  for (t = 0; t < TILES; t++) {
    memcpy(&tiles.row_bytes[t], bytes + 16 + 2 * t, 2);
    tiles.rows[t] = bytes[48 + t];
    if (bytes[0] != 1 || tiles.rows[t] > ROWS || tiles.row_bytes[t] > ROW_BYTES)
      abort();
  }
}

static void move(int tile, uint8_t *address, uint64_t stride, int is_load) {
  int row;
  for (row = 0; row < tiles.rows[tile]; row++, address += stride)
    if (is_load)
      memcpy(tiles.data[tile][row], address, tiles.row_bytes[tile]);
    else
      memcpy(address, tiles.data[tile][row], tiles.row_bytes[tile]);
}

/* Subnormal numbers are zero, of operands and of results. */
static float flushed(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x; }

static float bf16(const uint8_t *place) {
  uint32_t bits = (uint32_t)place[1] << 24 | (uint32_t)place[0] << 16;
  float x;
  memcpy(&x, &bits, 4);
  return flushed(x);
}

static float fp16(const uint8_t *place) {
  _Float16 x;
  memcpy(&x, place, 2);
  return (float)x;
}

static void multiply_pairs(int c, int a, int b, float (*element)(const uint8_t *)) {
  int m, k, n, half;
  for (m = 0; m < tiles.rows[c]; m++)
    for (n = 0; n < tiles.row_bytes[c] / 4; n++) {
      float sums[2] = {0, 0}, total;
      for (k = 0; k < tiles.row_bytes[a] / 4; k++)
        for (half = 0; half < 2; half++)
          sums[half] = flushed(fmaf(element(&tiles.data[a][m][4 * k + 2 * half]),
                                    element(&tiles.data[b][k][4 * n + 2 * half]), sums[half]));
      memcpy(&total, &tiles.data[c][m][4 * n], 4);
      total = flushed(flushed(total) + flushed(sums[0] + sums[1]));
      memcpy(&tiles.data[c][m][4 * n], &total, 4);
    }
}

static int32_t byte(const uint8_t *place, int is_signed) { return is_signed ? (int8_t)*place : *place; }

static void multiply_quads(int c, int a, int b, int a_is_signed, int b_is_signed) {
  int m, k, n, part;
  for (m = 0; m < tiles.rows[c]; m++)
    for (n = 0; n < tiles.row_bytes[c] / 4; n++) {
      uint32_t total;
      memcpy(&total, &tiles.data[c][m][4 * n], 4);
      for (k = 0; k < tiles.row_bytes[a] / 4; k++)
        for (part = 0; part < 4; part++)
          total += (uint32_t)(byte(&tiles.data[a][m][4 * k + part], a_is_signed) *
                              byte(&tiles.data[b][k][4 * n + part], b_is_signed));
      memcpy(&tiles.data[c][m][4 * n], &total, 4);
    }
}

static void check_sizes(int c, int a, int b) {
  if (!tiles.is_configured || c == a || c == b || a == b || tiles.rows[c] != tiles.rows[a] ||
      tiles.row_bytes[a] / 4 != tiles.rows[b] || tiles.row_bytes[c] != tiles.row_bytes[b])
    abort();
}

/* Does the instruction at the place of the trap; gives its length, or 0 where it is none of AMX. */
static int do_instruction(const ucontext_t *context, const uint8_t *code) {
  const int is_memory = code[4] >> 6 != 3, c = code[4] >> 3 & 7, a = code[4] & 7, b = ~(code[2] >> 3) & 7;
  const int x = ~(code[1] >> 6) & 1, base = ~(code[1] >> 5) & 1, prefix = code[2] & 3;
  uint64_t index = 0, address = 0;
  int length = 5;
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2)
    return 0;
  if (is_memory)
    address = memory(context, code, x, base, &index, &length);
  if (code[3] == 0x49 && prefix == NP && is_memory)
    configure((const uint8_t *)(uintptr_t)(address + index));
  else if (code[3] == 0x49 && prefix == NP)
    memset(&tiles, 0, sizeof tiles);
  else if (code[3] == 0x49 && prefix == PF2 && !is_memory && tiles.is_configured)
    memset(tiles.data[c], 0, sizeof tiles.data[c]);
  else if (code[3] == 0x4B && (prefix == PF2 || prefix == PF3) && is_memory && tiles.is_configured)
    move(c, (uint8_t *)(uintptr_t)address, index, prefix == PF2);
  else if (code[3] == 0x5C && (prefix == PF3 || prefix == PF2)) {
    check_sizes(c, a, b);
    multiply_pairs(c, a, b, prefix == PF3 ? bf16 : fp16);
  } else if (code[3] == 0x5E) {
    check_sizes(c, a, b);
    multiply_quads(c, a, b, prefix == PF2 || prefix == PF3, prefix == PF2 || prefix == P66);
  } else
    return 0;
  return length;
}

static void trap(int number, siginfo_t *info, void *context) {
  ucontext_t *state = context;
  const int length = do_instruction(state, (const uint8_t *)(uintptr_t)state->uc_mcontext.gregs[REG_RIP]);
  if (length == 0) {
    sigaction(number, &others, NULL);
    return;
  }
  (void)info;
  __atomic_fetch_add(&num_done, 1, __ATOMIC_RELAXED);
  state->uc_mcontext.gregs[REG_RIP] += length;
}

int amx_install(void) {
  struct sigaction action = {0};
  action.sa_sigaction = trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGILL, &action, &others);
}

int amx_remove(void) { return sigaction(SIGILL, &others, NULL); }
