/* The levels of the machine, by the flags of /proc/cpuinfo, and what TARE_CPU selects among them. The level of a
 * process is fixed by its first use, so each value of TARE_CPU has a process: this program with an argument. */
#include "interpreter/kernels/cpu.h"
#include "support/levels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const names[] = { "plain", "neon", "avx2", "avx_vnni", "avx512", "vnni", "amx" };
enum { N_NAMES = sizeof names / sizeof *names };

static char flags[16384];

static void read_flags(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[sizeof flags];
    flags[0] = 0;
    while (file && !flags[0] && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) == 0) snprintf(flags, sizeof flags, " %s", strchr(line, ':') + 1);
    }
    if (file) fclose(file);
    if (strlen(flags) > 0) flags[strcspn(flags, "\n")] = ' ';
}

static bool has_flags(const char *list) {
    char copy[128], pattern[64];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *flag = strtok(copy, " "); flag; flag = strtok(NULL, " ")) {
        snprintf(pattern, sizeof pattern, " %s ", flag);
        if (!strstr(flags, pattern)) return false;
    }
    return true;
}

/* Whether the operating system lets a process use the tile registers. */
static bool may_use_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

static bool machine_has(int level) {
    static const char *const lists[] = { "",
                                         "asimd",
                                         "avx2 fma",
                                         "avx2 fma avx_vnni",
                                         "avx2 fma avx512f avx512bw avx512vl avx512dq",
                                         "avx2 fma avx512f avx512bw avx512vl avx512dq avx512_vnni",
                                         "avx2 fma avx512f avx512bw avx512vl avx512dq avx512_vnni amx_tile amx_int8" };
#if !defined(__x86_64__)
    return level <= TARE_CPU_NEON; /* the flags may be those of the machine that emulates this one */
#endif
    return has_flags(lists[level]) && (level != TARE_CPU_AMX || may_use_tiles());
}

/* The exit status of this program with TARE_CPU: its level. */
static int level_with(const char *value) {
    const int status = levels_run_at(value, "level");
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void levels__are_those_of_the_machine(void **unused) {
    (void)unused;
    read_flags();
    if (!flags[0]) skip();
    for (int i = 0; i < N_NAMES; i++) {
        assert_string_equal(tare_cpu_level_name((enum tare_cpu_level)i), names[i]);
        if ((enum tare_cpu_level)i <= tare_cpu_level())
            assert_int_equal(tare_cpu_has_level((enum tare_cpu_level)i), machine_has(i));
        else
            assert_false(tare_cpu_has_level((enum tare_cpu_level)i));
    }
}

static void next_level__visits_each_level_of_the_machine_once(void **unused) {
    (void)unused;
    int expected = 0;
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        while (!tare_cpu_has_level((enum tare_cpu_level)expected))
            expected++;
        assert_int_equal(level, expected++);
    }
    assert_int_equal(expected, tare_cpu_level() + 1);
}

static void environment__selects_the_level_or_the_next_lower_one(void **unused) {
    (void)unused;
    read_flags();
    if (!flags[0]) skip();
    for (int i = 0; i < N_NAMES; i++) {
        int expected = i;
        while (!machine_has(expected))
            expected--;
        assert_int_equal(level_with(names[i]), expected);
    }
    assert_int_equal(level_with("unknown"), level_with(""));
    assert_int_equal(level_with(""), level_with(names[N_NAMES - 1]));
}

static void names__are_those_of_the_levels(void **unused) {
    (void)unused;
    for (int i = 0; i < N_NAMES; i++)
        assert_true(tare_cpu_is_level_name(names[i]));
    assert_false(tare_cpu_is_level_name("AVX2"));
    assert_false(tare_cpu_is_level_name(""));
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "level") == 0) return (int)tare_cpu_level();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels__are_those_of_the_machine),
        cmocka_unit_test(next_level__visits_each_level_of_the_machine_once),
        cmocka_unit_test(environment__selects_the_level_or_the_next_lower_one),
        cmocka_unit_test(names__are_those_of_the_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
