/* Every checkpoint of the real models is read whole, and those that TensorFlow wrote without compression in one shard
 * are written again byte for byte. */
#include "proto/bundle.h"
#include "base/alloc.h"
#include "base/file.h"
#include "support/temp.h"
#include "support/models.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *models;

static int by_offset(const void *a, const void *b) {
    const struct tare_bundle_entry *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

struct named {
    struct tare_bundle_entry entry; /* first: sorted by it */
    const char *key;
};

/* Writes the tensors of a bundle again, in the order of their bytes. */
static tare_status write_again(const char *prefix, struct tare_bundle *bundle) {
    size_t count = tare_bundle_count(bundle);
    struct named *order = tare_calloc(count + 1, sizeof *order);
    struct tare_bundle_writer *writer;
    tare_status status = tare_bundle_writer_open(&writer, prefix);
    if (status != TARE_OK) return status;
    for (size_t i = 0; i < count; i++) {
        order[i].key = tare_bundle_key(bundle, i);
        if (!tare_bundle_find(&order[i].entry, bundle, order[i].key)) return TARE_INTERNAL;
    }
    qsort(order, count, sizeof *order, by_offset);
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        struct tare_tensor tensor;
        status = tare_bundle_read(&tensor, bundle, order[i].key);
        if (status == TARE_OK) status = tare_bundle_writer_add(writer, order[i].key, &tensor);
        tare_tensor_reset(&tensor);
    }
    tare_free(order);
    if (status == TARE_OK) return tare_bundle_writer_close(writer);
    tare_bundle_writer_abort(writer);
    return status;
}

static bool same_file(const char *a, const char *b) {
    struct tare_mapping x, y;
    bool same;
    if (tare_file_map(&x, a) != TARE_OK) return false;
    if (tare_file_map(&y, b) != TARE_OK) return tare_file_unmap(&x), false;
    same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    tare_file_unmap(&x);
    tare_file_unmap(&y);
    return same;
}

/* The index's second block handle leads to the first block's end: its type byte tells compression. */
static bool is_compressed(const char *index) {
    struct tare_mapping file;
    size_t shift = 0, offset = 0;
    const uint8_t *at;
    bool compressed;
    if (tare_file_map(&file, index) != TARE_OK) return true;
    for (at = file.data + file.size - 48;; at++, shift += 7) {
        offset |= (size_t)(*at & 0x7f) << shift;
        if (*at < 0x80) break;
    }
    compressed = offset >= 5 && file.data[offset - 5] != 0; /* the block before the metaindex block */
    tare_file_unmap(&file);
    return compressed;
}

/* Their authors wrote these with another program, not with TensorFlow. */
static bool is_foreign(const char *name) {
    static const char *const names[] = { "autoencoder_ad", "mobilenet_vww", "resnet8_cifar10", "wakeword_stream" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void each_checkpoint__is_read_and_written_again(void **state) {
    struct tare_file_list list;
    int read = 0, same = 0, compressed = 0, sharded = 0, different = 0;
    (void)state;
    assert_int_equal(tare_file_list(&list, models), TARE_OK);
    for (size_t i = 0; i < list.count; i++) {
        char prefix[512], index[600], data[600];
        struct tare_bundle *bundle;
        tare_status status;
        snprintf(prefix, sizeof prefix, "%s/%s/variables/variables", models, list.names[i]);
        snprintf(index, sizeof index, "%s.index", prefix);
        snprintf(data, sizeof data, "%s.data-00000-of-00001", prefix);
        if (tare_file_kind_of(index) != TARE_FILE_REGULAR) continue;
        status = tare_bundle_open(&bundle, prefix);
        if (status == TARE_OK) {
            status = write_again(temp_path("again"), bundle);
            tare_bundle_close(bundle);
        }
        if (status != TARE_OK) fail_msg("%s: %s", list.names[i], tare_error_text());
        read++;
        if (tare_file_kind_of(data) != TARE_FILE_REGULAR) {
            sharded++;
        } else if (is_compressed(index)) {
            compressed++;
            assert_true(same_file(data, temp_path("again.data-00000-of-00001")));
        } else if (same_file(index, temp_path("again.index")) &&
                   same_file(data, temp_path("again.data-00000-of-00001"))) {
            same++;
            print_message("the same bytes: %s\n", list.names[i]);
        } else if (!is_foreign(list.names[i])) {
            different++;
            print_message("not byte for byte: %s\n", list.names[i]);
        }
    }
    print_message("%d read, %d the same bytes, %d compressed, %d in shards, %d different\n", read, same, compressed,
                  sharded, different);
    tare_file_list_free(&list);
    assert_true(same >= 50);
    assert_int_equal(different, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_checkpoint__is_read_and_written_again) };
    models = test_data("models");
    return models ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
