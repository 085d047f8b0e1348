/* Preloaded into a program (LD_PRELOAD), makes its n-th heap allocation fail: those of the program and those of every
 * library that it uses, libc included. tests/faults/allocation.py drives it.
 *
 * TARE_FAULT_FILE is a file of one struct counters, mapped and shared, so that the processes that the program forks are
 * counted together. `at` is the number of the allocation that fails (0: none), `sticky` whether all later ones fail as
 * well. Allocations before main belong to the dynamic loader and are not counted; those of libgfortran never
 * fail.
 *
 * TARE_FAULT_STACKS, if set, is a file of numbers, one for each allocation: a hash of the last TARE_FAULT_FRAMES
 * calls that led to it. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct counters {
    _Atomic int64_t allocations;
    int64_t at, sticky;
};

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct counters *counters;

enum { MOST_FRAMES = 64 };
static int64_t *stacks; /* NULL: not wanted */
static int64_t most_stacks;
static int frames_compared = MOST_FRAMES;
static __thread bool is_tracing; /* backtrace may allocate */

static void open_stacks(const char *path) {
    struct stat info;
    void *frame;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) abort();
    void *memory = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) abort();
    if (getenv("TARE_FAULT_FRAMES")) frames_compared = atoi(getenv("TARE_FAULT_FRAMES"));
    if (frames_compared < 1 || frames_compared > MOST_FRAMES) abort();
    (void)backtrace(&frame, 1); /* loads what it needs, uncounted */
    stacks = memory;
    most_stacks = (int64_t)(info.st_size / (off_t)sizeof *stacks);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TARE_FAULT_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory = fd >= 0 ? mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (memory == MAP_FAILED) abort();
    if (getenv("TARE_FAULT_STACKS")) open_stacks(getenv("TARE_FAULT_STACKS"));
    counters = memory;
}

static void note_stack(int64_t number) {
    void *frames[MOST_FRAMES];
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    if (is_tracing || number > most_stacks) return;
    is_tracing = true;
    const int count = backtrace(frames, frames_compared);
    is_tracing = false;
    for (int i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211u;
    stacks[number - 1] = (int64_t)hash;
}

/* OpenBLAS needs libgfortran, which ends the process when it has no memory, already while it is loaded. */
static bool is_of_fortran(const void *caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libgfortran");
}

static bool must_fail(const void *caller) {
    int64_t number;
    if (!counters) return false;
    number = atomic_fetch_add(&counters->allocations, 1) + 1;
    if (stacks) note_stack(number);
    if (!counters->at || (number != counters->at && !(counters->sticky && number > counters->at))) return false;
    if (is_of_fortran(caller)) return false;
    errno = ENOMEM;
    return true;
}

#pragma GCC visibility push(default)

void *malloc(size_t size) {
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *block = must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

#pragma GCC visibility pop
