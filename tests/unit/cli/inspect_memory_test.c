/* tare inspect maps a checkpoint and reads none of it: a model whose values take 512 MiB is shown in the memory of its
 * graph. */
#include "base/file.h"
#include "proto/message.h"
#include "proto/sorted_table.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/checkpoint.pb-c.h"
#include "base/alloc.h"
#include "base/output.h"
#include "support/process.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { ELEMENTS = 128 << 20, MAX_BYTES = 64 << 20 };

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void write_index(const char *path) {
    struct tare_shape shape = tare_shape_make(1, ELEMENTS);
    struct tare_arena arena = { 0 };
    Tensorflow__BundleEntryProto entry = TENSORFLOW__BUNDLE_ENTRY_PROTO__INIT;
    struct tare_table_entry entries[2] = { { "", 0, (const uint8_t *)"\x08\x01\x1a\x02\x08\x01", 6 },
                                           { "v", 1, NULL, 0 } };
    uint8_t *bytes, *table;
    size_t size;
    entry.dtype = TENSORFLOW__DATA_TYPE__DT_FLOAT;
    entry.shape = tare_shape_to_message(&arena, &shape);
    entry.size = (int64_t)ELEMENTS * 4;
    assert_int_equal(tare_message_pack(&bytes, &entries[1].value_size, &entry.base), TARE_OK);
    entries[1].value = bytes;
    assert_int_equal(tare_table_write(&table, &size, entries, 2), TARE_OK);
    assert_int_equal(tare_file_write(path, table, size), TARE_OK);
    tare_free(bytes);
    tare_free(table);
    tare_arena_free(&arena);
}

static void inspect__reads_no_tensor(void **state) {
    const char *argv[] = { process_tare(), "inspect", NULL, "--variables", NULL };
    struct process process;
    char model[1024];
    (void)state;
    snprintf(model, sizeof model, "%s", temp_path("large"));
    argv[2] = model;
    mkdir(model, 0700);
    mkdir(temp_path("large/variables"), 0700);
    put(temp_path("large/saved_model.pbtxt"),
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {"
        " node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }"
        " attr { key: 'shape' value { shape { dim { size: 134217728 } } } } } } }");
    write_index(temp_path("large/variables/variables.index"));
    put(temp_path("large/variables/variables.data-00000-of-00001"), "");
    assert_int_equal(truncate(temp_path("large/variables/variables.data-00000-of-00001"), (off_t)ELEMENTS * 4), 0);
    process_run(&process, argv);
    if (process.status) fail_msg("%s", process.err);
    assert_non_null(strstr(process.out, "536870912  v"));
#if !defined(__SANITIZE_ADDRESS__)
    if (process.peak_bytes > MAX_BYTES) fail_msg("%zu bytes (expected at most %d)", process.peak_bytes, MAX_BYTES);
#endif
    process_free(&process);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(inspect__reads_no_tensor) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
