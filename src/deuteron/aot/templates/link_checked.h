
/* As above on the CPU, by kernels that check each access against the bytes that every pointer has from its address on;
   UINT64_MAX: not known, and not checked. An access beyond them is not made: it is DEUTERON_ERROR_ILLEGAL_ADDRESS, or
   DEUTERON_ERROR_MISALIGNED_ADDRESS, and the text says the line of the kernel, the argument and the offset. The text, which
   may be NULL, is cut where it has no room; what the kernel has stored until then stays. */
${declared}
