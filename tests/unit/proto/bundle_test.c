/* Checkpoints: what is written is read back, and nothing damaged is read as if it were whole. */
#include "proto/bundle.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/crc32c.h"
#include "proto/ordered_code.h"
#include "proto/sorted_table.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char *const keys[] = { "b/kernel", "a", "empty", "scalar", "text", "int" };
enum { KEYS = sizeof keys / sizeof *keys };

static void make_tensors(struct tare_tensor tensors[KEYS]) {
    struct tare_shape matrix = tare_shape_make(2, 2, 3), none = tare_shape_make(1, 0), two = tare_shape_make(1, 2);
    static const float numbers[] = { 1, -2, 3.5f, 4, 5, 6 };
    static const int8_t bytes[] = { 7, -8 };
    static const int64_t wide[] = { INT64_MIN, 77 };
    assert_int_equal(tare_tensor_from(&tensors[0], TARE_DT_FLOAT, &matrix, numbers), TARE_OK);
    assert_int_equal(tare_tensor_from(&tensors[1], TARE_DT_INT8, &two, bytes), TARE_OK);
    assert_int_equal(tare_tensor_new(&tensors[2], TARE_DT_DOUBLE, &none), TARE_OK);
    assert_int_equal(tare_tensor_scalar_f32(&tensors[3], 0.25f), TARE_OK);
    assert_int_equal(tare_tensor_new(&tensors[4], TARE_DT_STRING, &two), TARE_OK);
    assert_int_equal(tare_tensor_set_string(&tensors[4], 0, "h\0i", 3), TARE_OK);
    assert_int_equal(tare_tensor_from(&tensors[5], TARE_DT_INT64, &two, wide), TARE_OK);
}

static void reset_tensors(struct tare_tensor tensors[KEYS]) {
    for (int i = 0; i < KEYS; i++)
        tare_tensor_reset(&tensors[i]);
}

static tare_status write_bundle(const char *prefix, const struct tare_tensor *tensors, int shards) {
    struct tare_bundle_writer *writer;
    TARE_TRY(tare_bundle_writer_open_shards(&writer, prefix, shards));
    for (int i = 0; i < KEYS; i++) {
        tare_status status;
        tare_bundle_writer_use_shard(writer, i % shards);
        status = tare_bundle_writer_add(writer, keys[i], &tensors[i]);
        if (status != TARE_OK) {
            tare_bundle_writer_abort(writer);
            return status;
        }
    }
    return tare_bundle_writer_close(writer);
}

static void assert_same(const struct tare_tensor *a, const struct tare_tensor *b) {
    assert_int_equal(a->dtype, b->dtype);
    assert_true(tare_shape_equal(&a->shape, &b->shape));
    if (a->dtype != TARE_DT_STRING) {
        assert_memory_equal(a->data ? a->data : "", b->data ? b->data : "", tare_tensor_bytes(b));
        return;
    }
    for (int64_t i = 0; i < b->elements; i++) {
        const struct tare_str *x = &TARE_CONST_DATA(struct tare_str, a)[i],
                              *y = &TARE_CONST_DATA(struct tare_str, b)[i];
        assert_int_equal(x->size, y->size);
        if (y->size) assert_memory_equal(x->data, y->data, y->size);
    }
}

static void check_round_trip(const char *prefix, int shards) {
    struct tare_tensor tensors[KEYS], read[KEYS];
    struct tare_bundle *bundle;
    static const char *const sorted[] = { "a", "b/kernel", "empty", "int", "scalar", "text" };
    make_tensors(tensors);
    assert_int_equal(write_bundle(prefix, tensors, shards), TARE_OK);
    assert_int_equal(tare_bundle_open(&bundle, prefix), TARE_OK);
    assert_int_equal(tare_bundle_count(bundle), KEYS);
    for (int i = 0; i < KEYS; i++) {
        assert_string_equal(tare_bundle_key(bundle, (size_t)i), sorted[i]);
        assert_int_equal(tare_bundle_read(&read[i], bundle, keys[i]), TARE_OK);
    }
    tare_bundle_close(bundle); /* tensors stay */
    for (int i = 0; i < KEYS; i++)
        assert_same(&read[i], &tensors[i]);
    reset_tensors(read);
    reset_tensors(tensors);
}

static void round_trip__keeps_every_tensor(void **state) {
    (void)state;
    check_round_trip(temp_path("one"), 1);
    check_round_trip(temp_path("three"), 3);
    assert_true(tare_file_size(temp_path("three.data-00002-of-00003")) > 0);
}

static void find__tells_what_the_index_says(void **state) {
    struct tare_bundle *bundle;
    struct tare_bundle_entry entry;
    (void)state;
    assert_int_equal(tare_bundle_open(&bundle, temp_path("one")), TARE_OK);
    assert_true(tare_bundle_find(&entry, bundle, "a"));
    assert_int_equal(entry.dtype, TARE_DT_INT8);
    assert_int_equal(entry.offset, 24);
    assert_int_equal(entry.size, 2);
    assert_int_equal(entry.shape.dims[0], 2);
    assert_int_equal(entry.crc32c, tare_crc32c("\x07\xf8", 2));
    assert_false(tare_bundle_find(&entry, bundle, "c"));
    tare_bundle_close(bundle);
}

/* What a look at the index must notice without the data being read: here the data file is cut, then damaged. */
static void check__finds_what_the_index_can_tell(void **state) {
    struct tare_bundle *bundle;
    struct tare_bundle_entry entry;
    struct tare_tensor tensor;
    struct tare_mapping file;
    char data[1024];
    (void)state;
    assert_int_equal(tare_file_map(&file, temp_path("one.data-00000-of-00001")), TARE_OK);
    assert_true(file.size < sizeof data);
    memcpy(data, file.data, file.size);
    temp_file("cut.data-00000-of-00001", data, 25); /* "b/kernel" has 24 bytes, "a" begins behind them */
    data[0] ^= 1;
    temp_file("flipped.data-00000-of-00001", data, file.size);
    tare_file_unmap(&file);
    assert_int_equal(tare_file_map(&file, temp_path("one.index")), TARE_OK);
    temp_file("cut.index", file.data, file.size);
    temp_file("flipped.index", file.data, file.size);
    tare_file_unmap(&file);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("cut")), TARE_OK);
    assert_int_equal(tare_bundle_check(&entry, bundle, "b/kernel"), TARE_OK);
    assert_int_equal(entry.dtype, TARE_DT_FLOAT);
    assert_int_equal(entry.shape.dims[1], 3);
    assert_int_equal(tare_bundle_check(&entry, bundle, "a"), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "is truncated: bytes 24 to 26 are asked for, the file has 25"));
    assert_int_equal(tare_bundle_check(&entry, bundle, "none"), TARE_NOT_FOUND);
    tare_bundle_close(bundle);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("flipped")), TARE_OK);
    assert_int_equal(tare_bundle_check(&entry, bundle, "b/kernel"), TARE_OK); /* no byte of it was looked at */
    assert_int_equal(tare_bundle_read(&tensor, bundle, "b/kernel"), TARE_CORRUPT);
    tare_bundle_close(bundle);
}

static void read__says_which_key_is_missing(void **state) {
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    (void)state;
    assert_int_equal(tare_bundle_open(&bundle, temp_path("one")), TARE_OK);
    assert_int_equal(tare_bundle_read(&tensor, bundle, "nothing"), TARE_NOT_FOUND);
    assert_string_equal(tare_error_text(), "Key nothing not found in checkpoint");
    tare_bundle_close(bundle);
}

static void writer__refuses_double_keys_and_objects(void **state) {
    struct tare_bundle_writer *writer;
    struct tare_tensor tensor, object;
    struct tare_shape scalar = tare_shape_scalar();
    (void)state;
    assert_int_equal(tare_tensor_scalar_f32(&tensor, 1), TARE_OK);
    assert_int_equal(tare_tensor_new(&object, TARE_DT_RESOURCE, &scalar), TARE_OK);
    assert_int_equal(tare_bundle_writer_open(&writer, temp_path("double")), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "o", &object), TARE_UNSUPPORTED);
    assert_int_equal(tare_bundle_writer_add(writer, "k", &tensor), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "k", &tensor), TARE_OK);
    assert_int_equal(tare_bundle_writer_close(writer), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "duplicate key k");
    assert_int_equal(tare_file_size(temp_path("double.index")), -1);
    assert_int_equal(tare_file_size(temp_path("double.data-00000-of-00001")), -1);
    tare_tensor_reset(&tensor);
    tare_tensor_reset(&object);
}

static void put_splat(const char *prefix) {
    struct tare_bundle_writer *writer;
    struct tare_tensor tensor;
    assert_int_equal(tare_tensor_scalar_f32(&tensor, 3), TARE_OK);
    tensor.splat = true;
    tensor.shape = tare_shape_make(1, 4);
    tensor.elements = 4;
    assert_int_equal(tare_bundle_writer_open(&writer, prefix), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "k", &tensor), TARE_OK);
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
    tare_tensor_reset(&tensor);
}

static void writer__expands_splats(void **state) {
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    static const float expected[] = { 3, 3, 3, 3 };
    (void)state;
    put_splat(temp_path("splat"));
    assert_int_equal(tare_bundle_open(&bundle, temp_path("splat")), TARE_OK);
    assert_int_equal(tare_bundle_read(&tensor, bundle, "k"), TARE_OK);
    assert_memory_equal(tensor.data, expected, sizeof expected);
    tare_tensor_reset(&tensor);
    tare_bundle_close(bundle);
}

/* ---- damage ---- */

/* Opens and reads all there is; the first failure. */
static tare_status read_all(const char *prefix) {
    struct tare_bundle *bundle;
    tare_status status;
    TARE_TRY(tare_bundle_open(&bundle, prefix));
    status = tare_bundle_count(bundle) == KEYS ? TARE_OK : TARE_FAIL(TARE_CORRUPT, "tensors are missing");
    for (size_t i = 0; i < tare_bundle_count(bundle) && status == TARE_OK; i++) {
        struct tare_tensor tensor;
        status = tare_bundle_read(&tensor, bundle, tare_bundle_key(bundle, i));
        if (status == TARE_OK) tare_tensor_reset(&tensor);
    }
    tare_bundle_close(bundle);
    return status;
}

static void each_damage(const char *name, int flips) {
    char *good, *data;
    size_t size;
    assert_int_equal(tare_file_read(&good, &size, temp_path(name)), TARE_OK);
    for (size_t cut = 0; !flips && cut < size; cut++) {
        temp_file(name, good, cut);
        assert_int_not_equal(read_all(temp_path("one")), TARE_OK);
        assert_true(strlen(tare_error_text()) > 0);
    }
    data = tare_malloc(size);
    for (size_t bit = 0; flips && bit < size * 8; bit++) {
        memcpy(data, good, size);
        data[bit / 8] ^= (char)(1 << bit % 8);
        temp_file(name, data, size);
        /* A flip in the index's footer padding or in an unused part may go unnoticed, but must be harmless. */
        (void)read_all(temp_path("one"));
    }
    tare_free(data);
    temp_file(name, good, size);
    tare_free(good);
    assert_int_equal(read_all(temp_path("one")), TARE_OK);
}

static void truncation__is_noticed_at_every_byte(void **state) {
    (void)state;
    each_damage("one.index", 0);
    each_damage("one.data-00000-of-00001", 0);
}

static void bit_flips__do_no_harm(void **state) {
    (void)state;
    each_damage("one.index", 1);
}

static void bit_flips__in_data_are_all_noticed(void **state) {
    char *good;
    size_t size;
    (void)state;
    assert_int_equal(tare_file_read(&good, &size, temp_path("one.data-00000-of-00001")), TARE_OK);
    for (size_t bit = 0; bit < size * 8; bit++) {
        good[bit / 8] ^= (char)(1 << bit % 8);
        temp_file("one.data-00000-of-00001", good, size);
        assert_int_equal(read_all(temp_path("one")), TARE_CORRUPT);
        good[bit / 8] ^= (char)(1 << bit % 8);
    }
    temp_file("one.data-00000-of-00001", good, size);
    tare_free(good);
}

static void read__tells_of_a_wrong_checksum(void **state) {
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    char text[700];
    (void)state;
    put_splat(temp_path("crc"));
    static const float stored[] = { 3, 3, 3, 3 }, changed[] = { 3, 3, 3, 5 };
    temp_file("crc.data-00000-of-00001", changed, sizeof changed);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("crc")), TARE_OK);
    assert_int_equal(tare_bundle_read(&tensor, bundle, "k"), TARE_CORRUPT);
    snprintf(
        text, sizeof text, "k: %s: byte 0: Checksum does not match: stored %u vs. calculated on the restored bytes %u",
        temp_path("crc.data-00000-of-00001"), tare_crc32c(stored, sizeof stored), tare_crc32c(changed, sizeof changed));
    assert_string_equal(tare_error_text(), text);
    tare_bundle_close(bundle);
}

static void open__tells_what_is_no_table(void **state) {
    struct tare_bundle *bundle;
    static const char zeros[100];
    (void)state;
    temp_file("no.index", zeros, sizeof zeros);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("no")), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "no.index: not an sstable (bad magic number) at byte 92"));
}

/* ---- indexes made by hand ---- */

static const char header[] = "\x08\x01\x1a\x02\x08\x01", big_endian[] = "\x08\x01\x10\x01\x1a\x02\x08\x01";

static void write_index(const char *name, const struct tare_table_entry *entries, size_t count) {
    uint8_t *data;
    size_t size;
    assert_int_equal(tare_table_write(&data, &size, entries, count), TARE_OK);
    temp_file(name, data, size);
    tare_free(data);
}

static void open__refuses_big_endian(void **state) {
    struct tare_bundle *bundle;
    (void)state;
    write_index("big.index", &(struct tare_table_entry){ "", 0, (const uint8_t *)big_endian, 8 }, 1);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("big")), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "the checkpoint is big-endian"));
}

static void read__tells_of_a_wrong_size(void **state) {
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    /* float [3], 8 bytes */
    static const uint8_t entry[] = { 0x08, 1, 0x12, 4, 0x12, 2, 0x08, 3, 0x28, 8 };
    (void)state;
    write_index("size.index",
                (struct tare_table_entry[]){ { "", 0, (const uint8_t *)header, 6 }, { "k", 1, entry, 10 } }, 2);
    temp_file("size.data-00000-of-00001", "12345678", 8);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("size")), TARE_OK);
    assert_int_equal(tare_bundle_read(&tensor, bundle, "k"), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "k: Invalid size in bundle entry: key k; stored size 8; expected size 12");
    tare_bundle_close(bundle);
}

static void ordered_code__matches_known_bytes(void **state) {
    /* value, bytes: from the encoding's definition */
    static const struct {
        int64_t value;
        const char *bytes;
        size_t size;
    } cases[] = { { 0, "\x80", 1 },
                  { -1, "\x7f", 1 },
                  { 5, "\x85", 1 },
                  { 63, "\xbf", 1 },
                  { -64, "\x40", 1 },
                  { 64, "\xc0\x40", 2 },
                  { -65, "\x3f\xbf", 2 },
                  { 8191, "\xdf\xff", 2 },
                  { 8192, "\xe0\x20\x00", 3 },
                  { 1000000, "\xef\x42\x40", 3 },
                  { INT64_MAX, "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", 10 },
                  { INT64_MIN, "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00", 10 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_strbuf out = { 0 };
        tare_ordered_put_signed(&out, cases[i].value);
        assert_int_equal(out.size, cases[i].size);
        assert_memory_equal(out.data, cases[i].bytes, out.size);
        tare_strbuf_free(&out);
    }
    struct tare_strbuf out = { 0 };
    tare_ordered_put_unsigned(&out, 0);
    tare_ordered_put_unsigned(&out, 258);
    tare_ordered_put_string(&out, "a\0\xff", 3);
    assert_int_equal(out.size, 11);
    assert_memory_equal(out.data, "\0\2\1\2a\0\xff\xff\0\0\1", 11);
    tare_strbuf_free(&out);
}

/* int8 [2,3] in two slices: columns 0-1, column 2 (written as start 2, length 1). */
static const uint8_t sliced_entry[] = { 0x08, 6, 0x12, 8, 0x12, 2, 0x08, 2, 0x12, 2, 0x08, 3, 0x3a, 6, 0x0a, 0,
                                        0x0a, 2, 0x10, 2, 0x3a, 8, 0x0a, 0, 0x0a, 4, 0x08, 2, 0x10, 1 };
static const char left_key[] = "\0w\0\1\1\2\x80\x7f\x80\x82", right_key[] = "\0w\0\1\1\2\x80\x7f\x82\x81";

static size_t piece_entry(uint8_t *out, int columns, int offset, const void *data, size_t size) {
    uint32_t crc = tare_crc32c_mask(tare_crc32c(data, size));
    uint8_t bytes[] = { 0x08,
                        6,
                        0x12,
                        8,
                        0x12,
                        2,
                        0x08,
                        2,
                        0x12,
                        2,
                        0x08,
                        (uint8_t)columns,
                        0x20,
                        (uint8_t)offset,
                        0x28,
                        (uint8_t)size,
                        0x35,
                        (uint8_t)crc,
                        (uint8_t)(crc >> 8),
                        (uint8_t)(crc >> 16),
                        (uint8_t)(crc >> 24) };
    memcpy(out, bytes, sizeof bytes);
    return sizeof bytes;
}

static void check_slice(struct tare_bundle *bundle, const char *slice, const int8_t *expected, int64_t count,
                        bool view) {
    struct tare_bundle_entry entry;
    struct tare_tensor tensor;
    if (tare_bundle_check_slice(&entry, bundle, "w", slice) != TARE_OK ||
        tare_bundle_read_slice(&tensor, bundle, "w", slice) != TARE_OK)
        fail_msg("%s", tare_error_text());
    assert_int_equal(tensor.elements, count);
    assert_true(tare_shape_equal(&entry.shape, &tensor.shape));
    assert_memory_equal(tensor.data, expected, (size_t)count);
    assert_int_equal(tare_bundle_is_view(&tensor), view);
    tare_tensor_reset(&tensor);
}

static void read__puts_slices_together(void **state) {
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    uint8_t left[32], right[32];
    size_t left_size = piece_entry(left, 2, 0, "\1\2\4\5", 4), right_size = piece_entry(right, 1, 4, "\3\6", 2);
    (void)state;
    write_index("sliced.index",
                (struct tare_table_entry[]){ { "", 0, (const uint8_t *)header, 6 },
                                             { left_key, 10, left, left_size },
                                             { right_key, 10, right, right_size },
                                             { "w", 1, sliced_entry, sizeof sliced_entry } },
                4);
    temp_file("sliced.data-00000-of-00001", "\1\2\4\5\3\6", 6);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("sliced")), TARE_OK);
    assert_int_equal(tare_bundle_count(bundle), 1);
    if (tare_bundle_read(&tensor, bundle, "w") != TARE_OK) fail_msg("%s", tare_error_text());
    assert_memory_equal(tensor.data, "\1\2\3\4\5\6", 6);
    tare_tensor_reset(&tensor);
    check_slice(bundle, "2 3 -:1,2", (const int8_t[]){ 2, 3, 5, 6 }, 4, false); /* across both */
    check_slice(bundle, "2 3 1,1:-", (const int8_t[]){ 4, 5, 6 }, 3, false);
    check_slice(bundle, "2 3 -:2,1", (const int8_t[]){ 3, 6 }, 2, true); /* stored as it is asked for */
    check_slice(bundle, "", (const int8_t[]){ 1, 2, 3, 4, 5, 6 }, 6, false);
    assert_int_equal(tare_bundle_read_slice(&tensor, bundle, "w", "3 2 -:0,1"), TARE_SHAPE);
    assert_string_equal(tare_error_text(),
                        "w: slice '3 2 -:0,1' is of a tensor of shape [3,2], the checkpoint has [2,3]");
    tare_bundle_close(bundle);
    /* one of the slices is missing */
    write_index("sliced.index",
                (struct tare_table_entry[]){ { "", 0, (const uint8_t *)header, 6 },
                                             { left_key, 10, left, left_size },
                                             { "w", 1, sliced_entry, sizeof sliced_entry } },
                3);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("sliced")), TARE_OK);
    assert_int_equal(tare_bundle_read(&tensor, bundle, "w"), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "w: one of its slices is missing in the checkpoint");
    check_slice(bundle, "2 3 -:0,2", (const int8_t[]){ 1, 2, 4, 5 }, 4, true); /* not the one that is asked for */
    tare_bundle_close(bundle);
}

/* A tensor that is stored in one piece may be restored in parts. */
static void read__cuts_what_is_whole(void **state) {
    const int8_t values[] = { 1, 2, 3, 4, 5, 6 };
    struct tare_shape shape = tare_shape_make(2, 2, 3);
    struct tare_bundle_writer *writer;
    struct tare_bundle *bundle;
    struct tare_tensor tensor;
    (void)state;
    assert_int_equal(tare_tensor_from(&tensor, TARE_DT_INT8, &shape, values), TARE_OK);
    assert_int_equal(tare_bundle_writer_open(&writer, temp_path("whole")), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "w", &tensor), TARE_OK);
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
    tare_tensor_reset(&tensor);
    assert_int_equal(tare_bundle_open(&bundle, temp_path("whole")), TARE_OK);
    check_slice(bundle, "2 3 1,1:0,2", (const int8_t[]){ 4, 5 }, 2, false);
    check_slice(bundle, "2 3 0,2:-", values, 6, true);
    check_slice(bundle, "2 3 0,0:-", values, 0, false);
    tare_bundle_close(bundle);
}

static void put32(struct tare_strbuf *out, uint32_t value) {
    tare_strbuf_append(out, &value, 4);
}

/* Ends a block that began at `start`: one restart, no compression. */
static size_t end_block(struct tare_strbuf *out, size_t start) {
    size_t size;
    put32(out, 0);
    put32(out, 1);
    size = out->size - start;
    tare_strbuf_putc(out, 0);
    put32(out, tare_crc32c_mask(tare_crc32c(out->data + start, size + 1)));
    return size;
}

static void table__bounds_the_memory_of_keys(void **state) {
    enum { ENTRIES = 3000, LONG = 100000 };
    struct tare_strbuf out = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_table_entry *read;
    size_t count, data_size, index_start, index_size, footer;
    (void)state;
    /* 3,000 keys of 100 kB, each sharing all but its last bytes with the one before: 120 kB that say 300 MB */
    for (int i = 0; i < ENTRIES; i++) {
        tare_strbuf_append_varint(&out, i ? LONG : 0);
        tare_strbuf_append_varint(&out, i ? 5 : LONG + 5);
        tare_strbuf_append_varint(&out, 0);
        for (int k = 0; !i && k < LONG; k++)
            tare_strbuf_putc(&out, 'k');
        tare_strbuf_printf(&out, "%05d", i);
    }
    data_size = end_block(&out, 0);
    index_start = out.size;
    tare_strbuf_append(&out, "\0\1\4z\0", 5);
    tare_strbuf_append_varint(&out, data_size);
    index_size = end_block(&out, index_start);
    footer = out.size;
    tare_strbuf_append(&out, "\0\0", 2);
    tare_strbuf_append_varint(&out, index_start);
    tare_strbuf_append_varint(&out, index_size);
    while (out.size < footer + 40)
        tare_strbuf_putc(&out, 0);
    tare_strbuf_append(&out, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    assert_int_equal(tare_table_read(&read, &count, &arena, (const uint8_t *)out.data, out.size), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "keys too long for the file's size in the block at byte 0");
    assert_true(arena.bytes < 20 << 20);
    tare_arena_free(&arena);
    tare_strbuf_free(&out);
}

static void table__of_many_blocks_is_read_back(void **state) {
    enum { ENTRIES = 20000 };
    struct tare_table_entry *entries = tare_calloc(ENTRIES, sizeof *entries), *read;
    struct tare_arena arena = { 0 }, keys_arena = { 0 };
    size_t count, size;
    uint8_t *data;
    static uint8_t large[600000];
    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        char *key = tare_arena_printf(&keys_arena, "model/layer_%06d/kernel", i);
        entries[i] = (struct tare_table_entry){ key, strlen(key), large, i == 777 ? sizeof large : 30 };
    }
    assert_int_equal(tare_table_write(&data, &size, entries, ENTRIES), TARE_OK);
    assert_int_equal(tare_table_read(&read, &count, &arena, data, size), TARE_OK);
    assert_int_equal(count, ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        assert_string_equal(read[i].key, entries[i].key);
        assert_int_equal(read[i].value_size, entries[i].value_size);
    }
    tare_arena_free(&arena);
    tare_arena_free(&keys_arena);
    tare_free(data);
    tare_free(entries);
}

static void table__refuses_keys_out_of_order(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_table_entry *read;
    size_t count, size;
    uint8_t *data;
    const uint8_t *value = (const uint8_t *)"v";
    (void)state;
    assert_int_equal(
        tare_table_write(&data, &size, (struct tare_table_entry[]){ { "b", 1, value, 1 }, { "a", 1, value, 1 } }, 2),
        TARE_OK);
    assert_int_equal(tare_table_read(&read, &count, &arena, data, size), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "keys are out of order at key a");
    tare_arena_free(&arena);
    tare_free(data);
}

/* ---- faults ---- */

static void faults__of_memory_and_files_leave_nothing(void **state) {
    struct tare_tensor tensors[KEYS];
    char prefix[600];
    (void)state;
    snprintf(prefix, sizeof prefix, "%s", temp_path("f/fault"));
    make_tensors(tensors);
    for (int files = 0; files < 2; files++) {
        tare_status status = TARE_IO;
        for (int64_t n = 1; status != TARE_OK && n < 2000; n++) {
            struct tare_file_list list;
            assert_int_equal(tare_file_remove_tree(temp_path("f")), TARE_OK);
            assert_int_equal(tare_file_make_folders(temp_path("f"), NULL), TARE_OK);
            files ? tare_file_fail_at(n) : tare_alloc_fail_at(n);
            status = write_bundle(prefix, tensors, 2);
            tare_file_fail_at(0);
            tare_alloc_fail_at(0);
            assert_int_equal(tare_file_list(&list, temp_path("f")), TARE_OK);
            assert_int_equal(list.count, status == TARE_OK ? 3 : 0);
            tare_file_list_free(&list);
        }
        assert_int_equal(status, TARE_OK);
    }
    for (int files = 0; files < 2; files++) {
        tare_status status = TARE_IO;
        for (int64_t n = 1; status != TARE_OK && n < 2000; n++) {
            files ? tare_file_fail_at(n) : tare_alloc_fail_at(n);
            status = read_all(prefix);
            tare_file_fail_at(0);
            tare_alloc_fail_at(0);
        }
        assert_int_equal(status, TARE_OK);
    }
    reset_tensors(tensors);
}

static void table__write_reports_every_failed_allocation(void **state) {
    enum { ENTRIES = 60 };
    static char names[ENTRIES][16], value[9000];
    struct tare_table_entry entries[ENTRIES];
    uint8_t *expected, *data = NULL;
    size_t expected_size, size;
    (void)state;
    for (int i = 0; i < ENTRIES; i++) { /* several blocks and restarts */
        snprintf(names[i], sizeof names[i], "key%05d", i);
        entries[i] = (struct tare_table_entry){
            .key = names[i], .key_size = strlen(names[i]), .value = (uint8_t *)value, .value_size = sizeof value
        };
    }
    tare_alloc_fail_at(0);
    assert_int_equal(tare_table_write(&expected, &expected_size, entries, ENTRIES), TARE_OK);
    const int64_t allocations = tare_alloc_count();
    assert_true(allocations > 10);
    for (int64_t n = 1; n <= allocations; n++) {
        tare_alloc_fail_at(n);
        const tare_status status = tare_table_write(&data, &size, entries, ENTRIES);
        tare_alloc_fail_at(0);
        if (status != TARE_NO_MEMORY) fail_msg("allocation %d fails: %s", (int)n, tare_status_name(status));
    }
    assert_int_equal(tare_table_write(&data, &size, entries, ENTRIES), TARE_OK);
    assert_int_equal(size, expected_size);
    assert_memory_equal(data, expected, size);
    tare_free(data);
    tare_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table__write_reports_every_failed_allocation),
        cmocka_unit_test(round_trip__keeps_every_tensor),
        cmocka_unit_test(find__tells_what_the_index_says),
        cmocka_unit_test(check__finds_what_the_index_can_tell),
        cmocka_unit_test(read__says_which_key_is_missing),
        cmocka_unit_test(writer__refuses_double_keys_and_objects),
        cmocka_unit_test(writer__expands_splats),
        cmocka_unit_test(truncation__is_noticed_at_every_byte),
        cmocka_unit_test(bit_flips__do_no_harm),
        cmocka_unit_test(bit_flips__in_data_are_all_noticed),
        cmocka_unit_test(read__tells_of_a_wrong_checksum),
        cmocka_unit_test(open__tells_what_is_no_table),
        cmocka_unit_test(open__refuses_big_endian),
        cmocka_unit_test(read__tells_of_a_wrong_size),
        cmocka_unit_test(ordered_code__matches_known_bytes),
        cmocka_unit_test(read__puts_slices_together),
        cmocka_unit_test(read__cuts_what_is_whole),
        cmocka_unit_test(table__bounds_the_memory_of_keys),
        cmocka_unit_test(table__of_many_blocks_is_read_back),
        cmocka_unit_test(table__refuses_keys_out_of_order),
        cmocka_unit_test(faults__of_memory_and_files_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
