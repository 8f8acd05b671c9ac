/* Launches kernels through the CUDA driver, which is opened at run time. In every emitted file, weak and hidden, so that all
   kernels of a program (or of a shared library) share what is known of the driver. Names end in the version of this
   interface: files of two versions link too.

   A launch runs on the device of its stream, whichever device is current.

   A kernel's library is loaded once in a process, for all devices (cuLibraryLoadData); a device is prepared at the first
   launch on it. From then on a launch takes no lock: it counts itself among the kernel's users while the driver has the
   kernel, and unloading takes the kernel away and waits for the users. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "cancel.c"
#include "cuda_types.h"
#include "status.h"
#include "tensors.c"

#define DEUTERON_SHARED __attribute__((weak, visibility("hidden")))
#define DEUTERON_MAX_STATIC_SHARED 49152u /* what every kernel may have without asking */
#define DEUTERON_MAX_DEVICES 64           /* of further ones nothing is remembered */

/* Numbers of cuda.h. */
#define DEUTERON_CUDA_SHARED_ATTRIBUTE 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define DEUTERON_CUDA_MAJOR 75           /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define DEUTERON_CUDA_MINOR 76
#define DEUTERON_MAX_RANK 5
#define DEUTERON_MAP_BYTES 128
#define DEUTERON_KEPT_MAPS 32 /* of each thread */
#define DEUTERON_PROMOTION_128B 2 /* CU_TENSOR_MAP_L2_PROMOTION_L2_128B */
#define DEUTERON_CUDA_MAX_SHARED 97 /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
#define DEUTERON_CUDA_LAST_DEFAULT_STREAM 2 /* CU_STREAM_PER_THREAD: up to it streams are those of the current context */

#ifdef __cplusplus
extern "C" {
#endif

/* What a device must be to run an image: of the major capability that it is for, and not less; of that capability; or
   not less, as for PTX, which the driver translates. */
enum { DEUTERON_FITS_MAJOR, DEUTERON_FITS_EXACTLY, DEUTERON_FITS_NEWER };

/* What a launch asks for besides, as bits, and their numbers in cuda.h, where the value of an attribute is an int here. */
enum { DEUTERON_LAUNCH_COOPERATIVE = 1, DEUTERON_LAUNCH_PDL = 2, DEUTERON_LAUNCH_KINDS = 2 };
#define DEUTERON_CUDA_COOPERATIVE 2 /* CU_LAUNCH_ATTRIBUTE_COOPERATIVE */
#define DEUTERON_CUDA_PDL 6         /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct {
  int id, unused, value, rest[15];
} deuteron_launch_attribute;

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  deuteron_launch_attribute *attributes;
  unsigned num_attributes;
} deuteron_launch_config;

/* The functions of the driver that are called; handles are pointers, devices and statuses are int. */
typedef struct {
  int (*init)(unsigned flags);
  int (*device_get_count)(int *count);
  int (*device_get)(int *device, int ordinal);
  int (*device_get_attribute)(int *value, int attribute, int device);
  int (*ctx_get_device)(int *device);
  int (*ctx_push_current)(void *context);
  int (*ctx_pop_current)(void **context);
  int (*primary_ctx_retain)(void **context, int device);
  int (*stream_get_ctx)(void *stream, void **context);
  int (*library_load_data)(void **library, const void *image, int *jit_options, void **jit_values, unsigned num_jit,
                           int *options, void **values, unsigned num_options);
  int (*library_get_kernel)(void **kernel, void *library, const char *symbol);
  int (*library_unload)(void *library);
  int (*kernel_get_function)(void **function, void *kernel);
  int (*kernel_set_attribute)(int attribute, int value, void *kernel, int device);
  int (*launch_kernel)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **args, void **extra);
  int (*launch_kernel_ex)(const deuteron_launch_config *config, void *kernel, void **args, void **extra);
  int (*tensor_map_encode_tiled)(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                                 const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                 int swizzle, int l2_promotion, int fill);
} deuteron_cuda_functions;

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

typedef struct {
  pthread_mutex_t mutex; /* over all that follows, and the kernels */
  int is_open;           /* atomic: the functions can be called */
  void *handle;
  int num_devices;
  void *primary; /* atomic: the primary context of device 0, kept from the first launch that needs it */
  int watches_fork, is_forked; /* the driver was in use when this process was forked, and cannot be used in it */
  deuteron_cuda_functions call;
} deuteron_cuda;

/* A kernel: what was compiled, and what has become of it. Devices are bits. */
typedef struct deuteron_cuda_kernel {
  const void *image;
  const char *symbol;
  unsigned num_threads, shared;
  int capability, fits; /* 90 is 9.0, and DEUTERON_FITS_... */
  unsigned attributes;  /* DEUTERON_LAUNCH_... */
  struct deuteron_cuda_kernel *otherwise; /* another image of it, for devices that do not run this one */
  void *library;
  void *kernel;          /* atomic: NULL while it is not loaded */
  uint64_t ready, unfit; /* atomic: devices that it can be launched on, and that it cannot be */
  int64_t users;         /* atomic: launches that may be using the kernel */
  int64_t loads;         /* calls of load less calls of unload, of the first image */
} deuteron_cuda_kernel;

extern deuteron_cuda deuteron_cuda_v5;
extern __thread deuteron_kept_map deuteron_cuda_maps_v5[DEUTERON_KEPT_MAPS];
int deuteron_cuda_launch_v5(deuteron_cuda_kernel *kernel, void **args, const uint32_t *grid, void *stream);
int deuteron_cuda_load_v5(deuteron_cuda_kernel *kernel);
int deuteron_cuda_unload_v5(deuteron_cuda_kernel *kernel);
int deuteron_cuda_supports_v5(const deuteron_cuda_kernel *kernel);
int deuteron_cuda_capability_v5(void);
int deuteron_cuda_encode_v5(const deuteron_tensor_box *box, uint64_t address, const int64_t *sizes, const int64_t *strides,
                            void *map);

DEUTERON_SHARED deuteron_cuda deuteron_cuda_v5 = {
    PTHREAD_MUTEX_INITIALIZER, 0, NULL, 0, NULL, 0, 0,
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}};

DEUTERON_SHARED __thread deuteron_kept_map deuteron_cuda_maps_v5[DEUTERON_KEPT_MAPS];

/* Finds the functions in the driver; returns 0 where one is missing. */
static int deuteron_cuda_find(deuteron_cuda *cuda) {
  static const struct {
    const char *name;
    size_t offset;
  } functions[] = {
      {"cuInit", offsetof(deuteron_cuda_functions, init)},
      {"cuDeviceGetCount", offsetof(deuteron_cuda_functions, device_get_count)},
      {"cuDeviceGet", offsetof(deuteron_cuda_functions, device_get)},
      {"cuDeviceGetAttribute", offsetof(deuteron_cuda_functions, device_get_attribute)},
      {"cuCtxGetDevice", offsetof(deuteron_cuda_functions, ctx_get_device)},
      {"cuCtxPushCurrent_v2", offsetof(deuteron_cuda_functions, ctx_push_current)},
      {"cuCtxPopCurrent_v2", offsetof(deuteron_cuda_functions, ctx_pop_current)},
      {"cuDevicePrimaryCtxRetain", offsetof(deuteron_cuda_functions, primary_ctx_retain)},
      {"cuStreamGetCtx", offsetof(deuteron_cuda_functions, stream_get_ctx)},
      {"cuLibraryLoadData", offsetof(deuteron_cuda_functions, library_load_data)},
      {"cuLibraryGetKernel", offsetof(deuteron_cuda_functions, library_get_kernel)},
      {"cuLibraryUnload", offsetof(deuteron_cuda_functions, library_unload)},
      {"cuKernelGetFunction", offsetof(deuteron_cuda_functions, kernel_get_function)},
      {"cuKernelSetAttribute", offsetof(deuteron_cuda_functions, kernel_set_attribute)},
      {"cuLaunchKernel", offsetof(deuteron_cuda_functions, launch_kernel)},
      {"cuLaunchKernelEx", offsetof(deuteron_cuda_functions, launch_kernel_ex)},
      {"cuTensorMapEncodeTiled", offsetof(deuteron_cuda_functions, tensor_map_encode_tiled)},
  };
  size_t i;
  for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *found = dlsym(cuda->handle, functions[i].name);
    if (!found)
      return 0;
    memcpy((char *)&cuda->call + functions[i].offset, &found, sizeof found);
  }
  return 1;
}

/* A child has none of the threads that may have held the mutex, and the driver does not work in it once it was opened before.
   Only the child does something: the driver forks itself, while it is opened under the mutex. */
static void deuteron_cuda_in_child(void) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  if (pthread_mutex_trylock(&cuda->mutex) != 0 || cuda->is_open)
    cuda->is_forked = 1;
  cuda->is_open = 0;
  pthread_mutex_init(&cuda->mutex, NULL);
}

/* Opens the driver; what fails is tried again by the next call. Under the mutex. */
static int deuteron_cuda_open_locked(deuteron_cuda *cuda) {
  int result;
  if (cuda->is_open)
    return DEUTERON_SUCCESS;
  if (cuda->is_forked)
    return DEUTERON_ERROR_NOT_INITIALIZED;
  if (!cuda->watches_fork)
    cuda->watches_fork = !pthread_atfork(NULL, NULL, deuteron_cuda_in_child);
  if (!cuda->handle)
    cuda->handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!cuda->handle)
    return DEUTERON_ERROR_NO_DRIVER;
  if (!deuteron_cuda_find(cuda)) {
    dlclose(cuda->handle);
    cuda->handle = NULL;
    return DEUTERON_ERROR_OLD_DRIVER;
  }
  result = cuda->call.init(0);
  if (result == DEUTERON_SUCCESS)
    result = cuda->call.device_get_count(&cuda->num_devices);
  if (result == DEUTERON_SUCCESS)
    __atomic_store_n(&cuda->is_open, 1, __ATOMIC_RELEASE);
  return result;
}

static int deuteron_cuda_lock(deuteron_cuda *cuda) {
  const int cancel = deuteron_put_off_cancel(); /* the driver opens files */
  pthread_mutex_lock(&cuda->mutex);
  return cancel;
}

static void deuteron_cuda_unlock(deuteron_cuda *cuda, int cancel) {
  pthread_mutex_unlock(&cuda->mutex);
  deuteron_put_back_cancel(cancel);
}

static int deuteron_cuda_open(deuteron_cuda *cuda) {
  int result = DEUTERON_SUCCESS;
  if (!__atomic_load_n(&cuda->is_open, __ATOMIC_ACQUIRE)) {
    const int cancel = deuteron_cuda_lock(cuda);
    result = deuteron_cuda_open_locked(cuda);
    deuteron_cuda_unlock(cuda, cancel);
  }
  return result;
}

/* The primary context of device 0. It is never released, as work that was launched in it may still run. */
static int deuteron_cuda_primary(deuteron_cuda *cuda, void **context) {
  int device, cancel, result = DEUTERON_SUCCESS;
  *context = __atomic_load_n(&cuda->primary, __ATOMIC_ACQUIRE);
  if (*context)
    return result;
  cancel = deuteron_cuda_lock(cuda);
  if (!cuda->primary) {
    result = cuda->call.device_get(&device, 0);
    if (result == DEUTERON_SUCCESS)
      result = cuda->call.primary_ctx_retain(context, device);
    if (result == DEUTERON_SUCCESS)
      __atomic_store_n(&cuda->primary, *context, __ATOMIC_RELEASE);
  }
  *context = cuda->primary;
  deuteron_cuda_unlock(cuda, cancel);
  return result;
}

/* The device that a launch on the stream runs on, in whose context the thread is until `leave`: that of the stream, else
   the thread's own, else the primary one of device 0. */
static int deuteron_cuda_enter(deuteron_cuda *cuda, void *stream, int *device, int *is_pushed) {
  void *context;
  int result = deuteron_cuda_open(cuda);
  *is_pushed = 0;
  if (result != DEUTERON_SUCCESS)
    return result;
  if (cuda->num_devices > 1 && (uintptr_t)stream > DEUTERON_CUDA_LAST_DEFAULT_STREAM) {
    result = cuda->call.stream_get_ctx(stream, &context);
  } else {
    result = cuda->call.ctx_get_device(device);
    if (result != DEUTERON_ERROR_INVALID_CONTEXT)
      return result;
    result = deuteron_cuda_primary(cuda, &context);
  }
  if (result == DEUTERON_SUCCESS)
    result = cuda->call.ctx_push_current(context);
  if (result != DEUTERON_SUCCESS)
    return result;
  *is_pushed = 1;
  return cuda->call.ctx_get_device(device);
}

static void deuteron_cuda_leave(deuteron_cuda *cuda, int is_pushed) {
  void *context;
  if (is_pushed)
    (void)cuda->call.ctx_pop_current(&context);
}

static uint64_t deuteron_cuda_bit(int device) {
  return device >= 0 && device < DEUTERON_MAX_DEVICES ? (uint64_t)1 << device : 0;
}

static int deuteron_cuda_runs(const deuteron_cuda_kernel *kernel, int major, int minor) {
  const int device = 10 * major + minor;
  switch (kernel->fits) {
  case DEUTERON_FITS_EXACTLY:
    return device == kernel->capability;
  case DEUTERON_FITS_NEWER:
    return device >= kernel->capability;
  default:
    return major == kernel->capability / 10 && device >= kernel->capability;
  }
}

/* Whether a device runs the kernel's code and has the shared memory for it, as a status. */
static int deuteron_cuda_fits(deuteron_cuda *cuda, const deuteron_cuda_kernel *kernel, int device) {
  int major, minor, result, max_shared = (int)DEUTERON_MAX_STATIC_SHARED;
  result = cuda->call.device_get_attribute(&major, DEUTERON_CUDA_MAJOR, device);
  if (result == DEUTERON_SUCCESS)
    result = cuda->call.device_get_attribute(&minor, DEUTERON_CUDA_MINOR, device);
  if (result == DEUTERON_SUCCESS && kernel->shared > DEUTERON_MAX_STATIC_SHARED)
    result = cuda->call.device_get_attribute(&max_shared, DEUTERON_CUDA_MAX_SHARED, device);
  if (result != DEUTERON_SUCCESS)
    return result;
  if (kernel->shared > (unsigned)max_shared)
    return DEUTERON_ERROR_UNSUPPORTED_DEVICE;
  return deuteron_cuda_runs(kernel, major, minor) ? DEUTERON_SUCCESS : DEUTERON_ERROR_UNSUPPORTED_DEVICE;
}

/* Takes the kernel away and waits until no launch uses it. Under the mutex, which launches that use it do not need. */
static int deuteron_cuda_drop(deuteron_cuda *cuda, deuteron_cuda_kernel *kernel) {
  void *library = kernel->library;
  if (!library)
    return DEUTERON_SUCCESS;
  __atomic_store_n(&kernel->kernel, NULL, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&kernel->users, __ATOMIC_SEQ_CST) > 0)
    sched_yield();
  __atomic_store_n(&kernel->ready, 0, __ATOMIC_RELEASE);
  kernel->library = NULL;
  return cuda->call.library_unload(library);
}

/* Loads the kernel, if it is not, and tells the device what it must know. Under the mutex. */
static int deuteron_cuda_prepare(deuteron_cuda *cuda, deuteron_cuda_kernel *kernel, int device) {
  const int is_first = !kernel->library;
  void *found = kernel->kernel;
  int result = deuteron_cuda_fits(cuda, kernel, device);
  if (result == DEUTERON_ERROR_UNSUPPORTED_DEVICE)
    __atomic_fetch_or(&kernel->unfit, deuteron_cuda_bit(device), __ATOMIC_RELEASE);
  if (result == DEUTERON_SUCCESS && is_first) {
    result = cuda->call.library_load_data(&kernel->library, kernel->image, NULL, NULL, 0, NULL, NULL, 0);
    if (result != DEUTERON_SUCCESS)
      kernel->library = NULL;
    else
      result = cuda->call.library_get_kernel(&found, kernel->library, kernel->symbol);
  }
  if (result == DEUTERON_SUCCESS && kernel->shared > DEUTERON_MAX_STATIC_SHARED)
    result = cuda->call.kernel_set_attribute(DEUTERON_CUDA_SHARED_ATTRIBUTE, (int)kernel->shared, found, device);
  if (result == DEUTERON_SUCCESS) {
    __atomic_fetch_or(&kernel->ready, deuteron_cuda_bit(device), __ATOMIC_RELEASE);
    __atomic_store_n(&kernel->kernel, found, __ATOMIC_SEQ_CST);
  } else if (is_first) {
    (void)deuteron_cuda_drop(cuda, kernel);
  }
  return result;
}

/* The kernel, ready for the device. If it succeeds the caller is a user of the kernel and has to say when it no longer is. */
static int deuteron_cuda_use(deuteron_cuda *cuda, deuteron_cuda_kernel *kernel, int device, void **found) {
  const uint64_t bit = deuteron_cuda_bit(device);
  int cancel, result;
  if (__atomic_load_n(&kernel->unfit, __ATOMIC_ACQUIRE) & bit)
    return DEUTERON_ERROR_UNSUPPORTED_DEVICE;
  __atomic_fetch_add(&kernel->users, 1, __ATOMIC_SEQ_CST);
  *found = __atomic_load_n(&kernel->kernel, __ATOMIC_SEQ_CST);
  if (*found && (__atomic_load_n(&kernel->ready, __ATOMIC_ACQUIRE) & bit))
    return DEUTERON_SUCCESS;
  __atomic_fetch_sub(&kernel->users, 1, __ATOMIC_RELEASE);
  cancel = deuteron_cuda_lock(cuda);
  result = deuteron_cuda_prepare(cuda, kernel, device);
  if (result == DEUTERON_SUCCESS) {
    *found = kernel->kernel;
    __atomic_fetch_add(&kernel->users, 1, __ATOMIC_SEQ_CST);
  }
  deuteron_cuda_unlock(cuda, cancel);
  return result;
}

static void deuteron_launch_asks(deuteron_launch_config *config, int id) {
  deuteron_launch_attribute *attribute = &config->attributes[config->num_attributes++];
  memset(attribute, 0, sizeof *attribute);
  attribute->id = id;
  attribute->value = 1;
}

static int deuteron_cuda_queue(deuteron_cuda *cuda, const deuteron_cuda_kernel *kernel, void *found, void **args,
                               const uint32_t *grid, void *stream) {
  deuteron_launch_attribute attributes[DEUTERON_LAUNCH_KINDS];
  deuteron_launch_config config;
  if (!kernel->attributes)
    return cuda->call.launch_kernel(found, grid[0], grid[1], grid[2], kernel->num_threads, 1, 1, kernel->shared, stream,
                                    args, NULL);
  memcpy(config.grid, grid, sizeof config.grid);
  config.block[0] = kernel->num_threads;
  config.block[1] = config.block[2] = 1;
  config.shared = kernel->shared;
  config.stream = stream;
  config.attributes = attributes;
  config.num_attributes = 0;
  if (kernel->attributes & DEUTERON_LAUNCH_COOPERATIVE)
    deuteron_launch_asks(&config, DEUTERON_CUDA_COOPERATIVE);
  if (kernel->attributes & DEUTERON_LAUNCH_PDL)
    deuteron_launch_asks(&config, DEUTERON_CUDA_PDL);
  return cuda->call.launch_kernel_ex(&config, found, args, NULL);
}

/* Queues the kernel on a stream, in the first image that its device runs. Any thread may call it
   at any time. */
DEUTERON_SHARED int deuteron_cuda_launch_v5(deuteron_cuda_kernel *kernel, void **args, const uint32_t *grid,
                                            void *stream) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  void *found;
  int device, is_pushed;
  int result = deuteron_cuda_enter(cuda, stream, &device, &is_pushed);
  if (result == DEUTERON_SUCCESS)
    while ((result = deuteron_cuda_use(cuda, kernel, device, &found)) == DEUTERON_ERROR_UNSUPPORTED_DEVICE &&
           kernel->otherwise)
      kernel = kernel->otherwise;
  if (result == DEUTERON_SUCCESS) {
    result = deuteron_cuda_queue(cuda, kernel, found, args, grid, stream);
    __atomic_fetch_sub(&kernel->users, 1, __ATOMIC_RELEASE);
  }
  deuteron_cuda_leave(cuda, is_pushed);
  return result;
}

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

/* Encodes the map of a tensor for TMA, or takes that of an earlier launch of this thread with equal arguments. Sizes count elements and strides bytes, the innermost dimension first, whose stride
   is left out. INVALID_VALUE where TMA cannot copy such a tensor. */
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

/* Prepares an image for the device, and has the driver bring its code there. Under the mutex. */
static int deuteron_cuda_bring(deuteron_cuda *cuda, deuteron_cuda_kernel *kernel, int device) {
  const int is_first = !kernel->library;
  void *function;
  int result = deuteron_cuda_prepare(cuda, kernel, device);
  if (result != DEUTERON_SUCCESS)
    return result;
  result = cuda->call.kernel_get_function(&function, kernel->kernel);
  if (result != DEUTERON_SUCCESS && is_first)
    (void)deuteron_cuda_drop(cuda, kernel);
  return result;
}

/* Does what the first launch on the current device would do, the transfer of the code included. */
DEUTERON_SHARED int deuteron_cuda_load_v5(deuteron_cuda_kernel *kernel) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  deuteron_cuda_kernel *image = kernel;
  int device, is_pushed;
  int result = deuteron_cuda_enter(cuda, NULL, &device, &is_pushed);
  if (result == DEUTERON_SUCCESS) {
    const int cancel = deuteron_cuda_lock(cuda);
    while ((result = deuteron_cuda_bring(cuda, image, device)) == DEUTERON_ERROR_UNSUPPORTED_DEVICE && image->otherwise)
      image = image->otherwise;
    if (result == DEUTERON_SUCCESS)
      kernel->loads++;
    deuteron_cuda_unlock(cuda, cancel);
  }
  deuteron_cuda_leave(cuda, is_pushed);
  return result;
}

/* The last unload takes the kernel from the driver; a later launch loads it again. */
DEUTERON_SHARED int deuteron_cuda_unload_v5(deuteron_cuda_kernel *kernel) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  const int cancel = deuteron_cuda_lock(cuda);
  int result = DEUTERON_SUCCESS, is_last;
  if (cuda->is_forked) { /* the code is the parent's */
    deuteron_cuda_unlock(cuda, cancel);
    return DEUTERON_ERROR_NOT_INITIALIZED;
  }
  is_last = kernel->loads <= 1;
  kernel->loads -= kernel->loads > 0;
  for (; is_last && kernel; kernel = kernel->otherwise) {
    const int dropped = deuteron_cuda_drop(cuda, kernel);
    result = result == DEUTERON_SUCCESS ? dropped : result;
  }
  deuteron_cuda_unlock(cuda, cancel);
  return result;
}

/* Whether the current device runs one of the kernel's images, as a status. Nothing is loaded. */
DEUTERON_SHARED int deuteron_cuda_supports_v5(const deuteron_cuda_kernel *kernel) {
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  int device, is_pushed;
  int result = deuteron_cuda_enter(cuda, NULL, &device, &is_pushed);
  if (result == DEUTERON_SUCCESS)
    while ((result = deuteron_cuda_fits(cuda, kernel, device)) == DEUTERON_ERROR_UNSUPPORTED_DEVICE && kernel->otherwise)
      kernel = kernel->otherwise;
  deuteron_cuda_leave(cuda, is_pushed);
  return result;
}

/* 90 where the current device is of compute capability 9.0; 0 where that cannot be said. */
DEUTERON_SHARED int deuteron_cuda_capability_v5(void) {
  static int known[DEUTERON_MAX_DEVICES]; /* atomic */
  deuteron_cuda *cuda = &deuteron_cuda_v5;
  int device, is_pushed, major, minor, found = 0;
  const int result = deuteron_cuda_enter(cuda, NULL, &device, &is_pushed);
  const uint64_t bit = result == DEUTERON_SUCCESS ? deuteron_cuda_bit(device) : 0;
  if (bit)
    found = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (result == DEUTERON_SUCCESS && !found &&
      cuda->call.device_get_attribute(&major, DEUTERON_CUDA_MAJOR, device) == DEUTERON_SUCCESS &&
      cuda->call.device_get_attribute(&minor, DEUTERON_CUDA_MINOR, device) == DEUTERON_SUCCESS)
    found = 10 * major + minor;
  if (bit)
    __atomic_store_n(&known[device], found, __ATOMIC_RELAXED);
  deuteron_cuda_leave(cuda, is_pushed);
  return found;
}

#ifdef __cplusplus
}
#endif
