/* A process that runs out of file descriptors while it writes a folder removes what it wrote. */
#include "base/file.h"
#include "base/output.h"

#include "support/temp.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static void folder__is_removed_without_free_descriptors(void **state) {
    struct tare_output_dir output;
    struct rlimit limit, low;
    char path[4096];
    int last = -1, taken[256];
    size_t count = 0;
    (void)state;
    assert_int_equal(tare_output_dir_begin(&output, temp_path("out"), NULL), TARE_OK);
    snprintf(path, sizeof path, "%s/variables", output.temporary);
    assert_int_equal(tare_file_make_folders(path, NULL), TARE_OK);
    snprintf(path, sizeof path, "%s", output.temporary);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while ((last = dup(0)) >= 0)
        taken[count++] = last;
    tare_output_dir_abort(&output);
    const bool removed = tare_file_kind_of(path) == TARE_FILE_NONE;
    while (count > 0)
        close(taken[--count]);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_true(removed);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(folder__is_removed_without_free_descriptors) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
