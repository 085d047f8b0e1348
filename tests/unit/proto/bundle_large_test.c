/* Large tensors of a checkpoint pass through without staying in memory: read, copied and read again they are the same.
 */
#include "base/file.h"
#include "proto/bundle.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { ELEMENTS = 5 << 20 }; /* 20 MiB: more than one piece, and an odd rest */

static void ok(tare_status status) {
    if (status != TARE_OK) fail_msg("%s", tare_error_text());
}

static float value_at(int64_t i) {
    return (float)(i * 7 % 1000003);
}

static size_t resident_pages(const void *data, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data / page * page;
    size_t count = ((uintptr_t)data + size - first + page - 1) / page, resident = 0;
    FILE *file = fopen("/proc/self/pagemap", "rb");
    if (!file) return 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t entry = 0;
        if (fseek(file, (long)((first / page + i) * 8), SEEK_SET) == 0 && fread(&entry, 8, 1, file) == 1)
            resident += entry >> 63 & 1; /* present */
    }
    fclose(file);
    return resident;
}

static void write_checkpoint(const char *prefix, const struct tare_tensor *tensor) {
    struct tare_bundle_writer *writer;
    ok(tare_bundle_writer_open(&writer, prefix));
    ok(tare_bundle_writer_add(writer, "large", tensor));
    ok(tare_bundle_writer_close(writer));
}

static void a_large_tensor__passes_through_memory(void **state) {
    struct tare_shape shape = tare_shape_make(1, ELEMENTS);
    struct tare_tensor tensor, read, again;
    struct tare_bundle *bundle, *copy;
    char prefix[512], copied[512];
    (void)state;
    snprintf(prefix, sizeof prefix, "%s", temp_path("first"));
    snprintf(copied, sizeof copied, "%s", temp_path("second"));
    ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < ELEMENTS; i++)
        TARE_DATA(float, &tensor)[i] = value_at(i);
    write_checkpoint(prefix, &tensor);
    assert_false(tare_bundle_is_view(&tensor));
    assert_true(TARE_DATA(float, &tensor)[ELEMENTS - 1] == value_at(ELEMENTS - 1)); /* its own memory is left alone */
    ok(tare_bundle_open(&bundle, prefix));
    ok(tare_bundle_read(&read, bundle, "large"));
    assert_true(tare_bundle_is_view(&read));
    assert_true(resident_pages(read.data, ELEMENTS * sizeof(float)) < 600); /* of 5,120; readers fault around */
    write_checkpoint(copied, &read);
    assert_true(resident_pages(read.data, ELEMENTS * sizeof(float)) < 600);
    ok(tare_bundle_open(&copy, copied));
    ok(tare_bundle_read(&again, copy, "large"));
    for (int64_t i = 0; i < ELEMENTS; i++)
        if (TARE_DATA(float, &again)[i] != value_at(i)) fail_msg("element %lld differs", (long long)i);
    tare_tensor_reset(&tensor);
    tare_tensor_reset(&read);
    tare_tensor_reset(&again);
    tare_bundle_close(bundle);
    tare_bundle_close(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_large_tensor__passes_through_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
