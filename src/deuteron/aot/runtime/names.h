/* The symbols of functions. Each has one of its own, with a digest of what it was made from, so that every caller that
   includes a header gets the code that the header was written with: whatever other libraries a program has, and whatever
   libc calls its own functions. A shared library (objects built with -fPIC) has the functions under their plain names
   too, for dlsym, and so has any object built with DEUTERON_PLAIN_NAMES; DEUTERON_NO_PLAIN_NAMES keeps them out of
   objects. DEUTERON_HIDDEN keeps what the objects are linked into from exporting any of the functions. */
#ifndef DEUTERON_NAMES_H
#define DEUTERON_NAMES_H

#define DEUTERON_QUOTED(text) #text
#define DEUTERON_QUOTE(text) DEUTERON_QUOTED(text)
#define DEUTERON_SYMBOL(symbol) __asm__(DEUTERON_QUOTE(__USER_LABEL_PREFIX__) symbol)

#ifdef DEUTERON_HIDDEN
#define DEUTERON_API __attribute__((visibility("hidden")))
#else
#define DEUTERON_API __attribute__((visibility("default")))
#endif

/* Of the functions of a kernel: several libraries of a program may have it, and equal symbols are of equal code. */
#define DEUTERON_MERGED __attribute__((weak))

#if defined(__PIC__) && !defined(__PIE__) && !defined(DEUTERON_HIDDEN) && !defined(DEUTERON_PLAIN_NAMES)
#define DEUTERON_PLAIN_NAMES 1
#endif

#if defined(__ELF__) && defined(DEUTERON_PLAIN_NAMES) && !defined(DEUTERON_NO_PLAIN_NAMES)
#define DEUTERON_PLAIN(function, symbol)                                                                                 \
  extern __typeof__(function) deuteron_plain_##function __asm__(#function)                                               \
      __attribute__((weak, alias(symbol), visibility("default")));
#else
#define DEUTERON_PLAIN(function, symbol)
#endif

#endif
