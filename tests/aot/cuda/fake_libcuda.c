/* A libcuda.so.1 without a GPU: keeps account of what it is asked for, checks what the driver's documentation demands, and
   fails where it is told to. Test programs reach the `fake_` functions through dlsym.

   A "cubin" is a text, `fake-cubin 9.0a SYMBOL 8 4 4`: the architecture, the kernel, the bytes of each parameter. What
   begins with `fake-ptx` instead runs on later architectures too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 8
#define MAX_PARAMS 64

enum {
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  NOT_FOUND = 500
};

typedef struct {
  int device, retained;
} context;

typedef struct library {
  struct library *next; /* among those that were unloaded */
  char symbol[256];
  int major, minor, is_exact, is_ptx, is_live, num_params, sizes[MAX_PARAMS], max_shared[MAX_DEVICES];
} library; /* and its one kernel: both handles are its address */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int num_devices = 1, capabilities[MAX_DEVICES] = {90, 90, 90, 90, 90, 90, 90, 90};
static int is_initialised, is_logging = 1;
static context primaries[MAX_DEVICES], of_streams[MAX_DEVICES], own_context;
static __thread context *current[16];
static __thread int depth;
static char log_text[1 << 20];
static size_t log_size;
static useconds_t launch_delay, load_delay; /* between a call and its effect */
static int64_t num_launches, live_libraries;
static char fail_function[64];
static int fail_call, fail_status;

static void fatal(const char *what) {
  fprintf(stderr, "fake libcuda: %s\n", what);
  abort();
}

/* Under the mutex. */
static void say(const char *format, ...) {
  va_list args;
  if (!is_logging || log_size > sizeof log_text - 4096)
    return;
  va_start(args, format);
  log_size += (size_t)vsnprintf(log_text + log_size, 4096, format, args);
  va_end(args);
}

/* Every function begins so: it is logged, and fails if it was told to, with the mutex released. */
static int enter(const char *function) {
  pthread_mutex_lock(&mutex);
  say("%s ", function);
  if (strcmp(function, fail_function) == 0 && --fail_call == 0) {
    fail_function[0] = 0;
    return fail_status;
  }
  if (!is_initialised && strcmp(function, "cuInit") != 0)
    return NOT_INITIALIZED;
  return 0;
}

static int leave(int status) {
  pthread_mutex_unlock(&mutex);
  return status;
}

#define ENTER                                                                                                          \
  int status = enter(__func__);                                                                                        \
  if (status)                                                                                                          \
  return leave(status)

/* What tests call. */

void fake_reset(void) {
  pthread_mutex_lock(&mutex);
  log_size = 0;
  log_text[0] = 0;
  fail_function[0] = 0;
  pthread_mutex_unlock(&mutex);
}

/* The call-th call of a function from now on fails. */
void fake_fail(const char *function, int call, int status) {
  pthread_mutex_lock(&mutex);
  snprintf(fail_function, sizeof fail_function, "%s", function);
  fail_call = call;
  fail_status = status;
  pthread_mutex_unlock(&mutex);
}

/* Capabilities as 90, 80, 0: before anything else. */
void fake_devices(const int *given) {
  for (num_devices = 0; given[num_devices]; num_devices++)
    capabilities[num_devices] = given[num_devices];
}

void fake_logging(int on) { is_logging = on; }

void fake_slow_launches(int microseconds) { launch_delay = (useconds_t)microseconds; }

void fake_slow_loads(int microseconds) { load_delay = (useconds_t)microseconds; }

const char *fake_log(void) { return log_text; }

int64_t fake_launches(void) { return num_launches; }

/* What a program that has unloaded everything still holds. */
int fake_leaks(void) {
  int i, found = (int)live_libraries;
  for (i = 0; i < MAX_DEVICES; i++)
    found += primaries[i].retained;
  return found + depth;
}

/* Makes a context of a device current in this thread, as a program would; -1 takes it away. */
void fake_use_device(int device) {
  depth = device < 0 ? 0 : 1;
  if (device >= 0) {
    current[0] = &primaries[device];
    primaries[device].device = device;
  }
}

/* The driver. */

int cuInit(unsigned flags) {
  ENTER;
  is_initialised = num_devices > 0;
  return leave(flags ? INVALID_VALUE : num_devices ? 0 : NO_DEVICE);
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

int cuDeviceGetCount(int *count) {
  ENTER;
  *count = num_devices;
  return leave(0);
}

int cuDeviceGet(int *device, int ordinal) {
  ENTER;
  if (ordinal < 0 || ordinal >= num_devices)
    return leave(INVALID_DEVICE);
  *device = ordinal;
  return leave(0);
}

/* Per block, for a kernel that asks. */
static int max_shared(int device) {
  return capabilities[device] == 80 ? 166912 : capabilities[device] / 10 == 8 ? 101376 : 232448;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER;
  if (device < 0 || device >= num_devices)
    return leave(INVALID_DEVICE);
  switch (attribute) {
  case 1: /* threads per block */
    *value = 1024;
    return leave(0);
  case 38: /* bytes of L2 cache */
    *value = 1 << 20;
    return leave(0);
  case 75:
    *value = capabilities[device] / 10;
    return leave(0);
  case 76:
    *value = capabilities[device] % 10;
    return leave(0);
  case 97:
    *value = max_shared(device);
    return leave(0);
  default:
    return leave(INVALID_VALUE);
  }
}

int cuCtxGetDevice(int *device) {
  ENTER;
  if (depth == 0)
    return leave(INVALID_CONTEXT);
  *device = current[depth - 1]->device;
  return leave(0);
}

int cuCtxSetCurrent(context *ctx) {
  ENTER;
  depth = ctx ? 1 : 0;
  current[0] = ctx;
  return leave(0);
}

int cuCtxPushCurrent_v2(context *ctx) {
  ENTER;
  if (ctx != &own_context && ctx->retained == 0)
    fatal("a context is used that was released");
  current[depth++] = ctx;
  return leave(0);
}

int cuCtxPopCurrent_v2(context **ctx) {
  ENTER;
  if (depth == 0)
    return leave(INVALID_CONTEXT);
  *ctx = current[--depth];
  return leave(0);
}

int cuCtxSynchronize(void) {
  ENTER;
  return leave(depth ? 0 : INVALID_CONTEXT);
}

int cuDevicePrimaryCtxRetain(context **ctx, int device) {
  ENTER;
  if (device < 0 || device >= num_devices)
    return leave(INVALID_DEVICE);
  primaries[device].device = device;
  primaries[device].retained++;
  *ctx = &primaries[device];
  return leave(0);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER;
  if (primaries[device].retained-- == 0)
    fatal("a primary context is released more often than retained");
  return leave(0);
}

/* Streams of device 1 are from 0x1000 on, those of device 2 from 0x2000 ...; all others are of device 0. */
int cuStreamGetCtx(void *stream, context **ctx) {
  const int device = (int)((uintptr_t)stream >> 12);
  ENTER;
  if ((uintptr_t)stream < 3)
    fatal("the context of a default stream is asked for");
  if (device >= num_devices)
    return leave(INVALID_CONTEXT);
  of_streams[device].device = device;
  of_streams[device].retained = 1;
  *ctx = &of_streams[device];
  return leave(0);
}

int cuLibraryLoadData(library **loaded, const void *code, int *jit_options, void **jit_values, unsigned num_jit,
                      int *options, void **values, unsigned num_options) {
  library *made;
  char minor[8] = "";
  const char *text = (const char *)code;
  char kind[8] = "";
  int used = 0, size, count;
  usleep(load_delay);
  ENTER;
  (void)jit_options, (void)jit_values, (void)options, (void)values;
  if (num_jit || num_options)
    fatal("options");
  made = (library *)calloc(1, sizeof *made);
  if (sscanf(text, "fake-%7s %d.%7s %255s%n", kind, &made->major, minor, made->symbol, &used) != 4) {
    free(made);
    return leave(INVALID_IMAGE);
  }
  made->minor = atoi(minor);
  made->is_ptx = strcmp(kind, "ptx") == 0;
  made->is_exact = strchr(minor, 'a') != NULL;
  for (; sscanf(text + used, "%d%n", &size, &count) == 1; used += count)
    made->sizes[made->num_params++] = size;
  made->is_live = 1;
  live_libraries++;
  *loaded = made;
  return leave(0);
}

int cuLibraryGetKernel(library **kernel, library *from, const char *symbol) {
  ENTER;
  if (!from->is_live)
    fatal("a library is used that was unloaded");
  if (strcmp(symbol, from->symbol) != 0)
    return leave(NOT_FOUND);
  *kernel = from;
  return leave(0);
}

/* The library stays readable, so that a use after this is noticed here and not by chance. */
int cuLibraryUnload(library *loaded) {
  static library *unloaded;
  ENTER;
  if (!loaded->is_live)
    fatal("a library is unloaded twice");
  loaded->is_live = 0;
  live_libraries--;
  loaded->next = unloaded;
  unloaded = loaded;
  return leave(0);
}

int cuKernelSetAttribute(int attribute, int value, library *kernel, int device) {
  ENTER;
  if (!kernel->is_live)
    fatal("an attribute is set of a kernel that was unloaded");
  if (attribute != 8 || device < 0 || device >= num_devices || value > max_shared(device))
    return leave(INVALID_VALUE);
  say("%d@%d ", value, device);
  kernel->max_shared[device] = value;
  return leave(0);
}

int cuKernelGetAttribute(int *value, int attribute, library *kernel, int device) {
  ENTER;
  (void)kernel, (void)device;
  *value = attribute == 0 ? 1024 : 0;
  return leave(0);
}

int cuKernelGetFunction(void **function, library *kernel) {
  ENTER;
  if (depth == 0)
    return leave(INVALID_CONTEXT);
  *function = kernel;
  return leave(0);
}

static int fits(const library *kernel, int capability) {
  const int minor = capability % 10;
  if (kernel->is_ptx)
    return 10 * kernel->major + kernel->minor <= capability;
  return kernel->major == capability / 10 && (kernel->is_exact ? kernel->minor == minor : kernel->minor <= minor);
}

static void say_argument(const void *value, int size) {
  uint64_t bits = 0;
  memcpy(&bits, value, (size_t)size);
  say("%llx,", (unsigned long long)bits);
}

static int launch(library *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
  int i, device;
  if (!kernel->is_live)
    fatal("a kernel is launched that was unloaded");
  if (depth == 0)
    return leave(INVALID_CONTEXT);
  device = current[depth - 1]->device;
  if (!fits(kernel, capabilities[device]))
    return leave(NO_BINARY_FOR_GPU);
  if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || bx * by * bz > 1024 || extra)
    return leave(INVALID_VALUE);
  if (shared > 48 * 1024 && (int)shared > kernel->max_shared[device])
    return leave(INVALID_VALUE);
  num_launches++;
  say("%s%s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%p device=%d args=", kernel->is_ptx ? "translated " : "",
      kernel->symbol, gx, gy, gz, bx, by, bz,
      shared, stream, device);
  for (i = 0; i < kernel->num_params; i++)
    if (kernel->sizes[i] == 128)
      say("[%s]", (const char *)params[i]);
    else
      say_argument(params[i], kernel->sizes[i]);
  say(" ");
  return leave(0);
}

int cuLaunchKernel(library *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
  usleep(launch_delay);
  ENTER;
  return launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

/* As cuda.h lays them out. */
typedef struct {
  int id;
  char pad[4];
  union {
    int number;
    char bytes[64];
  } value;
} launch_attribute;

typedef struct {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void *stream;
  launch_attribute *attributes;
  unsigned count;
} launch_config;

int cuLaunchKernelEx(const launch_config *config, library *kernel, void **params, void **extra) {
  unsigned i;
  usleep(launch_delay);
  ENTER;
  for (i = 0; i < config->count; i++)
    say("attribute %d=%d ", config->attributes[i].id, config->attributes[i].value.number);
  return launch(kernel, config->gx, config->gy, config->gz, config->bx, config->by, config->bz, config->shared,
                config->stream, params, extra);
}

/* A "map" is its address, sizes, strides, box, type, swizzle and fill. */
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  uint32_t i;
  ENTER;
  if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || rank < 1 || rank > 5 || interleave || promotion != 2)
    return leave(INVALID_VALUE);
  memset(map, 0, 128);
  snprintf(map, 128, "%p type=%d swizzle=%d fill=%d", address, type, swizzle, fill);
  for (i = 0; i < rank; i++) {
    char *end = (char *)map + strlen(map);
    if (sizes[i] < 1 || box[i] < 1 || box[i] > 256 || steps[i] != 1 || (i + 1 < rank && strides[i] % 16))
      return leave(INVALID_VALUE);
    snprintf(end, (size_t)(128 - (end - (char *)map)), " %llu/%u", (unsigned long long)sizes[i], box[i]);
    end += strlen(end);
    if (i + 1 < rank)
      snprintf(end, (size_t)(128 - (end - (char *)map)), "*%llu", (unsigned long long)strides[i]);
  }
  return leave(0);
}

/* What `cuda.bindings` finds the others by. */
int cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  char versioned[128];
  (void)version, (void)flags;
  snprintf(versioned, sizeof versioned, "%s_v2", symbol);
  *found = dlsym(driver, versioned);
  if (!*found)
    *found = dlsym(driver, symbol);
  if (status)
    *status = *found ? 0 : 1;
  return *found ? 0 : NOT_FOUND;
}
