#include "unit/program.h"

#include "support/levels.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static int run(const struct program_test *test, int argc, char **argv) {
    levels_set_test(test->name);
    return test->function(argc, argv);
}

/* Runs `test` in a child process: nothing that it changes reaches the next test. */
static int run_in_child(const struct program_test *test, char *program) {
    char *argv[] = { program, NULL };
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int result = run(test, 1, argv);
        fflush(NULL);
        _exit(result);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_all(char *program) {
    int failed = 0;
    for (const struct program_test *test = program_tests; test->name; test++) {
        const int status = run_in_child(test, program);
        if (status == 0 || status == SKIPPED) continue;
        fprintf(stderr, "%s failed\n", test->name);
        failed++;
    }
    return failed > 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return run_all(argv[0]);
    for (const struct program_test *test = program_tests; test->name; test++) {
        if (strcmp(test->name, argv[1]) == 0) return run(test, argc - 1, argv + 1);
    }
    fprintf(stderr, "%s: no test '%s'; the tests are\n", argv[0], argv[1]);
    for (const struct program_test *test = program_tests; test->name; test++)
        fprintf(stderr, "  %s\n", test->name);
    return 2;
}
