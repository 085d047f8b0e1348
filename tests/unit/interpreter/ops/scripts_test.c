/* Runs every script of tests/ops/<name>.graphs: ops that need a graph, a session or functions. TARE_SCRIPT=word runs
 * only the scripts whose name contains the word. */
#include "support/script.h"

#include "base/alloc.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct script {
    const struct script_file *file;
    size_t index;
};

struct plan {
    struct script_file **files;
    size_t n_files, files_capacity;
    struct script *scripts;
    size_t n_scripts, scripts_capacity;
};

static void script__produces_the_expected_outputs(void **state) {
    const struct script *script = *state;
    script_file_run(script->file, script->index);
}

static bool add_file(struct plan *plan, const char *path) {
    const char *only = getenv("TARE_SCRIPT");
    if (!TARE_GROW(plan->files, plan->n_files, plan->files_capacity)) return false;
    struct script_file *file = script_file_open(path);
    if (!file) return false;
    plan->files[plan->n_files++] = file;
    for (size_t i = 0; i < script_file_count(file); i++) {
        if (only && !strstr(script_file_name(file, i), only)) continue;
        if (!TARE_GROW(plan->scripts, plan->n_scripts, plan->scripts_capacity)) return false;
        plan->scripts[plan->n_scripts++] = (struct script){ file, i };
    }
    return true;
}

static int run_all(struct plan *plan) {
    struct CMUnitTest *tests = calloc(plan->n_scripts + 1, sizeof *tests);
    if (!tests) return 1;
    for (size_t i = 0; i < plan->n_scripts; i++)
        tests[i] = (struct CMUnitTest){ .name = script_file_name(plan->scripts[i].file, plan->scripts[i].index),
                                        .test_func = script__produces_the_expected_outputs,
                                        .initial_state = &plan->scripts[i] };
    const int failed = _cmocka_run_group_tests("scripts", tests, plan->n_scripts, NULL, NULL);
    free(tests);
    return failed;
}

int main(void) {
    struct plan plan = { 0 };
    glob_t found;
    bool good = glob(TARE_SOURCE_DIR "/tests/ops/*.graphs", 0, NULL, &found) == 0;
    for (size_t i = 0; good && i < found.gl_pathc; i++)
        good = add_file(&plan, found.gl_pathv[i]);
    globfree(&found);
    const int failed = good ? run_all(&plan) : 1;
    for (size_t i = 0; i < plan.n_files; i++)
        script_file_close(plan.files[i]);
    tare_free(plan.files);
    tare_free(plan.scripts);
    return failed;
}
