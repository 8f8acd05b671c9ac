/* What a call returns, the same numbers on every target: those of CUresult. On a GPU any other CUresult may be returned as
   the driver gives it; every one has a name. */
#ifndef DEUTERON_STATUS_H
#define DEUTERON_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define DEUTERON_SUCCESS ((deuteron_status)0)
#define DEUTERON_ERROR_INVALID_VALUE ((deuteron_status)1)             /* an argument, the grid or algo_id */
#define DEUTERON_ERROR_OUT_OF_MEMORY ((deuteron_status)2)             /* on the host or on the device */
#define DEUTERON_ERROR_NOT_INITIALIZED ((deuteron_status)3)            /* CUDA was, before this process was forked */
#define DEUTERON_ERROR_NO_DRIVER ((deuteron_status)35)                /* there is no libcuda.so.1 */
#define DEUTERON_ERROR_OLD_DRIVER ((deuteron_status)36)               /* it is older than CUDA 12.0 */
#define DEUTERON_ERROR_NO_DEVICE ((deuteron_status)100)               /* there is no GPU */
#define DEUTERON_ERROR_INVALID_CONTEXT ((deuteron_status)201)         /* the current context is not usable */
#define DEUTERON_ERROR_UNSUPPORTED_DEVICE ((deuteron_status)209)      /* the kernel needs another processor or GPU */
#define DEUTERON_ERROR_INVALID_HANDLE ((deuteron_status)400)          /* the stream is not of the current context */
#define DEUTERON_ERROR_ILLEGAL_ADDRESS ((deuteron_status)700)         /* of an earlier launch, as all from 700 to 719 */
#define DEUTERON_ERROR_LAUNCH_OUT_OF_RESOURCES ((deuteron_status)701) /* too many threads or registers */
#define DEUTERON_ERROR_ASSERT ((deuteron_status)710)                  /* a tl.device_assert of the kernel failed */
#define DEUTERON_ERROR_MISALIGNED_ADDRESS ((deuteron_status)716)
#define DEUTERON_ERROR_LAUNCH_FAILED ((deuteron_status)719)
#define DEUTERON_ERROR_NO_KERNEL ((deuteron_status)1001) /* none was compiled for such arguments: of ..._supports only */

/* The name of a status, never NULL. */
const char *deuteron_status_string(deuteron_status status);

#ifdef __cplusplus
}
#endif

#endif
