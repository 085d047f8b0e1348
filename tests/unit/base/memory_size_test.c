/* The memory of the machine, or what control groups leave of it. */
#include "base/memory_size.h"

#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* Writes a file below the root of this name, with its folders. */
static void put(const char *root, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static size_t machine(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static void memory__is_that_of_the_machine_without_groups(void **state) {
    (void)state;
    assert_true(tare_memory_bytes_at(temp_path("nothing")) == machine());
    const char *root = temp_path("unlimited");
    put(root, "proc/self/cgroup", "0::/user.slice\n");
    put(root, "sys/fs/cgroup/user.slice/memory.max", "max\n");
    assert_true(tare_memory_bytes_at(root) == machine());
    assert_true(tare_memory_bytes() <= machine() && tare_memory_bytes() > 0);
}

static void memory__is_the_least_limit_of_the_groups(void **state) {
    (void)state;
    const char *root = temp_path("version2");
    put(root, "proc/self/cgroup", "0::/batch/job/step\n");
    put(root, "sys/fs/cgroup/batch/memory.max", "1048576\n");
    put(root, "sys/fs/cgroup/batch/job/memory.max", "4194304\n");
    put(root, "sys/fs/cgroup/batch/job/step/memory.max", "max\n");
    assert_int_equal(tare_memory_bytes_at(root), 1048576);
}

static void memory__finds_the_group_of_a_container_at_the_root(void **state) {
    (void)state;
    const char *root = temp_path("container");
    put(root, "proc/self/cgroup", "0::/\n");
    put(root, "sys/fs/cgroup/memory.max", "2097152\n");
    assert_int_equal(tare_memory_bytes_at(root), 2097152);
    root = temp_path("version1");
    put(root, "proc/self/cgroup", "3:cpu,cpuacct:/docker/4f\n9:memory:/docker/4f\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "3145728\n");
    assert_int_equal(tare_memory_bytes_at(root), 3145728);
}

static void memory__cache_has_a_size_or_that_of_a_test(void **state) {
    (void)state;
    const size_t own = tare_cache_bytes();
    assert_in_range(own, 1 << 14, 1u << 30);
    tare_cache_set_bytes(3 << 20);
    assert_int_equal(tare_cache_bytes(), 3 << 20);
    tare_cache_set_bytes(0);
    assert_int_equal(tare_cache_bytes(), own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory__cache_has_a_size_or_that_of_a_test),
        cmocka_unit_test(memory__is_that_of_the_machine_without_groups),
        cmocka_unit_test(memory__is_the_least_limit_of_the_groups),
        cmocka_unit_test(memory__finds_the_group_of_a_container_at_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
