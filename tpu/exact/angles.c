/* Angles and exponents: an absolute error of the argument is one of the result, or a relative one. */
#include "tpu/exact/internal.h"

#include <math.h>

static const struct tare_value_fact *fact_of(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_value_fact(v->facts, edge);
}

static bool varies(const struct tare_exact_values *v, const struct tare_node *node) {
    return fact_of(v, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 })->varies;
}

/* Arguments of up to this size lose less than 40 dB. A linear function of inputs is as large as they are. */
static bool is_small(const struct tare_value_fact *fact) {
    return fact->computed && !fact->wild && !tare_fact_is_linear(fact) &&
           fabsf(fact->mean) + fact->spread + fact->dev <= 4;
}

/* ---- real arguments ---- */

bool tare_exact_is_angle(const struct tare_exact_values *v, const struct tare_exact_view *view,
                         const struct tare_node *node) {
    (void)v;
    (void)view;
    return tare_op_is_one_of(node->op, (const char *const[]){ "Sin", "Cos", "Tan", NULL });
}

bool tare_exact_is_large_angle(const struct tare_exact_values *v, const struct tare_exact_view *view,
                               const struct tare_node *node) {
    return tare_exact_is_angle(v, view, node) && !is_small(fact_of(v, node->inputs[0]));
}

static bool is_exponential(const struct tare_node *node) {
    return tare_op_is_one_of(node->op, (const char *const[]){ "Exp", "Expm1", "Sinh", "Cosh", "Pow", NULL });
}

bool tare_exact_is_large_exponent(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    (void)view;
    return is_exponential(node) && !is_small(fact_of(v, node->inputs[0])) && varies(v, node);
}

bool tare_exact_is_exponent(const struct tare_exact_values *v, const struct tare_exact_view *view,
                            const struct tare_node *node) {
    (void)view;
    return is_exponential(node) && varies(v, node);
}

/* ---- complex numbers ---- */

static bool is_complex(const struct tare_node *node) {
    return node->n_outputs && tare_dtype_base(node->output_dtypes[0]) == TARE_DT_COMPLEX64;
}

/* Parts of complex numbers: spectra and phases. */
bool tare_exact_becomes_complex(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                const struct tare_node *node) {
    int dtype;
    (void)v;
    (void)view;
    if (!node->n_inputs || !is_complex(node)) return false;
    dtype = tare_edge_dtype(node->inputs[0]);
    return tare_exact_carries_floats(dtype) && dtype != TARE_DT_VARIANT;
}

/* Whether arithmetic on the complex value ends in the exponential of a large argument. */
static bool reaches_exponential(const struct tare_exact_values *v, const struct tare_node *node, int steps) {
    static const char *const functions[] = { "Exp", "Sin", "Cos", NULL };
    static const char *const passing[] = { "Mul", "Neg", "AddV2", "Add", "Sub", "RealDiv", "Conj", "Cast", NULL };
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        const struct tare_node *user = use->user;
        if (user->dead || !is_complex(user)) continue;
        if (tare_op_is_one_of(user->op, functions)) {
            if (!is_small(fact_of(v, user->inputs[0]))) return true;
        } else if (steps && (tare_node_has_flag(user, TARE_OP_MOVE) || tare_op_is_one_of(user->op, passing)) &&
                   reaches_exponential(v, user, steps - 1)) {
            return true;
        }
    }
    return false;
}

/* exp(i a), from Complex(0, a) or Cast(a) · i: phases of positions, of frequencies, of the steps of a state. */
bool tare_exact_is_complex_angle(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                 const struct tare_node *node) {
    enum { MOST_STEPS = 6 };
    return tare_exact_becomes_complex(v, view, node) && varies(v, node) && reaches_exponential(v, node, MOST_STEPS);
}
