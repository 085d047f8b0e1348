#include "support/levels.h"

#include "interpreter/kernels/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *own_test;

void levels_set_test(const char *name) {
    own_test = name;
}

int levels_run_at(const char *level, const char *argument) {
    char program[4096];
    const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    int status = -1;
    assert_true(size > 0);
    program[size] = 0;
    const pid_t child = fork();
    if (child == 0) {
        setenv("TARE_CPU", level, 1);
        if (getenv("TARE_EMULATOR")) /* scripts/cross-arm64.sh: the kernel does not start programs of another machine */
            execl("/bin/sh", "sh", "-c", "exec $TARE_EMULATOR \"$@\"", "sh", program, own_test, argument, (char *)NULL);
        else
            execl(program, program, own_test, argument, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

void levels_run(const char *argument) {
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        const char *name = tare_cpu_level_name(level);
        const int status = levels_run_at(name, argument);
        if (status != 0) fail_msg("%s differs at level %s (status %d)", argument, name, status);
    }
}
