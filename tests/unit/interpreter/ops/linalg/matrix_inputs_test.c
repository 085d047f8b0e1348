/* Decompositions and solvers for batches, and for matrices that are singular, empty or contain NaN, in all four
 * precisions. */
#include "support/matrix_request.h"
#include "support/mini_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Runs a batch and each of its matrices alone. */
static void check_batch(struct matrix_request *r) {
    const struct matrix all = r->inputs[0];
    const int64_t n = all.columns;
    struct tare_tensor batch[3], single[3];
    mini_ok(matrix_request_run(r, batch));
    r->inputs[0].rows = n;
    for (int64_t i = 0; i < r->batch; i++) {
        struct matrix_request one = *r;
        one.batch = 0;
        one.inputs[0].at = all.at + i * n * n;
        mini_ok(matrix_request_run(&one, single));
        for (int k = 0; k < r->n_outputs; k++) {
            const size_t bytes = (size_t)single[k].elements * tare_dtype_size(single[k].dtype);
            assert_int_equal(batch[k].elements, r->batch * single[k].elements);
            if (memcmp((const char *)batch[k].data + (size_t)i * bytes, single[k].data, bytes) != 0)
                fail_msg("%s %s n=%lld: output %d of matrix %lld differs in a batch", r->op, tare_dtype_name(r->dtype),
                         (long long)n, k, (long long)i);
            tare_tensor_reset(&single[k]);
        }
    }
    for (int k = 0; k < r->n_outputs; k++)
        tare_tensor_reset(&batch[k]);
}

static void batch__each_matrix_has_the_bits_of_a_single_one(void **state) {
    static const struct {
        const char *op;
        int n_outputs;
    } ops[] = { { "Qr", 2 }, { "Svd", 3 },      { "SelfAdjointEigV2", 2 }, { "Eig", 2 },
                { "Lu", 2 }, { "Cholesky", 1 }, { "MatrixInverse", 1 },    { "MatrixDeterminant", 1 } };
    static const int64_t ns[] = { 1, 4, 7, 20, 40 };
    enum { BATCH = 3 };
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (size_t i = 0; i < COUNT(ops) * COUNT(ns); i++) {
            const int64_t n = ns[i % COUNT(ns)];
            struct matrix_request r = {
                .op = ops[i / COUNT(ns)].op, .dtype = matrix_dtypes[d], .n_inputs = 1, .batch = BATCH
            };
            r.n_outputs = ops[i / COUNT(ns)].n_outputs;
            matrix_request_set_result(&r);
            r.inputs[0] = matrix_make(MATRIX_RANDOM, r.dtype, BATCH * n, n);
            for (int64_t row = 0; row < BATCH * n; row++) /* positive definite for Cholesky */
                r.inputs[0].at[row * n + row % n] = 10 * (double)n;
            struct matrix all = r.inputs[0];
            check_batch(&r);
            free(all.at);
        }
}

static void singular_matrices__are_rejected(void **state) {
    static const struct {
        const char *op;
        int n_inputs;
    } ops[] = { { "MatrixInverse", 1 }, { "MatrixSolve", 2 }, { "MatrixTriangularSolve", 2 }, { "Cholesky", 1 } };
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (size_t k = 0; k < COUNT(ops); k++) {
            struct matrix_request r = {
                .op = ops[k].op, .dtype = matrix_dtypes[d], .n_outputs = 1, .n_inputs = ops[k].n_inputs
            };
            struct tare_tensor result;
            r.inputs[0] = matrix_make(MATRIX_ZERO, r.dtype, 4, 4);
            r.inputs[1] = matrix_make(MATRIX_RANDOM, r.dtype, 4, 2);
            mini_fails(matrix_request_run(&r, &result),
                       k < 3 ? "not invertible" : "Cholesky decomposition was not successful");
            free(r.inputs[0].at), free(r.inputs[1].at);
        }
}

/* Eigenvalues and Cholesky factors of NaN are errors, as in TensorFlow; other results are NaN. */
static void nan__is_an_error_or_the_result(void **state) {
    static const struct {
        const char *op, *error;
        int n_outputs;
    } ops[] = { { "SelfAdjointEigV2", "Self-adjoint eigen decomposition was not successful", 2 },
                { "Cholesky", "Cholesky decomposition was not successful", 1 },
                { "Eig", "Eigen decomposition was not successful", 2 },
                { "MatrixExponential", "the matrix contains values that are not finite", 1 },
                { "Svd", NULL, 3 },
                { "Qr", NULL, 2 },
                { "MatrixDeterminant", NULL, 1 },
                { "MatrixInverse", NULL, 1 } };
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (size_t k = 0; k < 2 * COUNT(ops); k++) {
            const int64_t nans = k % 2 ? 25 : 1;
            struct matrix_request r = {
                .op = ops[k / 2].op, .dtype = matrix_dtypes[d], .n_outputs = ops[k / 2].n_outputs, .n_inputs = 1
            };
            struct tare_tensor results[3];
            matrix_request_set_result(&r);
            r.inputs[0] = matrix_make(MATRIX_RANDOM, r.dtype, 5, 5);
            for (int64_t i = 0; i < nans; i++)
                r.inputs[0].at[i] = NAN;
            if (ops[k / 2].error) {
                mini_fails(matrix_request_run(&r, results), ops[k / 2].error);
            } else {
                mini_ok(matrix_request_run(&r, results));
                for (int i = 0; i < r.n_outputs; i++) {
                    assert_true(isnan(creal(tare_tensor_get_c128(&results[i], 0))));
                    tare_tensor_reset(&results[i]);
                }
            }
            free(r.inputs[0].at);
        }
}

/* Shapes of empty results; the orthogonal factors of a matrix without columns or rows are the identity. */
static void empty__results_have_the_right_shape(void **state) {
    static const struct {
        const char *op;
        int64_t rows, columns;
        bool full;
        const char *shapes[3];
    } cases[] = {
        { "Qr", 3, 0, true, { "[3,3]", "[3,0]" } },
        { "Qr", 0, 3, false, { "[0,0]", "[0,3]" } },
        { "Svd", 3, 0, true, { "[0]", "[3,3]", "[0,0]" } },
        { "Svd", 0, 2, false, { "[0]", "[0,0]", "[2,0]" } },
        { "SelfAdjointEigV2", 0, 0, false, { "[0]", "[0,0]" } },
        { "Eig", 0, 0, false, { "[0]", "[0,0]" } },
        { "Lu", 0, 0, false, { "[0,0]", "[0]" } },
        { "MatrixDeterminant", 0, 0, false, { "[]" } },
        { "Cholesky", 0, 0, false, { "[0,0]" } },
        { "MatrixInverse", 0, 0, false, { "[0,0]" } },
    };
    (void)state;
    for (size_t d = 0; d < COUNT(matrix_dtypes); d++)
        for (size_t k = 0; k < COUNT(cases); k++) {
            struct matrix_request r = { .op = cases[k].op, .dtype = matrix_dtypes[d], .n_inputs = 1 };
            struct tare_tensor results[3];
            char text[TARE_SHAPE_TEXT_SIZE];
            while (r.n_outputs < 3 && cases[k].shapes[r.n_outputs])
                r.n_outputs++;
            r.flag = cases[k].full ? "full_matrices" : NULL;
            matrix_request_set_result(&r);
            r.inputs[0] = matrix_new(cases[k].rows, cases[k].columns);
            mini_ok(matrix_request_run(&r, results));
            for (int i = 0; i < r.n_outputs; i++) {
                assert_string_equal(tare_shape_text(text, &results[i].shape), cases[k].shapes[i]);
                if (cases[k].full && results[i].elements == 9) {
                    struct matrix q = matrix_from_tensor(&results[i]);
                    assert_true(matrix_distance(q, matrix_identity(3)) == 0);
                }
                tare_tensor_reset(&results[i]);
            }
            free(r.inputs[0].at);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch__each_matrix_has_the_bits_of_a_single_one),
        cmocka_unit_test(singular_matrices__are_rejected),
        cmocka_unit_test(nan__is_an_error_or_the_result),
        cmocka_unit_test(empty__results_have_the_right_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
