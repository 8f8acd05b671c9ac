/* The same as PTX, ${num_bytes} bytes of text, which the driver translates for later devices than the code above is for. */
static const unsigned char deuteron_ptx[] = {
${ptx}
};

static deuteron_cuda_kernel deuteron_translated = {
    deuteron_ptx, "${symbol}", ${num_threads}, ${shared}, ${capability}, DEUTERON_FITS_NEWER, ${attributes}, NULL,
    NULL, NULL, 0, 0, 0, 0};

