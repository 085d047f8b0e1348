/* The process of a task: what it does where the batch process has ended. */
#include "cli/batch/worker.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a task whose model does not exist, so that its result is a failure; returns the exit status of the process. */
static int run_task(const char *result_path, bool parent_lives) {
    const pid_t test = getpid();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char output[512];
        snprintf(output, sizeof output, "%s", temp_path("output"));
        struct tare_job job = { .model = "/nonexistent/model", .output = output };
        struct tare_task task = { .name = "task", .job = &job, .result_path = result_path, .log_path = "/dev/null" };
        struct tare_batch_setup setup = { .run = "" };
        tare_batch_child(&task, &setup, parent_lives ? test : getpid());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_a_task_saves_its_result(void **state) {
    (void)state;
    const char *path = temp_path("result.json");
    assert_int_equal(run_task(path, true), 1);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

/* A batch process that is killed just after fork() leaves a child that the kernel no longer ends. */
static void test_a_task_without_its_batch_process_saves_nothing(void **state) {
    (void)state;
    const char *path = temp_path("result.json");
    assert_int_equal(run_task(path, false), 1);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_saves_its_result),
        cmocka_unit_test(test_a_task_without_its_batch_process_saves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
