/* Encodes the tensor maps of a kernel that copies by TMA, before its launch, and keeps them for the next ones. */
#include "cuda_driver.c"
#include "tensors.c"

#define DEUTERON_MAX_RANK 5
#define DEUTERON_MAP_BYTES 128
#define DEUTERON_KEPT_MAPS 32     /* of each thread */
#define DEUTERON_PROMOTION_128B 2 /* CU_TENSOR_MAP_L2_PROMOTION_L2_128B */

#ifdef __cplusplus
extern "C" {
#endif

/* What a copy of TMA moves: the type of elements, the swizzle and the fill as numbers of cuda.h, extents of the box. */
typedef struct {
  int type, rank, swizzle, fill;
  uint32_t extents[DEUTERON_MAX_RANK];
} deuteron_tensor_box;

/* A map that was encoded, and of what; its `box` is NULL where there is none. */
typedef struct {
  const deuteron_tensor_box *box;
  uint64_t address;
  int64_t sizes[DEUTERON_MAX_RANK], strides[DEUTERON_MAX_RANK];
  unsigned char map[DEUTERON_MAP_BYTES];
} deuteron_kept_map;

extern __thread deuteron_kept_map deuteron_cuda_maps_v5[DEUTERON_KEPT_MAPS];
int deuteron_cuda_encode_v5(const deuteron_tensor_box *box, uint64_t address, const int64_t *sizes, const int64_t *strides,
                            void *map);

DEUTERON_SHARED __thread deuteron_kept_map deuteron_cuda_maps_v5[DEUTERON_KEPT_MAPS];

/* Where a map may be kept. A kernel's box has one address, which stands for the box. */
static deuteron_kept_map *deuteron_cuda_kept(const deuteron_tensor_box *box, uint64_t address) {
  const uint64_t mixed = (address ^ (uint64_t)(uintptr_t)box << 16) * UINT64_C(0x9E3779B97F4A7C15);
  return &deuteron_cuda_maps_v5[mixed >> 32 & (DEUTERON_KEPT_MAPS - 1)];
}

static int deuteron_cuda_is_kept(const deuteron_kept_map *kept, const deuteron_tensor_box *box, uint64_t address,
                                 const int64_t *sizes, const int64_t *strides) {
  const size_t bytes = (size_t)box->rank * sizeof *sizes;
  return kept->box == box && kept->address == address && !memcmp(kept->sizes, sizes, bytes) &&
         !memcmp(kept->strides, strides, bytes);
}

static void deuteron_cuda_keep(deuteron_kept_map *kept, const deuteron_tensor_box *box, uint64_t address,
                               const int64_t *sizes, const int64_t *strides, const void *map) {
  const size_t bytes = (size_t)box->rank * sizeof *sizes;
  kept->box = box;
  kept->address = address;
  memcpy(kept->sizes, sizes, bytes);
  memcpy(kept->strides, strides, bytes);
  memcpy(kept->map, map, DEUTERON_MAP_BYTES);
}

/* Encodes the map of a tensor, or takes that of an earlier launch of this thread with equal arguments. Sizes count elements
   and strides bytes, the innermost dimension first, whose stride is left out. INVALID_VALUE where TMA cannot copy it. */
DEUTERON_SHARED int deuteron_cuda_encode_v5(const deuteron_tensor_box *box, uint64_t address, const int64_t *sizes,
                                            const int64_t *strides, void *map) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  uint64_t extents[DEUTERON_MAX_RANK], distances[DEUTERON_MAX_RANK];
  uint32_t steps[DEUTERON_MAX_RANK];
  deuteron_kept_map *kept = deuteron_cuda_kept(box, address);
  int i, result;
  if (deuteron_cuda_is_kept(kept, box, address, sizes, strides)) {
    memcpy(map, kept->map, DEUTERON_MAP_BYTES);
    return DEUTERON_SUCCESS;
  }
  for (i = 0; i < box->rank; i++) {
    const int is_last = i == box->rank - 1;
    if (!deuteron_is_size(sizes[i]) || (!is_last && !deuteron_is_stride(strides[i])))
      return DEUTERON_ERROR_INVALID_VALUE;
    extents[i] = (uint64_t)sizes[i];
    distances[i] = is_last ? 0 : (uint64_t)strides[i];
    steps[i] = 1;
  }
  if (!deuteron_is_address(address))
    return DEUTERON_ERROR_INVALID_VALUE;
  result = deuteron_cuda_open(cuda);
  if (result != DEUTERON_SUCCESS)
    return result;
  result = cuda->call.tensor_map_encode_tiled(map, box->type, (uint32_t)box->rank, (void *)(uintptr_t)address, extents,
                                              distances, box->extents, steps, 0, box->swizzle, DEUTERON_PROMOTION_128B,
                                              box->fill);
  if (result == DEUTERON_SUCCESS)
    deuteron_cuda_keep(kept, box, address, sizes, strides, map);
  return result;
}

#ifdef __cplusplus
}
#endif
