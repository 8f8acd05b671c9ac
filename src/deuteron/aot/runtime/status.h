/* What a call returns, the same numbers on every target: those of CUresult. On a GPU any other CUresult may be returned as
   the driver gives it; every one has a name. */
#ifndef DEUTERON_STATUS_H
#define DEUTERON_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define DEUTERON_SUCCESS DEUTERON_STATUS(0)
#define DEUTERON_ERROR_INVALID_VALUE DEUTERON_STATUS(1)             /* an argument, the grid or algo_id */
#define DEUTERON_ERROR_OUT_OF_MEMORY DEUTERON_STATUS(2)             /* on the host or on the device */
#define DEUTERON_ERROR_NOT_INITIALIZED DEUTERON_STATUS(3)            /* CUDA was, before this process was forked */
#define DEUTERON_ERROR_NO_DRIVER DEUTERON_STATUS(35)                /* there is no libcuda.so.1 */
#define DEUTERON_ERROR_OLD_DRIVER DEUTERON_STATUS(36)               /* it is older than CUDA 12.0 */
#define DEUTERON_ERROR_NO_DEVICE DEUTERON_STATUS(100)               /* there is no GPU */
#define DEUTERON_ERROR_INVALID_CONTEXT DEUTERON_STATUS(201)         /* the current context is not usable */
#define DEUTERON_ERROR_UNSUPPORTED_DEVICE DEUTERON_STATUS(209)      /* the kernel needs another processor or GPU */
#define DEUTERON_ERROR_INVALID_HANDLE DEUTERON_STATUS(400)          /* the stream is not of the current context */
#define DEUTERON_ERROR_ILLEGAL_ADDRESS DEUTERON_STATUS(700)         /* of an earlier launch, as all from 700 to 719 */
#define DEUTERON_ERROR_LAUNCH_OUT_OF_RESOURCES DEUTERON_STATUS(701) /* too many threads or registers */
#define DEUTERON_ERROR_ASSERT DEUTERON_STATUS(710)                  /* a tl.device_assert of the kernel failed */
#define DEUTERON_ERROR_MISALIGNED_ADDRESS DEUTERON_STATUS(716)
#define DEUTERON_ERROR_LAUNCH_FAILED DEUTERON_STATUS(719)
#define DEUTERON_ERROR_NO_KERNEL DEUTERON_STATUS(1001) /* none was compiled for such arguments: of ..._supports only */

/* The name of a status, never NULL. */
const char *deuteron_status_string(deuteron_status status);

#ifdef __cplusplus
}
#endif

#endif
