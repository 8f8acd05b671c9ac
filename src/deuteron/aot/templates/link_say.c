
/* Copies a text into one of `size` bytes. */
static void deuteron_say(const char *text, char *to, uint64_t size) {
  if (!to || size == 0)
    return;
  for (; *text && size > 1; size--)
    *to++ = *text++;
  *to = 0;
}
