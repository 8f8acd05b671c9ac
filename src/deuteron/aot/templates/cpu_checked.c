
#if ${architecture}
__attribute__((visibility("hidden"))) void ${symbol}(void *const *args, const uint32_t *grid, uint64_t begin, uint64_t end,
                                                     void *scratch);
${assembly}
#else
static void ${symbol}(void *const *args, const uint32_t *grid, uint64_t begin, uint64_t end,
                      void *scratch) {
  (void)args, (void)grid, (void)begin, (void)end, (void)scratch;
}
#endif

DEUTERON_MERGED ${launch} {
  /* The spans follow what the kernel tells, as it reads them. */
  struct {
    deuteron_control told;
    deuteron_span spans[${num_spans} + 1];
  } deuteron_block;
  static const char *const deuteron_names[] = {${names}NULL};
${shapes}  static const deuteron_access deuteron_accesses[] = {
${accesses}      {NULL, NULL, NULL, NULL, 0, 0, 0},
  };
  const deuteron_control deuteron_begin = {0, 0, {0, 0, 0}, 0, 0, 0};
  void *deuteron_args[] = {${args}};
  int deuteron_bad = 0;
  int64_t deuteron_parts[3];
  uint32_t deuteron_grid[3];
  deuteron_status deuteron_result;
  deuteron_parts[0] = ${grid_x};
  deuteron_parts[1] = ${grid_y};
  deuteron_parts[2] = ${grid_z};
  (void)stream;
  if (${message} && ${message_size})
    *${message} = 0;
  deuteron_result = deuteron_make_grid(deuteron_parts, deuteron_bad, deuteron_grid);
  if (deuteron_result != DEUTERON_SUCCESS || deuteron_grid[0] == 0)
    return deuteron_result;
  deuteron_result = deuteron_check();
  if (deuteron_result != DEUTERON_SUCCESS)
    return deuteron_result;
  deuteron_block.told = deuteron_begin;
${spans}${apart}  deuteron_result = ${run_grid};
  if (deuteron_block.told.stop != DEUTERON_FAILED)
    return deuteron_result;
  return deuteron_describe("${kernel}", deuteron_accesses, deuteron_names, deuteron_block.spans, ${num_spans},
                           &deuteron_block.told, ${message}, ${message_size});
}
