/* Linked into what a wheel contains (TARE_WHEEL): functions of glibc whose newest version is younger than 2.28, by
 * their old versions, so that the wheel runs where glibc is as old as that. Calls in this program, library or module
 * find these definitions before those of glibc; none of them is exported.
 *
 * The mathematical functions have the same values in both versions: the old ones also set errno as SVID did. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined __x86_64__
#define OLDEST "GLIBC_2.2.5"
#define OF_2_3_3 "GLIBC_2.3.3"
#elif defined __aarch64__
#define OLDEST "GLIBC_2.17"
#define OF_2_3_3 OLDEST
#else
#error "the oldest version of glibc for this processor is unknown"
#endif
#define LOCAL __attribute__((visibility("hidden")))
/* A function and its old version; the parameters have the types of any declaration with the same calling convention. */
#define OLD_AS(version, type, name, parameters, arguments)                                                             \
    LOCAL type name parameters;                                                                                        \
    extern type old_##name parameters;                                                                                 \
    __asm__(".symver old_" #name "," #name "@" version);                                                               \
    LOCAL type name parameters {                                                                                       \
        return old_##name arguments;                                                                                   \
    }
#define OLD(type, name, parameters, arguments) OLD_AS(OLDEST, type, name, parameters, arguments)

OLD(double, exp, (double x), (x))
OLD(double, exp2, (double x), (x))
OLD(double, log, (double x), (x))
OLD(double, log2, (double x), (x))
OLD(double, pow, (double x, double y), (x, y))
OLD(double, hypot, (double x, double y), (x, y))
OLD(float, hypotf, (float x, float y), (x, y))
OLD(int, pthread_create, (void *thread, const void *attr, void *(*start)(void *), void *arg),
    (thread, attr, start, arg))
OLD(int, pthread_join, (unsigned long thread, void **result), (thread, result))
OLD(int, pthread_mutex_trylock, (void *mutex), (mutex))
OLD(int, pthread_once, (int *once, void (*init)(void)), (once, init))
OLD(int, pthread_attr_getstack, (const void *attr, void **stack, size_t *size), (attr, stack, size))
OLD(int, pthread_getattr_np, (unsigned long thread, void *attr), (thread, attr))
OLD_AS(OF_2_3_3, int, pthread_condattr_setclock, (void *attr, int clock), (attr, clock))
OLD(void *, dlopen, (const char *file, int mode), (file, mode))
OLD(void *, dlsym, (void *library, const char *name), (library, name))
OLD(int, dlclose, (void *library), (library))
OLD(char *, dlerror, (void), ())

/* Before 2.33 these were macros over functions that took the version of struct stat. */
#if defined __x86_64__
enum { STAT_VERSION = 1 };
#else
enum { STAT_VERSION = 0 };
#endif
extern int old_xstat(int version, const char *path, struct stat *out);
extern int old_lxstat(int version, const char *path, struct stat *out);
extern int old_fxstat(int version, int file, struct stat *out);
extern int old_fxstatat(int version, int folder, const char *path, struct stat *out, int flags);
__asm__(".symver old_xstat,__xstat@" OLDEST);
__asm__(".symver old_lxstat,__lxstat@" OLDEST);
__asm__(".symver old_fxstat,__fxstat@" OLDEST);
#if defined __x86_64__
__asm__(".symver old_fxstatat,__fxstatat@GLIBC_2.4");
#else
__asm__(".symver old_fxstatat,__fxstatat@" OLDEST);
#endif
LOCAL int stat(const char *path, struct stat *out) {
    return old_xstat(STAT_VERSION, path, out);
}
LOCAL int lstat(const char *path, struct stat *out) {
    return old_lxstat(STAT_VERSION, path, out);
}
LOCAL int fstat(int file, struct stat *out) {
    return old_fxstat(STAT_VERSION, file, out);
}
LOCAL int fstatat(int folder, const char *path, struct stat *out, int flags) {
    return old_fxstatat(STAT_VERSION, folder, path, out, flags);
}
LOCAL pid_t gettid(void) {
    return (pid_t)syscall(SYS_gettid);
}

#ifdef TARE_PROGRAM
/* The start files of glibc 2.34 and later pass no function that runs the constructors of the program: the C library
 * runs them. Before, the start files did. */
typedef void constructor(int, char **, char **);
extern constructor *__preinit_array_start[], *__preinit_array_end[], *__init_array_start[], *__init_array_end[];
extern void _init(void);
extern char **environ;
extern int old_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(int, char **, char **),
                    void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__asm__(".symver old_main,__libc_start_main@" OLDEST);

static void construct(int argc, char **argv, char **environment) {
    for (constructor **f = __preinit_array_start; f < __preinit_array_end; f++)
        (*f)(argc, argv, environment);
    _init();
    for (constructor **f = __init_array_start; f < __init_array_end; f++)
        (*f)(argc, argv, environment);
}

LOCAL int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                            void (*init)(int, char **, char **), void (*fini)(void), void (*rtld_fini)(void),
                            void *stack_end);
LOCAL int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                            void (*init)(int, char **, char **), void (*fini)(void), void (*rtld_fini)(void),
                            void *stack_end) {
    return old_main(main, argc, argv, init ? init : construct, fini, rtld_fini, stack_end);
}
#endif
