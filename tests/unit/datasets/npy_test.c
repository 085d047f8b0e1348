/* NumPy files: NumPy's own are read (tests/golden/npy), ours are read back, rows grow. */
#include "datasets/npy.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/tensor/float8.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/npy/"

static const struct {
    const char *name;
    int dtype;
} files[] = {
    { "f2", TARE_DT_HALF },      { "f4", TARE_DT_FLOAT },       { "f8", TARE_DT_DOUBLE }, { "i1", TARE_DT_INT8 },
    { "i2", TARE_DT_INT16 },     { "i4", TARE_DT_INT32 },       { "i8", TARE_DT_INT64 },  { "u1", TARE_DT_UINT8 },
    { "u2", TARE_DT_UINT16 },    { "u4", TARE_DT_UINT32 },      { "u8", TARE_DT_UINT64 }, { "b1", TARE_DT_BOOL },
    { "c8", TARE_DT_COMPLEX64 }, { "c16", TARE_DT_COMPLEX128 },
};

static double value_of(const struct tare_tensor *t, int64_t i) {
    if (t->dtype == TARE_DT_COMPLEX64) {
        assert_true(TARE_CONST_DATA(float, t)[2 * i + 1] == 0.5f);
        return TARE_CONST_DATA(float, t)[2 * i];
    }
    if (t->dtype == TARE_DT_COMPLEX128) {
        assert_true(TARE_CONST_DATA(double, t)[2 * i + 1] == 0.5);
        return TARE_CONST_DATA(double, t)[2 * i];
    }
    return tare_tensor_get_f64(t, i);
}

static void check_golden(const char *path, const char *name, int dtype) {
    struct tare_shape expected = tare_shape_make(3, 2, 3, 4);
    struct tare_tensor t;
    if (tare_npy_read(&t, path) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(t.dtype, dtype);
    assert_true(tare_shape_equal(&t.shape, &expected));
    for (int64_t i = 0; i < 24; i++) {
        double number = name[0] == 'b' ? i != 0 : name[0] == 'u' ? (double)i : (double)(i - 4);
        if (value_of(&t, i) != number)
            fail_msg("%s: element %d is %g (expected %g)", path, (int)i, value_of(&t, i), number);
    }
    tare_tensor_reset(&t);
}

static void read__takes_each_dtype_in_each_order(void **state) {
    char path[600];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, GOLDEN "%s.npy", files[i].name);
        check_golden(path, files[i].name, files[i].dtype);
        snprintf(path, sizeof path, GOLDEN "%s_big_fortran.npy", files[i].name);
        check_golden(path, files[i].name, files[i].dtype);
    }
    check_golden(GOLDEN "V2.npy", "V2", TARE_DT_BFLOAT16); /* of ml_dtypes */
}

static void read__takes_each_version_scalars_and_nothing(void **state) {
    struct tare_tensor t;
    (void)state;
    assert_int_equal(tare_npy_read(&t, GOLDEN "version2.npy"), TARE_OK);
    assert_int_equal(TARE_DATA(int32_t, &t)[2], 2);
    tare_tensor_reset(&t);
    assert_int_equal(tare_npy_read(&t, GOLDEN "version3.npy"), TARE_OK);
    assert_int_equal(t.shape.rank, 1);
    tare_tensor_reset(&t);
    assert_int_equal(tare_npy_read(&t, GOLDEN "scalar.npy"), TARE_OK);
    assert_int_equal(t.shape.rank, 0);
    assert_true(TARE_DATA(float, &t)[0] == 2.5f);
    tare_tensor_reset(&t);
    assert_int_equal(tare_npy_read(&t, GOLDEN "empty.npy"), TARE_OK);
    assert_int_equal(t.shape.dims[1], 3);
    assert_int_equal(t.elements, 0);
    tare_tensor_reset(&t);
}

static void check_text(const struct tare_tensor *t, int64_t i, const char *expected, size_t size) {
    const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, t)[i];
    assert_int_equal(text->size, size);
    assert_memory_equal(text->data, expected, size);
}

static void read__takes_text(void **state) {
    struct tare_tensor t;
    (void)state;
    assert_int_equal(tare_npy_read(&t, GOLDEN "text_big_fortran.npy"), TARE_OK);
    assert_int_equal(t.dtype, TARE_DT_STRING);
    check_text(&t, 0, "a\xc3\xa9", 3);
    check_text(&t, 1, "\xe2\x82\xac", 3);
    check_text(&t, 2, "", 0);
    check_text(&t, 3, "\xf0\x9f\x98\x80x", 5);
    tare_tensor_reset(&t);
    assert_int_equal(tare_npy_read(&t, GOLDEN "bytes.npy"), TARE_OK);
    check_text(&t, 0, "ab", 2);
    check_text(&t, 1, "", 0);
    check_text(&t, 2, "c\0d", 3);
    tare_tensor_reset(&t);
}

static void view__gives_rows(void **state) {
    static const char *const names[] = { GOLDEN "i2.npy", GOLDEN "i2_big_fortran.npy" };
    (void)state;
    for (int n = 0; n < 2; n++) {
        struct tare_npy_view view;
        struct tare_tensor t;
        char *bytes;
        size_t size;
        assert_int_equal(tare_file_read(&bytes, &size, names[n]), TARE_OK);
        assert_int_equal(tare_npy_view_open(&view, bytes, size), TARE_OK);
        assert_int_equal(tare_npy_view_rows(&t, &view, 1, 1), TARE_OK);
        assert_int_equal(t.shape.rank, 3);
        assert_int_equal(t.shape.dims[0], 1);
        for (int i = 0; i < 12; i++)
            assert_int_equal(TARE_DATA(int16_t, &t)[i], 12 + i - 4);
        tare_tensor_reset(&t);
        assert_int_equal(tare_npy_view_rows(&t, &view, 1, 2), TARE_SHAPE);
        assert_int_equal(tare_npy_view_rows(&t, &view, -1, 1), TARE_SHAPE);
        tare_free(bytes);
    }
}

static void read__refuses_other_arrays(void **state) {
    struct tare_tensor t;
    (void)state;
    assert_int_equal(tare_npy_read(&t, GOLDEN "dates.npy"), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(),
                        GOLDEN "dates.npy: arrays of '<M8[D]' are not read (expected numbers, booleans or strings: "
                               "array.astype('int8') for integers of ml_dtypes such as int4, otherwise "
                               "array.astype('float32'))");
    /* int4, uint4, int2, uint2 and 8-bit floats of ml_dtypes have one code */
    static const char header[] = "\x93NUMPY\1\0\x36\0{'descr': '<V1', 'fortran_order': False, 'shape': (4,)}\n\1\2\3\4";
    assert_int_equal(tare_npy_read(&t, temp_file("int4.npy", header, sizeof header - 1)), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "arrays of '<V1' are not read"));
    assert_int_equal(tare_npy_read(&t, GOLDEN "record.npy"), TARE_UNSUPPORTED);
    assert_int_equal(tare_npy_read(&t, GOLDEN "make.py"), TARE_CORRUPT);
    assert_int_equal(tare_npy_read(&t, GOLDEN "none.npy"), TARE_NOT_FOUND);
}

static void read__survives_damage(void **state) {
    char *good;
    size_t size;
    struct tare_tensor t;
    (void)state;
    assert_int_equal(tare_file_read(&good, &size, GOLDEN "i2.npy"), TARE_OK);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(tare_npy_read(&t, temp_file("cut.npy", good, cut)), TARE_CORRUPT);
        assert_true(strlen(tare_error_text()) > 0);
    }
    for (size_t bit = 0; bit < 128 * 8; bit++) {
        good[bit / 8] ^= (char)(1 << bit % 8);
        if (tare_npy_read(&t, temp_file("cut.npy", good, size)) == TARE_OK) tare_tensor_reset(&t);
        good[bit / 8] ^= (char)(1 << bit % 8);
    }
    tare_free(good);
}

static void check_huge(const char *shape) {
    char bytes[200];
    struct tare_tensor t;
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
    snprintf(bytes + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    assert_int_not_equal(tare_npy_read(&t, temp_file("huge.npy", bytes, sizeof bytes)), TARE_OK);
}

static void read__refuses_absurd_shapes(void **state) {
    (void)state;
    check_huge("(9223372036854775807,)");
    check_huge("(99999999999999999999,)");
    check_huge("(4294967296, 4294967296, 4294967296)");
    check_huge("(-1,)");
    check_huge("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)");
    check_huge("(x)");
}

static void write__is_read_back(void **state) {
    struct tare_shape shapes[] = { tare_shape_scalar(), tare_shape_make(1, 3), tare_shape_make(2, 2, 3),
                                   tare_shape_make(2, 0, 5) };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t s = 0; s < 4; s++) {
            struct tare_tensor out, in;
            assert_int_equal(tare_tensor_new(&out, files[i].dtype, &shapes[s]), TARE_OK);
            for (size_t k = 0; k < tare_tensor_bytes(&out); k++)
                ((uint8_t *)out.data)[k] = files[i].dtype == TARE_DT_BOOL ? k & 1 : (uint8_t)(k * 7);
            assert_int_equal(tare_npy_write(temp_path("w.npy"), &out), TARE_OK);
            assert_int_equal(tare_npy_read(&in, temp_path("w.npy")), TARE_OK);
            assert_int_equal(in.dtype, out.dtype);
            assert_true(tare_shape_equal(&in.shape, &out.shape));
            if (out.elements) assert_memory_equal(in.data, out.data, tare_tensor_bytes(&out));
            tare_tensor_reset(&in);
            tare_tensor_reset(&out);
        }
}

static void append__grows_the_first_axis(void **state) {
    struct tare_npy_writer *writer;
    struct tare_shape row = tare_shape_make(1, 2), two = tare_shape_make(2, 2, 2), expected = tare_shape_make(2, 4, 2);
    static const uint16_t halves[] = { 0x3f80, 0x4000, 0x4040, 0x4080 }; /* bfloat16 1 2 3 4 */
    static const float read[] = { 1, 2, 3, 4, 1, 1, 1, 1 };
    struct tare_tensor rows, splat, in;
    (void)state;
    assert_int_equal(tare_tensor_from(&rows, TARE_DT_BFLOAT16, &two, halves), TARE_OK);
    tare_tensor_share(&splat, &rows);
    splat.splat = true;
    assert_int_equal(tare_npy_create(&writer, temp_path("rows.npy"), TARE_DT_BFLOAT16, &row), TARE_OK);
    assert_int_equal(tare_npy_append(writer, &rows), TARE_OK);
    assert_int_equal(tare_npy_append(writer, &splat), TARE_OK);
    assert_int_equal(tare_npy_commit(writer), TARE_OK);
    assert_int_equal(tare_npy_read(&in, temp_path("rows.npy")), TARE_OK);
    assert_int_equal(in.dtype, TARE_DT_FLOAT);
    assert_true(tare_shape_equal(&in.shape, &expected));
    assert_memory_equal(in.data, read, sizeof read);
    tare_tensor_reset(&in);
    tare_tensor_reset(&rows);
    tare_tensor_reset(&splat);
}

/* Each code of an 8-bit float is read as the number that it stands for. */
static void eight_bit_floats__are_written_as_float32(void **state) {
    static const int dtypes[] = { TARE_DT_FLOAT8_E4M3FN, TARE_DT_FLOAT8_E5M2, TARE_DT_FLOAT8_E4M3B11FNUZ };
    const struct tare_shape shape = tare_shape_make(1, 256);
    uint8_t every[256];
    (void)state;
    for (int i = 0; i < 256; i++)
        every[i] = (uint8_t)i;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        struct tare_tensor codes, in;
        assert_int_equal(tare_tensor_from(&codes, dtypes[d], &shape, every), TARE_OK);
        assert_int_equal(tare_npy_write(temp_path("float8.npy"), &codes), TARE_OK);
        assert_int_equal(tare_npy_read(&in, temp_path("float8.npy")), TARE_OK);
        assert_int_equal(in.dtype, TARE_DT_FLOAT);
        for (int i = 0; i < 256; i++) {
            const float expected = tare_float8_decode(tare_float8_format(dtypes[d]), (uint8_t)i);
            const float found = TARE_CONST_DATA(float, &in)[i];
            assert_true(isnan(expected) ? isnan(found) : found == expected);
        }
        tare_tensor_reset(&codes);
        tare_tensor_reset(&in);
    }
}

static void append__counts_rows_without_elements(void **state) {
    struct tare_npy_writer *writer;
    struct tare_shape row = tare_shape_make(1, 0), three = tare_shape_make(2, 3, 0);
    struct tare_tensor rows, in;
    (void)state;
    assert_int_equal(tare_tensor_new(&rows, TARE_DT_FLOAT, &three), TARE_OK);
    assert_int_equal(tare_npy_create(&writer, temp_path("none.npy"), TARE_DT_FLOAT, &row), TARE_OK);
    assert_int_equal(tare_npy_append(writer, &rows), TARE_OK);
    assert_int_equal(tare_npy_append(writer, &rows), TARE_OK);
    assert_int_equal(tare_npy_commit(writer), TARE_OK);
    assert_int_equal(tare_npy_read(&in, temp_path("none.npy")), TARE_OK);
    assert_int_equal(in.shape.dims[0], 6);
    assert_int_equal(in.shape.dims[1], 0);
    tare_tensor_reset(&in);
    tare_tensor_reset(&rows);
}

static void append__refuses_what_does_not_fit(void **state) {
    struct tare_npy_writer *writer;
    struct tare_shape row = tare_shape_make(1, 2);
    struct tare_tensor number;
    (void)state;
    assert_int_equal(tare_npy_create(&writer, temp_path("x.npy"), TARE_DT_STRING, &row), TARE_UNSUPPORTED);
    assert_int_equal(tare_npy_create(&writer, temp_path("x.npy"), TARE_DT_FLOAT, &row), TARE_OK);
    assert_int_equal(tare_tensor_scalar_f32(&number, 1), TARE_OK);
    assert_int_equal(tare_npy_append(writer, &number), TARE_SHAPE);
    number.dtype = TARE_DT_INT32;
    assert_int_equal(tare_npy_append(writer, &number), TARE_TYPE);
    tare_npy_abort(writer);
    assert_int_equal(tare_file_kind_of(temp_path("x.npy")), TARE_FILE_NONE);
    tare_tensor_reset(&number);
}

/* A header of format 1.0 for float32 of `shape`, without data. */
static size_t empty_array(char out[256], const char *shape) {
    char header[200];
    const int length =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n", shape);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)length;
    out[9] = 0;
    memcpy(out + 10, header, (size_t)length);
    return 10 + (size_t)length;
}

static void view__of_an_empty_array_with_absurd_dimensions_is_refused(void **state) {
    static const char *const refused[] = { "(0, 4611686018427387904, 4611686018427387904)", "(0, 4611686018427387904)",
                                           "(1000000000, 0)", "(9223372036854775807, 0, 2)" };
    static const char *const accepted[] = { "(0,)", "(0, 224, 224, 3)", "(3, 0)", "(3, 0, 5)" };
    char bytes[256];
    struct tare_npy_view view;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const size_t size = empty_array(bytes, refused[i]);
        if (tare_npy_view_open(&view, bytes, size) != TARE_CORRUPT) fail_msg("%s is accepted", refused[i]);
    }
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        const size_t size = empty_array(bytes, accepted[i]);
        struct tare_tensor rows;
        if (tare_npy_view_open(&view, bytes, size) != TARE_OK) fail_msg("%s: %s", accepted[i], tare_error_text());
        assert_int_equal(tare_npy_view_rows(&rows, &view, 0, view.shape.dims[0]), TARE_OK);
        assert_int_equal(rows.elements, 0);
        tare_tensor_reset(&rows);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read__takes_each_dtype_in_each_order),
        cmocka_unit_test(read__takes_each_version_scalars_and_nothing),
        cmocka_unit_test(read__takes_text),
        cmocka_unit_test(view__gives_rows),
        cmocka_unit_test(read__refuses_other_arrays),
        cmocka_unit_test(read__survives_damage),
        cmocka_unit_test(read__refuses_absurd_shapes),
        cmocka_unit_test(write__is_read_back),
        cmocka_unit_test(append__grows_the_first_axis),
        cmocka_unit_test(eight_bit_floats__are_written_as_float32),
        cmocka_unit_test(append__counts_rows_without_elements),
        cmocka_unit_test(append__refuses_what_does_not_fit),
        cmocka_unit_test(view__of_an_empty_array_with_absurd_dimensions_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
