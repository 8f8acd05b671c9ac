/* Grid expressions: 64-bit arithmetic that sets *bad on an overflow or a division by zero and never traps. */
#include "cpu_types.h"
#include "status.h"

#define DEUTERON_UNUSED __attribute__((unused))

DEUTERON_UNUSED static int64_t deuteron_grid_add(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_add_overflow(a, b, &result);
  return result;
}

DEUTERON_UNUSED static int64_t deuteron_grid_sub(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_sub_overflow(a, b, &result);
  return result;
}

DEUTERON_UNUSED static int64_t deuteron_grid_mul(int64_t a, int64_t b, int *bad) {
  int64_t result;
  *bad |= __builtin_mul_overflow(a, b, &result);
  return result;
}

/* a / b rounded to zero, as in C. */
DEUTERON_UNUSED static int64_t deuteron_grid_div(int64_t a, int64_t b, int *bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) {
    *bad = 1;
    return 0;
  }
  return a / b;
}

/* a // b rounded down, as in Python. */
DEUTERON_UNUSED static int64_t deuteron_grid_floordiv(int64_t a, int64_t b, int *bad) {
  int64_t quotient = deuteron_grid_div(a, b, bad);
  return !*bad && a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* The smallest whole number that is not less than a / b. */
DEUTERON_UNUSED static int64_t deuteron_grid_cdiv(int64_t a, int64_t b, int *bad) {
  int64_t quotient = deuteron_grid_div(a, b, bad);
  return !*bad && a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

/* a - (a // b) * b, as in Python: equal to C's where neither is negative. */
DEUTERON_UNUSED static int64_t deuteron_grid_mod(int64_t a, int64_t b, int *bad) {
  int64_t rest;
  if (b == 0) {
    *bad = 1;
    return 0;
  }
  rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

DEUTERON_UNUSED static int64_t deuteron_grid_min(int64_t a, int64_t b) { return a < b ? a : b; }

DEUTERON_UNUSED static int64_t deuteron_grid_max(int64_t a, int64_t b) { return a > b ? a : b; }

DEUTERON_UNUSED static int64_t deuteron_grid_u64(uint64_t value, int *bad) {
  *bad |= value > (uint64_t)INT64_MAX;
  return (int64_t)(value & (uint64_t)INT64_MAX);
}

/* The grid in the device's terms. A part that is not positive makes it empty: grid[0] is 0 then. */
DEUTERON_UNUSED static deuteron_status deuteron_make_grid(const int64_t parts[3], int bad, uint32_t grid[3]) {
  const int is_empty = parts[0] <= 0 || parts[1] <= 0 || parts[2] <= 0;
  int i;
  if (bad)
    return DEUTERON_ERROR_INVALID_VALUE;
  if (!is_empty && (parts[0] > INT32_MAX || parts[1] > 65535 || parts[2] > 65535))
    return DEUTERON_ERROR_INVALID_VALUE;
  for (i = 0; i < 3; i++)
    grid[i] = is_empty ? 0 : (uint32_t)parts[i];
  return DEUTERON_SUCCESS;
}
