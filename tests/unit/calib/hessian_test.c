/* Hessians of layer inputs: windows against a plain loop, exact sums whatever the order, and values out of the way. */
#include "calib/hessian.h"

#include "interpreter/kernels/lapack.h"
#include "graph/model.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

static struct tare_graph_model *model;
static struct tare_edge x;

static int begin(void **state) {
    (void)state;
    model = mini_model_new();
    x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    return 0;
}

static int end(void **state) {
    (void)state;
    tare_model_free(model);
    return 0;
}

static struct tare_tensor numbers(int rank, const int64_t *dims, uint64_t seed, double reach) {
    struct tare_shape shape = { .rank = rank };
    struct tare_tensor out;
    memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
    mini_ok(tare_tensor_new(&out, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < out.elements; i++)
        TARE_DATA(float, &out)[i] = (float)(reach * (2 * draw_unit(&seed) - 1));
    return out;
}

static const struct tare_hessian *one(struct tare_hessians **set, const struct tare_hessian_form *form,
                                      const struct tare_tensor *value, double reach) {
    *set = tare_hessians_new();
    mini_ok(tare_hessians_add(*set, x, -1, form, reach));
    assert_true(tare_hessians_want(*set, x.node, 0));
    assert_false(tare_hessians_want(*set, x.node, 1));
    mini_ok(tare_hessians_observe(*set, x.node, 0, -1, value));
    return tare_hessians_find(*set, x, -1, form);
}

/* What the window's tap and channel `k` sees at an output position, by the definition of a convolution. */
static double seen(const struct tare_hessian_form *form, const struct tare_tensor *value, int64_t image, int64_t oy,
                   int64_t ox, int64_t k) {
    const int64_t c = k % form->channels, tap = k / form->channels, kx = tap % form->window[1].size,
                  ky = tap / form->window[1].size;
    const int64_t y = oy * form->window[0].stride - form->window[0].low + ky * form->window[0].dilation;
    const int64_t z = ox * form->window[1].stride - form->window[1].low + kx * form->window[1].dilation;
    const int64_t height = value->shape.dims[1], width = value->shape.dims[2];
    if (y < 0 || z < 0 || y >= height || z >= width) return 0;
    return (double)TARE_CONST_DATA(float, value)[((image * height + y) * width + z) * form->channels + c];
}

static void check_window(const struct tare_hessian_form *form, int64_t height, int64_t width) {
    const int64_t dims[] = { 2, height, width, form->channels };
    const struct tare_hessian_window *w = form->window;
    const int64_t rows = (height + w[0].low + w[0].high - (w[0].size - 1) * w[0].dilation - 1) / w[0].stride + 1;
    const int64_t columns = (width + w[1].low + w[1].high - (w[1].size - 1) * w[1].dilation - 1) / w[1].stride + 1;
    struct tare_tensor value = numbers(4, dims, 5, 3);
    struct tare_hessians *set;
    const struct tare_hessian *h = one(&set, form, &value, 3);
    assert_non_null(h);
    assert_int_equal(h->rows, 2 * rows * columns);
    for (int64_t i = 0; i < h->size; i++)
        for (int64_t j = i; j < h->size; j++) {
            double expected = 0;
            for (int64_t p = 0; p < h->rows; p++) {
                const int64_t n = p / (rows * columns), oy = p / columns % rows, ox = p % columns;
                expected += seen(form, &value, n, oy, ox, i) * seen(form, &value, n, oy, ox, j);
            }
            const double got = h->sums[i * h->stride + j] * h->step * h->step;
            if (!(fabs(got - expected) < 2e-3 * (double)h->rows))
                fail_msg("sum %d, %d is %g, expected %g", (int)i, (int)j, got, expected);
        }
    tare_hessians_free(set);
    tare_tensor_reset(&value);
}

static void windows__see_what_a_convolution_multiplies(void **state) {
    const struct tare_hessian_form plain = { 2, 3, { { 3, 1, 1, 1, 1, 1 }, { 3, 1, 1, 1, 1, 1 } }, 0, 0, { 0 } };
    const struct tare_hessian_form strided = { 2, 2, { { 3, 2, 1, 0, 1, 1 }, { 2, 3, 1, 1, 0, 1 } }, 0, 0, { 0 } };
    const struct tare_hessian_form dilated = { 2, 1, { { 2, 1, 3, 0, 0, 1 }, { 3, 1, 2, 2, 2, 1 } }, 0, 0, { 0 } };
    const struct tare_hessian_form point = { 2, 5, { { 1, 2, 1, 0, 0, 1 }, { 1, 2, 1, 0, 0, 1 } }, 0, 0, { 0 } };
    (void)state;
    check_window(&plain, 6, 5);
    check_window(&strided, 7, 9);
    check_window(&dilated, 6, 4);
    check_window(&point, 4, 5);
}

/* A group's sums are those of the products of what the window sees of its channels, and the same on any row of the
 * image. */
static void groups__see_their_own_channels(void **state) {
    const struct tare_hessian_form forms[] = {
        { 2, 6, { { 2, 1, 1, 0, 1, 1 }, { 3, 2, 1, 1, 0, 1 } }, 3, 0, { 0 } },
        { 2, 4, { { 3, 1, 1, 1, 1, 1 }, { 2, 1, 2, 1, 1, 1 } }, 4, 0, { 0 } },
    };
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        const struct tare_hessian_form *form = &forms[f], whole = {
            form->spatial, form->channels, { form->window[0], form->window[1] }, 0, 0, { 0 }
        };
        const int64_t dims[] = { 2, 6, 5, form->channels }, each = form->channels / form->groups;
        struct tare_tensor value = numbers(4, dims, 5, 3);
        struct tare_hessians *sets[2];
        const struct tare_hessian *a = one(&sets[0], form, &value, 3), *b = one(&sets[1], &whole, &value, 3);
        assert_int_equal(a->size * form->groups, b->size);
        assert_int_equal(a->rows, b->rows);
        for (int64_t g = 0; g < form->groups; g++)
            for (int64_t i = 0; i < a->size; i++) {
                const int64_t k = i / each * form->channels + g * each + i % each; /* in the window over all channels */
                assert_true(a->row_sums[g * a->stride + i] == b->row_sums[k]);
                for (int64_t j = i; j < a->size; j++) {
                    const int64_t l = j / each * form->channels + g * each + j % each;
                    const double got = a->sums[(g * a->size + i) * a->stride + j],
                                 expected = b->sums[k * b->stride + l];
                    if (got != expected)
                        fail_msg("group %d, sum %d, %d is %g, expected %g", (int)g, (int)i, (int)j, got, expected);
                }
            }
        assert_null(tare_hessians_find(sets[0], x, -1, &whole));
        for (int i = 0; i < 2; i++)
            tare_hessians_free(sets[i]);
        tare_tensor_reset(&value);
    }
}

static void rows_of_a_matrix__are_its_last_axes(void **state) {
    const struct tare_hessian_form form = { .channels = 6 };
    const int64_t dims[] = { 4, 2, 3 };
    struct tare_tensor value = numbers(3, dims, 9, 1);
    struct tare_hessians *set;
    const struct tare_hessian *h = one(&set, &form, &value, 1);
    (void)state;
    assert_int_equal(h->rows, 4);
    for (int i = 0; i < 6; i++) {
        double sum = 0;
        for (int r = 0; r < 4; r++)
            sum += (double)TARE_DATA(float, &value)[r * 6 + i];
        if (!(fabs(h->row_sums[i] * h->step - sum) < 4 * h->step))
            fail_msg("sum %d is %g, expected %g", i, h->row_sums[i] * h->step, sum);
    }
    tare_hessians_free(set);
    tare_tensor_reset(&value);
}

/* The same samples in one tensor, and one by one from the last. */
static void sums__do_not_depend_on_order_and_batches(void **state) {
    const struct tare_hessian_form form = { 2, 3, { { 3, 1, 1, 1, 1, 1 }, { 3, 1, 1, 1, 1, 1 } }, 0, 0, { 0 } };
    const int64_t all[] = { 9, 8, 7, 3 }, single[] = { 1, 8, 7, 3 };
    struct tare_tensor value = numbers(4, all, 12, 7);
    struct tare_hessians *together, *apart;
    const struct tare_hessian *a = one(&together, &form, &value, 7), *b = NULL;
    (void)state;
    apart = tare_hessians_new();
    mini_ok(tare_hessians_add(apart, x, -1, &form, 7));
    for (int i = 8; i >= 0; i--) {
        struct tare_tensor part = numbers(4, single, 1, 1);
        memcpy(part.data, TARE_DATA(float, &value) + i * part.elements, (size_t)part.elements * sizeof(float));
        mini_ok(tare_hessians_observe(apart, x.node, 0, -1, &part));
        tare_tensor_reset(&part);
    }
    b = tare_hessians_find(apart, x, -1, &form);
    assert_int_equal(a->rows, b->rows);
    for (int64_t i = 0; i < a->size; i++)
        assert_memory_equal(&a->sums[i * a->stride + i], &b->sums[i * a->stride + i],
                            (size_t)(a->size - i) * sizeof *a->sums);
    tare_hessians_free(together);
    tare_hessians_free(apart);
    tare_tensor_reset(&value);
}

/* OpenBLAS may add in any order, as all terms are integers. */
static void the_update_by_openblas__has_the_bits_of_the_plain_one(void **state) {
    enum { MOST = 40, ROWS = 19 };
    uint64_t seed = 77;
    (void)state;
    mini_ok(tare_lapack_open());
    for (int64_t size = 1; size <= 33; size++) {
        const int64_t stride = (size + 7) / 8 * 8;
        double rows[ROWS * MOST] = { 0 }, plain[MOST * MOST], fast[MOST * MOST];
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t i = 0; i < size; i++)
                rows[r * stride + i] = rint(16384 * draw_unit(&seed) - 8192);
        for (int i = 0; i < MOST * MOST; i++)
            plain[i] = fast[i] = rint(1e12 * draw_unit(&seed));
        tare_hessian_update_plain(plain, size, stride, rows, ROWS);
        tare_hessian_update_blas(fast, size, stride, rows, ROWS);
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = i; j < size; j++)
                if (plain[i * stride + j] != fast[i * stride + j])
                    fail_msg("size %d: %d, %d is %.17g, expected %.17g", (int)size, (int)i, (int)j,
                             fast[i * stride + j], plain[i * stride + j]);
        for (int64_t i = size * stride; i < MOST * MOST; i++)
            assert_true(plain[i] == fast[i]); /* nothing beyond */
    }
}

static void values_beyond_the_reach_and_nan__do_no_harm(void **state) {
    const struct tare_hessian_form form = { .channels = 2 };
    const int64_t dims[] = { 3, 2 };
    struct tare_tensor value = numbers(2, dims, 1, 1);
    const float odd[] = { 1000, 1, -INFINITY, NAN, 0.5f, 0 };
    struct tare_hessians *set;
    const struct tare_hessian *h;
    (void)state;
    memcpy(value.data, odd, sizeof odd);
    h = one(&set, &form, &value, 1);
    assert_true(h->step == 1.0 / 8192 || h->step == 1.0 / 4096);
    assert_true(h->sums[0] * h->step * h->step <= 2 * 4 + 0.25 + 1e-9 && h->sums[0] > 0);
    assert_true(h->sums[h->stride + 1] * h->step * h->step == 1);
    tare_hessians_free(set);
    tare_tensor_reset(&value);
}

static void a_value_of_another_form__is_named(void **state) {
    const struct tare_hessian_form form = { .channels = 4 },
                                   window = { 2, 3, { { 1, 1, 1, 0, 0, 1 }, { 1, 1, 1, 0, 0, 1 } }, 0, 0, { 0 } };
    const int64_t dims[] = { 3, 2, 1 };
    struct tare_tensor value = numbers(3, dims, 1, 1);
    struct tare_hessians *set = tare_hessians_new();
    (void)state;
    mini_ok(tare_hessians_add(set, x, -1, &form, 1));
    mini_fails(tare_hessians_observe(set, x.node, 0, -1, &value),
               "Placeholder 'x': an activation of 6 numbers is not of rows of 4");
    assert_null(tare_hessians_find(set, x, -1, &form)); /* nothing counted */
    tare_hessians_free(set);
    set = tare_hessians_new();
    mini_ok(tare_hessians_add(set, x, -1, &window, 1));
    mini_fails(tare_hessians_observe(set, x.node, 0, -1, &value), "does not fit the window");
    tare_hessians_free(set);
    tare_tensor_reset(&value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows__see_what_a_convolution_multiplies, begin, end),
        cmocka_unit_test_setup_teardown(groups__see_their_own_channels, begin, end),
        cmocka_unit_test_setup_teardown(rows_of_a_matrix__are_its_last_axes, begin, end),
        cmocka_unit_test_setup_teardown(sums__do_not_depend_on_order_and_batches, begin, end),
        cmocka_unit_test_setup_teardown(the_update_by_openblas__has_the_bits_of_the_plain_one, begin, end),
        cmocka_unit_test_setup_teardown(values_beyond_the_reach_and_nan__do_no_harm, begin, end),
        cmocka_unit_test_setup_teardown(a_value_of_another_form__is_named, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
