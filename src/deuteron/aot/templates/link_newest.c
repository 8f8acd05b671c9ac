
/* In the files of kernels: 90 where the current device is of compute capability 9.0. */
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("hidden"))) int
    deuteron_cuda_capability_v5(void);

/* Of the capabilities that a table has rows of the newest that is not newer than the device; else the oldest. */
static int64_t deuteron_newest(const int64_t *rows, int num_rows, int width) {
  const int64_t device = deuteron_cuda_capability_v5();
  int64_t newest = -1, oldest = INT64_MAX;
  int i;
  for (i = 0; i < num_rows; i++) {
    const int64_t target = rows[(ptrdiff_t)i * width];
    if (target && target <= device && target > newest)
      newest = target;
    if (target && target < oldest)
      oldest = target;
  }
  return newest > 0 ? newest : oldest;
}
