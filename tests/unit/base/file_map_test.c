/* Mapped files that become shorter while they are read. */
#include "base/control.h"
#include "base/file.h"
#include "base/output.h"
#include "base/thread.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 3 << 20, PAGE = 4096 };

static struct tare_control control;

/* A file of LARGE bytes, each its position modulo 251, mapped. */
static struct tare_mapping map_large(const char *name) {
    uint8_t *bytes = malloc(LARGE);
    struct tare_mapping mapping;
    assert_non_null(bytes);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (uint8_t)(i % 251);
    temp_file(name, bytes, LARGE);
    free(bytes);
    control = (struct tare_control){ 0 };
    tare_control_set(&control);
    assert_int_equal(tare_file_map(&mapping, temp_path(name)), TARE_OK);
    return mapping;
}

static void expect_lost(const char *name) {
    char text[700];
    assert_int_equal(tare_control_verify(), TARE_IO);
    snprintf(text, sizeof text, "cannot read '%s': the file became shorter", temp_path(name));
    assert_non_null(strstr(tare_error_text(), text));
    assert_int_equal(tare_control_conclude(TARE_OK), TARE_IO);
    tare_control_set(&control); /* the next call */
    assert_int_equal(tare_control_conclude(TARE_OK), TARE_OK);
}

static void map__pages_that_are_cut_off_are_zero_and_the_call_fails(void **state) {
    struct tare_mapping mapping = map_large("cut");
    const volatile uint8_t *data = mapping.data;
    (void)state;
    assert_int_equal(tare_control_verify(), TARE_OK);
    assert_int_equal(data[2 * PAGE + 7], (2 * PAGE + 7) % 251);
    assert_int_equal(truncate(temp_path("cut"), PAGE), 0);
    assert_int_equal(data[5 * PAGE + 3], 0);
    assert_int_equal(data[LARGE - 1], 0);
    assert_int_equal(data[100], 100);
    assert_int_equal(tare_control_check(), TARE_IO);
    expect_lost("cut");
    tare_file_unmap(&mapping);
    assert_int_equal(tare_control_verify(), TARE_OK);
}

static void map__a_cut_within_a_page_is_found_by_its_size(void **state) {
    struct tare_mapping mapping = map_large("within");
    (void)state;
    assert_int_equal(truncate(temp_path("within"), LARGE - 10), 0);
    assert_int_equal(mapping.data[LARGE - 1], 0); /* no signal */
    expect_lost("within");
    tare_file_unmap(&mapping);
    mapping = map_large("within");
    assert_int_equal(truncate(temp_path("within"), LARGE - 10), 0);
    tare_file_unmap(&mapping);
    expect_lost("within");
}

static void map__a_small_file_is_in_memory(void **state) {
    struct tare_mapping mapping;
    (void)state;
    temp_file("small", "0123456789", 10);
    tare_control_set(&control);
    assert_int_equal(tare_file_map(&mapping, temp_path("small")), TARE_OK);
    assert_int_equal(truncate(temp_path("small"), 0), 0);
    assert_memory_equal(mapping.data, "0123456789", 10);
    tare_file_forget(mapping.data, mapping.size);
    assert_memory_equal(mapping.data, "0123456789", 10);
    assert_int_equal(tare_control_verify(), TARE_OK);
    tare_file_unmap(&mapping);
}

static void map__a_replaced_file_is_not_lost(void **state) {
    struct tare_mapping mapping = map_large("replaced");
    (void)state;
    assert_int_equal(tare_file_write(temp_path("replaced"), "new", 3), TARE_OK);
    assert_int_equal(mapping.data[LARGE - 1], (LARGE - 1) % 251);
    tare_file_unmap(&mapping);
    assert_int_equal(tare_control_verify(), TARE_OK);
}

static void write__of_lost_pages_names_the_file(void **state) {
    struct tare_mapping mapping = map_large("source");
    struct tare_output_file out;
    (void)state;
    assert_int_equal(tare_output_file_begin(&out, temp_path("copy")), TARE_OK);
    assert_int_equal(truncate(temp_path("source"), 0), 0);
    assert_int_equal(tare_output_file_write(&out, mapping.data, mapping.size), TARE_IO);
    assert_non_null(strstr(tare_error_text(), "source': the file became shorter"));
    tare_output_file_abort(&out);
    assert_int_equal(tare_file_kind_of(temp_path("copy")), TARE_FILE_NONE);
    tare_file_unmap(&mapping);
    tare_control_set(&control);
}

static void commit__leaves_no_output_of_a_lost_file(void **state) {
    struct tare_mapping mapping = map_large("input");
    struct tare_output_file out;
    (void)state;
    assert_int_equal(tare_output_file_begin(&out, temp_path("output")), TARE_OK);
    assert_int_equal(truncate(temp_path("input"), LARGE - 1), 0);
    assert_int_equal(tare_output_file_write(&out, mapping.data, mapping.size), TARE_OK);
    assert_int_equal(tare_output_file_commit(&out), TARE_IO);
    assert_int_equal(tare_file_kind_of(temp_path("output")), TARE_FILE_NONE);
    tare_file_unmap(&mapping);
    tare_control_set(&control);
}

/* ---- several calls ---- */

/* A call that maps a file, and ends when it is told to. */
struct reading {
    const char *name, *path;
    struct tare_mapping mapping;
    pthread_barrier_t *barrier;
    int byte; /* the last one */
    tare_status checked, verified, concluded, in_thread;
    char text[700];
};

static tare_status check_in_thread(void *arg) {
    (void)arg;
    return tare_control_check();
}

static void *read_when_told(void *arg) {
    struct reading *r = arg;
    struct tare_control own = { 0 };
    tare_control_set(&own);
    if (tare_file_map(&r->mapping, r->path) != TARE_OK) abort();
    pthread_barrier_wait(r->barrier); /* both have mapped their file */
    pthread_barrier_wait(r->barrier); /* one file is shorter */
    r->byte = ((const volatile uint8_t *)r->mapping.data)[LARGE - 1];
    pthread_barrier_wait(r->barrier); /* both have read */
    r->checked = tare_control_check();
    r->in_thread = tare_thread_join(tare_thread_start(check_in_thread, NULL));
    r->verified = tare_control_verify();
    tare_file_unmap(&r->mapping);
    r->concluded = tare_control_conclude(TARE_OK);
    snprintf(r->text, sizeof r->text, "%s", tare_error_text());
    tare_control_end();
    return NULL;
}

static void write_large(const char *name) {
    struct tare_mapping mapping = map_large(name);
    tare_file_unmap(&mapping);
}

static void lost__only_the_call_that_maps_the_file_fails(void **state) {
    struct reading readings[2] = { { .name = "first" }, { .name = "second" } };
    pthread_barrier_t barrier;
    pthread_t threads[2];
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        const struct reading *failed = &readings[lost], *other = &readings[!lost];
        assert_int_equal(pthread_barrier_init(&barrier, NULL, 3), 0);
        for (int i = 0; i < 2; i++) {
            write_large(readings[i].name);
            readings[i].path = temp_path(readings[i].name);
            readings[i].barrier = &barrier;
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, read_when_told, &readings[i]), 0);
        pthread_barrier_wait(&barrier);
        assert_int_equal(truncate(temp_path(failed->name), 0), 0);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(failed->byte, 0);
        assert_int_equal(failed->checked, TARE_IO);
        assert_int_equal(failed->in_thread, TARE_IO);
        assert_int_equal(failed->verified, TARE_IO);
        assert_int_equal(failed->concluded, TARE_IO);
        assert_non_null(strstr(failed->text, failed->name));
        assert_int_equal(other->byte, (LARGE - 1) % 251);
        assert_int_equal(other->checked, TARE_OK);
        assert_int_equal(other->in_thread, TARE_OK);
        assert_int_equal(other->verified, TARE_OK);
        assert_int_equal(other->concluded, TARE_OK);
        pthread_barrier_destroy(&barrier);
    }
}

/* As libtare's handles: a model is opened by one call, and used by others. */
static void lost__what_stays_mapped_fails_later_calls_of_the_family(void **state) {
    struct tare_mapping mapping = map_large("model");
    const uint64_t family = tare_control_call().family;
    (void)state;
    tare_control_end();
    tare_control_begin(&control, family);
    assert_int_equal(tare_control_verify(), TARE_OK);
    assert_int_equal(truncate(temp_path("model"), PAGE), 0);
    assert_int_equal(tare_control_verify(), TARE_IO);
    tare_control_end();
    for (int again = 0; again < 2; again++) {
        tare_control_begin(&control, family);
        assert_int_equal(tare_control_check(), TARE_IO);
        assert_int_equal(tare_control_conclude(TARE_OK), TARE_IO);
        tare_control_end();
        tare_control_begin(&control, 0); /* on another handle */
        assert_int_equal(tare_control_check(), TARE_OK);
        assert_int_equal(tare_control_verify(), TARE_OK);
        assert_int_equal(tare_control_conclude(TARE_OK), TARE_OK);
        tare_control_end();
    }
    tare_file_unmap(&mapping);
    tare_control_begin(&control, family);
    assert_int_equal(tare_control_verify(), TARE_OK);
    tare_control_end();
}

/* As libtare's reader of data files: one call maps the file, another one reads the end of it and unmaps it. */
static void lost__what_is_found_at_unmapping_fails_the_call_that_unmaps(void **state) {
    struct tare_mapping mapping = map_large("data");
    const uint64_t family = tare_control_call().family;
    (void)state;
    tare_control_end();
    tare_control_begin(&control, family);
    assert_int_equal(truncate(temp_path("data"), LARGE - 10), 0); /* within the last page: no signal */
    assert_int_equal(mapping.data[LARGE - 1], 0);
    assert_int_equal(tare_control_check(), TARE_OK);
    tare_file_unmap(&mapping);
    assert_int_equal(tare_control_conclude(TARE_OK), TARE_IO);
    tare_control_end();
    tare_control_begin(&control, family);
    assert_int_equal(tare_control_conclude(TARE_OK), TARE_OK);
    tare_control_end();
}

static void on_bus_error(int number) {
    (void)number;
    _exit(7);
}

/* Status of a child with a fault, or a raised SIGBUS, outside of tare's mappings. */
static int status_of_foreign_fault(bool raised) {
    int how;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool installed = signal(SIGBUS, on_bus_error) != SIG_ERR; /* the host's, before the mapping */
        struct tare_mapping mapping = map_large("own");
        int fd = mkstemp((char[]){ "/tmp/tare-foreign-XXXXXX" });
        const volatile uint8_t *foreign;
        if (!installed || fd < 0 || ftruncate(fd, PAGE) != 0) _exit(1);
        foreign = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        if (ftruncate(fd, 0) != 0) _exit(1);
        if (raised) raise(SIGBUS);
        _exit(foreign[0] == 0 && mapping.data[0] == 0 ? 2 : 3);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

static void handler__leaves_faults_elsewhere_to_the_one_before(void **state) {
    (void)state;
    for (int raised = 0; raised < 2; raised++) {
        const int how = status_of_foreign_fault(raised);
        if (!(WIFEXITED(how) && WEXITSTATUS(how) == 7)) fail_msg("raised %d: status %x", raised, how);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map__pages_that_are_cut_off_are_zero_and_the_call_fails),
        cmocka_unit_test(map__a_cut_within_a_page_is_found_by_its_size),
        cmocka_unit_test(map__a_small_file_is_in_memory),
        cmocka_unit_test(map__a_replaced_file_is_not_lost),
        cmocka_unit_test(write__of_lost_pages_names_the_file),
        cmocka_unit_test(commit__leaves_no_output_of_a_lost_file),
        cmocka_unit_test(lost__only_the_call_that_maps_the_file_fails),
        cmocka_unit_test(lost__what_stays_mapped_fails_later_calls_of_the_family),
        cmocka_unit_test(lost__what_is_found_at_unmapping_fails_the_call_that_unmaps),
        cmocka_unit_test(handler__leaves_faults_elsewhere_to_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
