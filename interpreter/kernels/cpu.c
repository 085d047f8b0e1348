#include "interpreter/kernels/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = { "plain", "avx2", "avx512", "vnni" };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum tare_cpu_level found_level;

static enum tare_cpu_level machine_level(void) {
#if TARE_KERNELS_X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return TARE_CPU_PLAIN;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return TARE_CPU_AVX2;
    return __builtin_cpu_supports("avx512vnni") ? TARE_CPU_VNNI : TARE_CPU_AVX512;
#else
    return TARE_CPU_PLAIN;
#endif
}

static void find_level(void) {
    found_level = machine_level();
    const char *expected = getenv("TARE_CPU");
    for (int i = TARE_CPU_PLAIN; expected && i < (int)found_level; i++) {
        if (strcmp(expected, level_names[i]) == 0) found_level = (enum tare_cpu_level)i;
    }
}

enum tare_cpu_level tare_cpu_level(void) {
    pthread_once(&once, find_level);
    return found_level;
}

const char *tare_cpu_level_name(enum tare_cpu_level level) {
    return level_names[level];
}
