/* The modules of the test data that were recorded from JAX compute the outputs that JAX recorded: signs and phases of
 * eigenvectors and the like are not determined by the matrix, so those results are checked by their definition. */
#include "support/mini_model.h"
#include "support/models.h"

#include "base/file.h"
#include "datasets/npy.h"
#include "convert/saved_model.h"
#include "interpreter/session.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

static const char *folder;

typedef double complex number;

static number at(const struct tare_tensor *t, int64_t i) {
    return tare_tensor_get_c128(t, i);
}

/* Element (i, j) of matrix `k` of a batch of n × n matrices. */
static number element(const struct tare_tensor *t, int64_t k, int64_t i, int64_t j) {
    const int64_t n = t->shape.dims[t->shape.rank - 1];
    return at(t, (k * n + i) * n + j);
}

static double tolerance_of(int dtype) {
    return dtype == TARE_DT_DOUBLE || dtype == TARE_DT_COMPLEX128 ? 1e-9 : 1e-4;
}

static double largest(const struct tare_tensor *t) {
    double most = 0;
    for (int64_t i = 0; i < t->elements; i++)
        most = fmax(most, cabs(at(t, i)));
    return most;
}

static bool is_near(const struct tare_tensor *x, const struct tare_tensor *y) {
    const double limit = tolerance_of(y->dtype) * fmax(1, largest(y));
    if (!tare_shape_equal(&x->shape, &y->shape) || x->dtype != y->dtype) return false;
    for (int64_t i = 0; i < x->elements; i++) {
        const number a = at(x, i), b = at(y, i);
        if (!(cabs(a - b) <= limit) && !(isnan(creal(a)) && isnan(creal(b)))) return false;
    }
    return true;
}

/* ---- results that are determined up to a phase ---- */

/* A v = v λ with A = iota(n², n × n): what JAX's tests of eig use. Columns of `vectors` have length one. */
static bool are_right_vectors(const struct tare_tensor *values, const struct tare_tensor *vectors, bool left) {
    const int64_t n = values->elements;
    for (int64_t k = 0; k < n; k++) {
        double length = 0;
        for (int64_t i = 0; i < n; i++) {
            number sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += (double)(left ? j * n + i : i * n + j) * element(vectors, 0, j, k);
            const number value = left ? conj(at(values, k)) : at(values, k);
            if (!(cabs(sum - value * element(vectors, 0, i, k)) <= 1e-4 * 30)) return false;
            length += creal(element(vectors, 0, i, k) * conj(element(vectors, 0, i, k)));
        }
        if (!(fabs(length - 1) <= 1e-4)) return false;
    }
    return true;
}

/* The matrices have orthonormal columns (or rows), and U diag(s) V, with V = Uᴴ if it is NULL, are the same in both. */
static bool same_product(const struct tare_tensor *u, const struct tare_tensor *s, const struct tare_tensor *v,
                         const struct tare_tensor *u0, const struct tare_tensor *s0, const struct tare_tensor *v0) {
    const int64_t n = u->shape.dims[u->shape.rank - 1];
    if (!is_near(s, s0) || !tare_shape_equal(&u->shape, &u0->shape)) return false;
    for (int64_t k = 0; k < u->elements / (n * n); k++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                number sum = 0, expected = 0, unit = 0;
                for (int64_t p = 0; p < n; p++) {
                    unit += conj(element(u, k, p, i)) * element(u, k, p, j);
                    sum +=
                        element(u, k, i, p) * at(s, k * n + p) * (v ? element(v, k, p, j) : conj(element(u, k, j, p)));
                    expected += element(u0, k, i, p) * at(s0, k * n + p) *
                                (v0 ? element(v0, k, p, j) : conj(element(u0, k, j, p)));
                }
                if (!(cabs(sum - expected) <= 1e-4 * fmax(1, largest(s0))) || !(cabs(unit - (i == j)) <= 1e-4))
                    return false;
            }
    return true;
}

/* Z T Zᴴ is the recorded one, and Z is unitary. */
static bool same_schur(const struct tare_tensor *t, const struct tare_tensor *z, const struct tare_tensor *t0,
                       const struct tare_tensor *z0) {
    const int64_t n = t->shape.dims[t->shape.rank - 1];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            number sum = 0, expected = 0, unit = 0;
            for (int64_t p = 0; p < n; p++) {
                unit += element(z, 0, i, p) * conj(element(z, 0, j, p));
                for (int64_t q = 0; q < n; q++) {
                    sum += element(z, 0, i, p) * element(t, 0, p, q) * conj(element(z, 0, j, q));
                    expected += element(z0, 0, i, p) * element(t0, 0, p, q) * conj(element(z0, 0, j, q));
                }
            }
            if (!(cabs(sum - expected) <= 1e-4 * fmax(1, largest(t0))) || !(cabs(unit - (i == j)) <= 1e-4))
                return false;
        }
    return true;
}

/* `count` outputs against the recorded ones. */
static bool check(const char *name, const struct tare_tensor *got, const struct tare_tensor *expected, size_t count) {
    if (strstr(name, "eig_lapack_geev"))
        return count == 3 && are_right_vectors(&got[0], &got[1], true) && are_right_vectors(&got[0], &got[2], false);
    if (strstr(name, "schur")) return count == 2 && same_schur(&got[0], &got[1], &expected[0], &expected[1]);
    if (strstr(name, "eigh_"))
        return count == 2 && same_product(&got[0], &got[1], NULL, &expected[0], &expected[1], NULL);
    if (strstr(name, "svd_"))
        return count == 3 && same_product(&got[0], &got[1], &got[2], &expected[0], &expected[1], &expected[2]);
    for (size_t i = 0; i < count; i++)
        if (!is_near(&got[i], &expected[i])) return false;
    return true;
}

/* ---- running ---- */

static size_t read_arrays(struct tare_tensor *out, const char *module, const char *what) {
    size_t count = 0;
    for (char path[1200]; count < MOST; count++) {
        snprintf(path, sizeof path, "%s/jax/%s/%s_%zu.npy", folder, module, what, count);
        if (tare_file_kind_of(path) != TARE_FILE_REGULAR) break;
        mini_ok(tare_npy_read(&out[count], path));
    }
    return count;
}

static bool run_module(const char *name) {
    char path[1200];
    struct tare_graph_model *model;
    struct tare_session *session;
    struct tare_tensor inputs[MOST], expected[MOST], got[MOST];
    const size_t n_inputs = read_arrays(inputs, name, "input"), n_outputs = read_arrays(expected, name, "output");
    bool good = false;
    snprintf(path, sizeof path, "%s/jax/%s/module.mlirbc", folder, name);
    mini_ok(tare_saved_model_load(&model, path, NULL));
    const struct tare_signature *signature = &model->signatures[0];
    if (model->module_error || signature->n_inputs != n_inputs || signature->n_outputs != n_outputs) {
        print_message("%s: %s\n", name, model->module_error ? model->module_error : "other inputs or outputs");
    } else {
        mini_ok(tare_session_new(&session, model, NULL));
        if (tare_session_run_signature(session, signature, inputs, got) == TARE_OK) {
            good = check(name, got, expected, n_outputs);
            if (!good) print_message("%s: other outputs\n", name);
            for (size_t i = 0; i < n_outputs; i++)
                tare_tensor_reset(&got[i]);
        } else {
            print_message("%s: %s\n", name, tare_error_text());
        }
        tare_session_free(session);
    }
    for (size_t i = 0; i < n_inputs; i++)
        tare_tensor_reset(&inputs[i]);
    for (size_t i = 0; i < n_outputs; i++)
        tare_tensor_reset(&expected[i]);
    tare_model_free(model);
    return good;
}

/* Modules that need not agree: one whose initial values, 1 and 2, are no identities of its windowed reduction and were
 * added once for each place of a window by the TPU; one that sends values between devices. */
static bool is_undefined(const char *name) {
    return strcmp(name, "tpu_stablehlo_dynamic_reduce_window-variadic_2023_06_17") == 0 ||
           strcmp(name, "tpu_Sharding-2025_06_30-shardy") == 0;
}

static void modules__compute_what_jax_recorded(void **state) {
    char path[1200];
    struct tare_file_list list = { 0 };
    size_t good = 0, wrong = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/jax", folder);
    mini_ok(tare_file_list(&list, path));
    for (size_t i = 0; i < list.count; i++) {
        tare_error_clear();
        if (run_module(list.names[i]))
            good++;
        else
            wrong += !is_undefined(list.names[i]);
    }
    tare_file_list_free(&list);
    print_message("%zu modules agree\n", good);
    assert_int_equal(wrong, 0);
    assert_true(good >= 38);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(modules__compute_what_jax_recorded) };
    folder = test_data("stablehlo");
    return folder ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
