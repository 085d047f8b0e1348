#include "interpreter/kernels/cpu.h"
#include "base/strbuf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if TARE_KERNELS_X86
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { N_LEVELS = TARE_CPU_AMX + 1 };
static const char *const level_names[N_LEVELS] = { "plain", "neon", "avx2", "avx_vnni", "avx512", "vnni", "amx" };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool on_machine[N_LEVELS];
static enum tare_cpu_level found_level;
static atomic_bool is_found; /* tested first: kernels ask for each line, and pthread_once takes longer */

#if TARE_KERNELS_X86
/* By CPUID: clang 14 does not know the name of this extension in __builtin_cpu_supports. */
static bool has_avx_vnni(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

/* AMX-TILE and AMX-INT8 (CPUID leaf 7, EDX bits 24 and 25), whose registers the operating system saves (XCR0 bits 17
 * and 18). */
static bool has_amx(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d >> 24 & 3) != 3) return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}
#endif

/* A process must request the use of the tile registers before its first use of them. */
static bool request_tiles(void) {
#if defined(__linux__) && TARE_KERNELS_X86
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

static void find_levels_of_machine(void) {
    on_machine[TARE_CPU_PLAIN] = true;
#if defined(__aarch64__)
    on_machine[TARE_CPU_NEON] = true; /* part of the baseline */
#endif
#if TARE_KERNELS_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    on_machine[TARE_CPU_AVX2] = avx2;
    on_machine[TARE_CPU_AVX_VNNI] = avx2 && has_avx_vnni();
    on_machine[TARE_CPU_AVX512] = avx512;
    on_machine[TARE_CPU_VNNI] = avx512 && __builtin_cpu_supports("avx512vnni");
    on_machine[TARE_CPU_AMX] = on_machine[TARE_CPU_VNNI] && has_amx();
#endif
}

bool tare_cpu_is_level_name(const char *name) {
    for (int i = 0; i < N_LEVELS; i++)
        if (strcmp(name, level_names[i]) == 0) return true;
    return false;
}

static void find_level(void) {
    const char *expected = getenv("TARE_CPU");
    int most = N_LEVELS - 1;
    find_levels_of_machine();
    for (int i = TARE_CPU_PLAIN; expected && i < N_LEVELS; i++) {
        if (strcmp(expected, level_names[i]) == 0) most = i;
    }
    if (most == TARE_CPU_AMX && on_machine[most]) on_machine[most] = request_tiles();
    while (!on_machine[most])
        most--;
    found_level = (enum tare_cpu_level)most;
    atomic_store_explicit(&is_found, true, memory_order_release);
}

void tare_cpu_put_level_names(struct tare_strbuf *out) {
    for (int i = 0; i < N_LEVELS; i++)
        tare_strbuf_printf(out, "%s%s", i == 0 ? "" : i + 1 < N_LEVELS ? ", " : " or ", level_names[i]);
}

enum tare_cpu_level tare_cpu_level(void) {
    if (!atomic_load_explicit(&is_found, memory_order_acquire)) pthread_once(&once, find_level);
    return found_level;
}

bool tare_cpu_has_level(enum tare_cpu_level level) {
    return level <= tare_cpu_level() && on_machine[level];
}

enum tare_cpu_level tare_cpu_next_level(enum tare_cpu_level level) {
    do
        level++;
    while (level < tare_cpu_level() && !on_machine[level]);
    return level;
}

const char *tare_cpu_level_name(enum tare_cpu_level level) {
    return level_names[level];
}
