/* What TMA copies, as backend/tensor_map.py has it: an address, a size in elements, a stride in bytes. */
#include <stdbool.h>
#include <stdint.h>

static inline bool deuteron_is_address(uint64_t address) { return address % 16 == 0; }

static inline bool deuteron_is_size(int64_t size) { return size >= 1 && size <= INT64_C(1) << 32; }

static inline bool deuteron_is_stride(int64_t bytes) {
  return bytes >= 0 && bytes % 16 == 0 && bytes < INT64_C(1) << 40;
}
