/* Finds the nearest row of a table of what was measured. */
#include <stddef.h>
#include <stdint.h>

/* The binary logarithm times 65536, linear between powers of two; of what is less than 1 it is 0. */
static inline int64_t deuteron_logarithm(int64_t size) {
  const uint64_t value = (uint64_t)size;
  int exponent;
  uint64_t fraction;
  if (size <= 1)
    return 0;
  exponent = 63 - __builtin_clzll((unsigned long long)value);
  fraction = value - ((uint64_t)1 << exponent);
  fraction = exponent > 16 ? fraction >> (exponent - 16) : fraction << (16 - exponent);
  return ((int64_t)exponent << 16) + (int64_t)fraction;
}

/* The algorithm of the row of a target whose sizes are nearest: equal, or of the least sum of distances of logarithms. A row
   is the target, the algorithm, the sizes, their logarithms; so are the sizes of a call, without the first two. 0 where
   there is no row of the target. */
static inline int deuteron_nearest(const int64_t *rows, int num_rows, int num_keys, int64_t target, const int64_t *sizes) {
  const int64_t *row = rows;
  int64_t nearest = INT64_MAX;
  int found = 0, i, k;
  for (i = 0; i < num_rows; i++, row += 2 + 2 * num_keys) {
    int64_t distance = 0;
    if (row[0] != target)
      continue;
    for (k = 0; k < num_keys && sizes[k] == row[2 + k]; k++)
      continue;
    if (k == num_keys)
      return (int)row[1];
    for (k = num_keys; k < 2 * num_keys && distance < nearest; k++)
      distance += sizes[k] < row[2 + k] ? row[2 + k] - sizes[k] : sizes[k] - row[2 + k];
    if (distance < nearest) {
      nearest = distance;
      found = (int)row[1];
    }
  }
  return found;
}
