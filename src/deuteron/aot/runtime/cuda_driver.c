/* The CUDA driver, which is opened at run time, and the contexts that threads are in. In every emitted file, weak and
   hidden, so that all kernels of a program (or of a shared library) share what is known of the driver. Names end in the
   version of this interface: files of two versions link too. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "cancel.c"
#include "cuda_types.h"
#include "status.h"

#define DEUTERON_SHARED __attribute__((weak, visibility("hidden")))

/* Numbers of cuda.h. */
#define DEUTERON_CUDA_SHARED_ATTRIBUTE 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define DEUTERON_CUDA_MAJOR 75           /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define DEUTERON_CUDA_MINOR 76
#define DEUTERON_CUDA_MAX_SHARED 97 /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
#define DEUTERON_CUDA_LAST_DEFAULT_STREAM 2 /* CU_STREAM_PER_THREAD: up to it streams are those of the current context */

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct {
  pthread_mutex_t mutex; /* over all that follows, and the kernels */
  int is_open;           /* atomic: the functions can be called */
  void *handle;
  int num_devices;
  void *primary; /* atomic: the primary context of device 0, kept from the first launch that needs it */
  int watches_fork, is_forked; /* the driver was in use when this process was forked, and cannot be used in it */
  deuteron_cuda_functions call;
} deuteron_cuda;

extern deuteron_cuda deuteron_cuda_v5;
DEUTERON_SHARED deuteron_cuda deuteron_cuda_v5 = {
    PTHREAD_MUTEX_INITIALIZER, 0, NULL, 0, NULL, 0, 0,
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}};

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

static inline int deuteron_cuda_lock(deuteron_cuda *cuda) {
  const int cancel = deuteron_put_off_cancel(); /* the driver opens files */
  pthread_mutex_lock(&cuda->mutex);
  return cancel;
}

static inline void deuteron_cuda_unlock(deuteron_cuda *cuda, int cancel) {
  pthread_mutex_unlock(&cuda->mutex);
  deuteron_put_back_cancel(cancel);
}

static inline int deuteron_cuda_open(deuteron_cuda *cuda) {
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
static inline int deuteron_cuda_enter(deuteron_cuda *cuda, void *stream, int *device, int *is_pushed) {
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

static inline void deuteron_cuda_leave(deuteron_cuda *cuda, int is_pushed) {
  void *context;
  if (is_pushed)
    (void)cuda->call.ctx_pop_current(&context);
}

#ifdef __cplusplus
}
#endif
