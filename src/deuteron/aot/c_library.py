"""Functions of the C library that compilers know: a function of such a name would get the calls that a compiler
makes of itself, as of `memcpy`.

The names are those that the headers of C11 declare, which no program may give to functions of its own, and what GCC
knows besides. Others, as `read` and `select` of POSIX, kernels may have.

Its headers, too: a `time.h` of ours in a folder that a compiler is told of is what every `#include <time.h>` gets.

And its macros without parameters, `SIZE_MAX` or `BIG_ENDIAN`: what is called so becomes a number where the
header was included. `c_macros.txt` has what `gcc -dM -E` says of the headers of C11 and of those that emitted code
includes, glibc's, with and without _GNU_SOURCE.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_MACROS = Path(__file__).with_name("c_macros.txt")

# With `f` and `l` behind for float and long double.
_OF_EVERY_FLOAT = """
    acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt ccos ccosh ceil
    cexp cimag clog conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh erf erfc exp exp2 expm1 fabs
    fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan
    tanh tgamma trunc
"""
_OTHERS = """
    abort abs aligned_alloc asctime at_quick_exit atexit atof atoi atol atoll bsearch btowc c16rtomb c32rtomb
    call_once calloc clearerr clock cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait ctime
    difftime div exit fclose feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof feraiseexcept
    ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush fgetc fgetpos fgets fgetwc fgetws
    fopen fprintf fputc fputs fputwc fputws fread free freopen fscanf fseek fsetpos ftell fwide fwprintf fwrite
    fwscanf getc getchar getenv getwc getwchar gmtime imaxabs imaxdiv isalnum isalpha isblank iscntrl isdigit
    isgraph islower isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl iswctype iswdigit iswgraph
    iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit labs ldiv llabs lldiv localeconv localtime
    longjmp malloc mblen mbrlen mbrtoc16 mbrtoc32 mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memchr memcmp memcpy
    memmove memset mktime mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock mtx_unlock perror printf putc
    putchar puts putwc putwchar qsort quick_exit raise rand realloc remove rename rewind scanf setbuf setjmp
    setlocale setvbuf signal snprintf sprintf srand sscanf strcat strchr strcmp strcoll strcpy strcspn strerror
    strftime strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtoimax strtok strtol
    strtold strtoll strtoul strtoull strtoumax strxfrm swprintf swscanf system thrd_create thrd_current thrd_detach
    thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time timespec_get tmpfile tmpnam tolower toupper towctrans
    towlower towupper tss_create tss_delete tss_get tss_set ungetc ungetwc vfprintf vfscanf vfwprintf vfwscanf
    vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwprintf vwscanf wcrtomb wcscat wcschr wcscmp
    wcscoll wcscpy wcscspn wcsftime wcslen wcsncat wcsncmp wcsncpy wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod
    wcstof wcstoimax wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull wcstoumax wcsxfrm wctob wctomb wctrans
    wctype wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf wscanf
"""
# Of POSIX and of older headers, those that GCC takes for what they are there, whoever declares them.
_KNOWN_TO_COMPILERS = """
    alloca bcmp bcopy bzero drem execl execle execlp execv execve execvp exp10 fork gamma index isascii j0 j1 jn
    posix_memalign pow10 putc_unlocked putchar_unlocked rindex scalb significand stpcpy stpncpy strcasecmp strdup
    strncasecmp strndup strnlen toascii y0 y1 yn
"""
C_LIBRARY = frozenset(
    [
        *_OTHERS.split(),
        *_KNOWN_TO_COMPILERS.split(),
        *(name + kind for name in _OF_EVERY_FLOAT.split() for kind in ("", "f", "l")),
    ]
)
# Of C11, those of glibc and POSIX that they include or that programs do most, and CUDA's, which emitted code includes.
_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    alloca dirent dlfcn endian fcntl features getopt malloc memory poll pthread regex sched search semaphore strings
    unistd cuda cuda_bf16 cuda_fp16 cuda_runtime cuda_runtime_api
"""
C_HEADERS = frozenset(_HEADERS.split())


@cache
def c_macros() -> frozenset[str]:
    """The macros without parameters that headers of the C library define."""
    return frozenset(_MACROS.read_text().split())
