"""Functions of the C library, which a program has once: a kernel's function of such a name would be called instead.

The names are those that the headers of C11 declare, and those of POSIX.1-2008 (without pthread_*) with what glibc and
GCC have of older ones.
"""

from __future__ import annotations

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
_POSIX = """
    accept access acct alarm alloca alphasort asctime_r bcmp bcopy bind brk bzero chdir chmod chown
    clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime close closedir confstr connect
    creat ctermid ctime_r cuserid daemon dirfd dlclose dlerror dlopen dlsym dprintf drem dup dup2 environ error
    execl execle execlp execv execve execvp exp10 faccessat fchdir fchmod fchmodat fchown fchownat fcntl fdatasync
    fdopen fdopendir fexecve fileno flockfile fmemopen fork fpathconf fseeko fstat fstatat fsync ftello ftruncate
    ftrylockfile funlockfile futimens gamma getc_unlocked getchar_unlocked getcwd getdelim getegid geteuid getgid
    getgroups gethostname getline getlogin getlogin_r getopt getpeername getpgid getpgrp getpid getppid getsid
    getsockname getsockopt getsubopt getuid getw gmtime_r hcreate hdestroy hsearch index int ioctl isascii isatty j0
    j1 jn kill lchown lfind link linkat listen localtime_r lsearch lseek lstat mkdir mkdirat mkdtemp mkfifo mkfifoat
    mkstemp mlock mlockall mmap mount mprotect msync munlock munlockall munmap nanosleep open open_memstream openat
    opendir pathconf pause pclose pipe poll popen posix_fadvise posix_fallocate posix_madvise posix_memalign pow10
    pread pselect psiginfo psignal putc_unlocked putchar_unlocked putw pwrite rand_r read readdir readdir_r readlink
    readlinkat recv recvfrom recvmsg renameat rewinddir rindex rmdir sbrk scalb scandir sched_get_priority_max
    sched_get_priority_min sched_getparam sched_getscheduler sched_rr_get_interval sched_setparam sched_setscheduler
    sched_yield select send sendmsg sendto setegid setenv seteuid setgid setpgid setsid setsockopt setuid shm_open
    shm_unlink shutdown sigaction sigaddset sigdelset sigemptyset sigfillset sigismember signgam significand
    sigpending sigprocmask sigqueue sigsuspend sigtimedwait sigwait sigwaitinfo sleep sockatmark socket socketpair
    stat stime stpcpy stpncpy strcasecmp strcasecmp_l strcoll_l strdup strerror_l strerror_r strftime_l strncasecmp
    strncasecmp_l strndup strnlen strsignal strtok_r strxfrm_l symlink symlinkat sync syscall sysconf tcgetpgrp
    tcsetpgrp tdelete tfind timer_create timer_delete timer_getoverrun timer_gettime timer_settime toascii truncate
    tsearch ttyname ttyname_r twalk tzset umask unlink unlinkat unsetenv utimensat vdprintf vfork wait waitid
    waitpid write y0 y1 yn
"""
C_LIBRARY = frozenset(
    [*_OTHERS.split(), *_POSIX.split(), *(name + kind for name in _OF_EVERY_FLOAT.split() for kind in ("", "f", "l"))]
)
