/* Loads kernels through the CUDA driver, and launches them.

   A launch runs on the device of its stream, whichever device is current.

   A kernel's library is loaded once in a process, for all devices (cuLibraryLoadData); a device is prepared at the first
   launch on it. From then on a launch takes no lock: it counts itself among the kernel's users while the driver has the
   kernel, and unloading takes the kernel away and waits for the users. */
#include <sched.h>

#include "cuda_driver.c"

#define DEUTERON_MAX_STATIC_SHARED 49152u /* what every kernel may have without asking */
#define DEUTERON_MAX_DEVICES 64           /* of further ones nothing is remembered */

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

int deuteron_cuda_launch_v5(deuteron_cuda_kernel *kernel, void **args, const uint32_t *grid, void *stream);
int deuteron_cuda_load_v5(deuteron_cuda_kernel *kernel);
int deuteron_cuda_unload_v5(deuteron_cuda_kernel *kernel);
int deuteron_cuda_supports_v5(const deuteron_cuda_kernel *kernel);
int deuteron_cuda_capability_v5(void);

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
