/* The fast products have the bits of the reference product: transposed and conjugated operands, operands that several
 * matrices of the batch share, and batches of more matrices than are computed at a time. */
#include "interpreter/ops/linalg/product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 150, M = 5, N = 3, K = 4 };
enum form {
    TRANSPOSED_A = 1,
    TRANSPOSED_B = 2,
    CONJUGATED_A = 4,
    CONJUGATED_B = 8,
    SHARED_A = 16,
    SHARED_B = 32,
    FORMS = 64
};

static void fill(void *to, int dtype, int64_t count, uint64_t seed) {
    const int parts = tare_dtype_is_complex(dtype) ? 2 : 1;
    const size_t size = tare_dtype_size(dtype) / (size_t)parts;
    for (int64_t i = 0; i < parts * count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (dtype == TARE_DT_INT64)
            ((int64_t *)to)[i] = (int64_t)seed;
        else if (size == sizeof(double))
            ((double *)to)[i] = (double)(int64_t)seed / 0x1p63;
        else
            ((float *)to)[i] = (float)(int64_t)seed / 0x1p63f;
    }
}

static void check(int dtype, int form) {
    static _Alignas(64) char a[BATCH * M * K * 16], b[BATCH * K * N * 16], expected[BATCH * M * N * 16],
        got[sizeof expected];
    struct tare_arena memory = { 0 };
    struct tare_product p = { .dtype = dtype, .batch = BATCH, .m = M, .n = N, .k = K, .a = a, .b = b, .c = expected };
    fill(a, dtype, BATCH * M * K, 1);
    fill(b, dtype, BATCH * K * N, 2);
    assert_int_equal(tare_product_set_dense(&p, &memory), TARE_OK);
    if (form & TRANSPOSED_A) p.a_row = 1, p.a_column = M;
    if (form & TRANSPOSED_B) p.b_row = 1, p.b_column = K;
    p.conjugate_a = form & CONJUGATED_A, p.conjugate_b = form & CONJUGATED_B;
    for (int i = 0; i < BATCH; i++) {
        if (form & SHARED_A) p.a_first[i] = 0;
        if (form & SHARED_B) p.b_first[i] = i % 2 * K * N;
    }
    tare_product_plain(&p);
    memset(got, 0xff, sizeof got);
    p.c = got;
    assert_int_equal(tare_product_run(&p, NULL, NULL, &memory), TARE_OK);
    assert_memory_equal(got, expected, (size_t)(BATCH * M * N) * tare_dtype_size(dtype));
    tare_arena_free(&memory);
}

static void products__have_the_bits_of_the_reference(void **state) {
    static const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_DOUBLE, TARE_DT_COMPLEX64, TARE_DT_COMPLEX128, TARE_DT_INT64 };
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int form = 0; form < FORMS; form++)
            check(dtypes[d], form);
}

/* (1 + 2i) (3 - i) = 5 + 5i, and with the conjugates of the factors. */
static void reference__multiplies_complex_numbers(void **state) {
    static const double a[] = { 1, 2 }, b[] = { 3, -1 }, expected[][2] = { { 5, 5 }, { 1, -7 }, { 1, 7 }, { 5, -5 } };
    int64_t first = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        double c[2];
        const struct tare_product p = { .dtype = TARE_DT_COMPLEX128,
                                        .batch = 1,
                                        .m = 1,
                                        .n = 1,
                                        .k = 1,
                                        .a = a,
                                        .b = b,
                                        .c = c,
                                        .a_first = &first,
                                        .b_first = &first,
                                        .conjugate_a = i & 1,
                                        .conjugate_b = i & 2 };
        tare_product_plain(&p);
        assert_memory_equal(c, expected[i], sizeof c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products__have_the_bits_of_the_reference),
        cmocka_unit_test(reference__multiplies_complex_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
