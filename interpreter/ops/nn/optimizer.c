/* Optimizer steps: update variables from a gradient, through a resource handle or a TensorFlow 1 reference. Training
 * signatures contain them. Each element is computed in double from the stored values and each variable is rounded
 * once. */
#include "interpreter/execution/variable.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/index.h"

#include <math.h>

enum { MOST_SLOTS = 4, MOST_NUMBERS = 8 };

/* One element of one step: slots[0] is the variable, the others are the optimizer's state; numbers are the scalar
 * operands in their order. */
struct point {
    double slots[MOST_SLOTS], grad;
    const double *numbers;
    bool nesterov, update_slots;
    bool times_lr; /* Ftrl stores its linear slot multiplied by the learning rate */
};

/* A row's aux. */
struct optimizer {
    int slots, numbers;
    int grad; /* index of the gradient among the operands after the slots: 0 … numbers */
    void (*step)(struct point *p);
};

static void descend(struct point *p) {
    p->slots[0] -= p->numbers[0] * p->grad;
}

/* lr, momentum */
static void momentum(struct point *p) {
    const double lr = p->numbers[0], m = p->numbers[1];
    p->slots[1] = p->slots[1] * m + p->grad;
    p->slots[0] -= p->nesterov ? p->grad * lr + p->slots[1] * m * lr : p->slots[1] * lr;
}
static void keras_momentum(struct point *p) {
    const double lr = p->numbers[0], m = p->numbers[1];
    p->slots[1] = p->slots[1] * m - p->grad * lr;
    p->slots[0] += p->nesterov ? p->slots[1] * m - p->grad * lr : p->slots[1];
}

/* beta1_power, beta2_power, lr, beta1, beta2, epsilon */
static void adam(struct point *p) {
    const double *n = p->numbers, alpha = n[2] * sqrt(1 - n[1]) / (1 - n[0]);
    p->slots[1] += (p->grad - p->slots[1]) * (1 - n[3]);
    p->slots[2] += (p->grad * p->grad - p->slots[2]) * (1 - n[4]);
    const double m = p->nesterov ? p->grad * (1 - n[3]) + n[3] * p->slots[1] : p->slots[1];
    p->slots[0] -= m * alpha / (sqrt(p->slots[2]) + n[5]);
}
static void amsgrad(struct point *p) {
    const double *n = p->numbers, alpha = n[2] * sqrt(1 - n[1]) / (1 - n[0]);
    p->slots[1] += (p->grad - p->slots[1]) * (1 - n[3]);
    p->slots[2] += (p->grad * p->grad - p->slots[2]) * (1 - n[4]);
    p->slots[3] = fmax(p->slots[3], p->slots[2]);
    p->slots[0] -= p->slots[1] * alpha / (sqrt(p->slots[3]) + n[5]);
}
/* beta1_power, lr, beta1, beta2, epsilon */
static void adamax(struct point *p) {
    const double *n = p->numbers;
    p->slots[1] += (p->grad - p->slots[1]) * (1 - n[2]);
    p->slots[2] = fmax(n[3] * p->slots[2], fabs(p->grad));
    p->slots[0] -= n[1] / (1 - n[0]) * (p->slots[1] / (p->slots[2] + n[4]));
}

/* lr (and epsilon) */
static void adagrad(struct point *p) {
    if (p->update_slots) p->slots[1] += p->grad * p->grad;
    p->slots[0] -= p->grad * p->numbers[0] / sqrt(p->slots[1]);
}
static void adagrad_v2(struct point *p) {
    if (p->update_slots) p->slots[1] += p->grad * p->grad;
    p->slots[0] -= p->grad * p->numbers[0] / (sqrt(p->slots[1]) + p->numbers[1]);
}
/* lr, rho, epsilon */
static void adadelta(struct point *p) {
    const double *n = p->numbers;
    p->slots[1] = p->slots[1] * n[1] + p->grad * p->grad * (1 - n[1]);
    const double update = sqrt(p->slots[2] + n[2]) / sqrt(p->slots[1] + n[2]) * p->grad;
    p->slots[2] = p->slots[2] * n[1] + update * update * (1 - n[1]);
    p->slots[0] -= update * n[0];
}

/* lr, rho, momentum, epsilon */
static void rms_prop(struct point *p) {
    const double *n = p->numbers;
    p->slots[1] += (p->grad * p->grad - p->slots[1]) * (1 - n[1]);
    p->slots[2] = p->slots[2] * n[2] + p->grad * n[0] / sqrt(p->slots[1] + n[3]);
    p->slots[0] -= p->slots[2];
}
static void centered_rms_prop(struct point *p) {
    const double *n = p->numbers;
    p->slots[2] += (p->grad * p->grad - p->slots[2]) * (1 - n[1]);
    p->slots[1] += (p->grad - p->slots[1]) * (1 - n[1]);
    const double spread = p->slots[2] - p->slots[1] * p->slots[1] + n[3];
    p->slots[3] = p->slots[3] * n[2] + p->grad * n[0] / sqrt(spread);
    p->slots[0] -= p->slots[3];
}

/* lr, l1, l2, (l2_shrinkage,) lr_power */
static void follow(struct point *p, double shrinkage, double power) {
    const double lr = p->numbers[0], l1 = p->numbers[1], l2 = p->numbers[2];
    const double grad = p->grad + 2 * shrinkage * p->slots[0], accum = p->slots[1] + p->grad * p->grad;
    const double after = pow(accum, -power), before = pow(p->slots[1], -power);
    const double times = p->times_lr ? lr : 1, divisor = p->times_lr ? 1 : lr; /* no division by a rate of 0 */
    const double linear = p->slots[2] + grad * times - (after - before) / divisor * p->slots[0], bound = l1 * times;
    p->slots[2] = linear;
    p->slots[0] = fabs(linear) > bound ? (copysign(bound, linear) - linear) / (after / divisor + 2 * l2 * times) : 0;
    p->slots[1] = accum;
}
static void ftrl(struct point *p) {
    follow(p, 0, p->numbers[3]);
}
static void ftrl_v2(struct point *p) {
    follow(p, p->numbers[3], p->numbers[4]);
}

/* The soft-threshold operator: shrinks x towards 0 by l1 and l2 in a step of lr. */
static double shrink(double x, double lr, double l1, double l2) {
    const double left = fabs(x) - lr * l1;
    return (l1 > 0 ? copysign(left > 0 ? left : 0, x) : x) / (1 + l2 * lr);
}
/* alpha, l1, l2 */
static void proximal_descent(struct point *p) {
    p->slots[0] = shrink(p->slots[0] - p->grad * p->numbers[0], p->numbers[0], p->numbers[1], p->numbers[2]);
}
static void proximal_adagrad(struct point *p) {
    p->slots[1] += p->grad * p->grad;
    const double rate = p->numbers[0] / sqrt(p->slots[1]);
    p->slots[0] = shrink(p->slots[0] - p->grad * rate, rate, p->numbers[1], p->numbers[2]);
}

static double sign_of(double x) {
    return (x > 0) - (x < 0);
}
/* lr, logbase or alpha, sign_decay, beta */
static void power_sign(struct point *p) {
    const double *n = p->numbers;
    p->slots[1] = p->slots[1] * n[3] + p->grad * (1 - n[3]);
    p->slots[0] -= exp(n[1] * n[2] * sign_of(p->grad) * sign_of(p->slots[1])) * n[0] * p->grad;
}
static void add_sign(struct point *p) {
    const double *n = p->numbers;
    p->slots[1] = p->slots[1] * n[3] + p->grad * (1 - n[3]);
    p->slots[0] -= n[0] * (n[1] + n[2] * sign_of(p->grad) * sign_of(p->slots[1])) * p->grad;
}

/* ---- common to all ---- */

struct slots {
    struct tare_variable_object *variables[MOST_SLOTS];
};

static tare_status open_slots(struct slots *out, const struct tare_kernel *kernel, const struct optimizer *o, int dtype,
                              const struct tare_shape *shape) {
    for (int s = 0; s < o->slots; s++) {
        struct tare_variable_object *variable;
        char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
        TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[s]));
        TARE_TRY(tare_variable_own(variable));
        if (variable->value.dtype != dtype)
            return TARE_FAIL(TARE_TYPE, "variable '%s' is %s, the gradient %s", variable->name,
                             tare_dtype_name(variable->value.dtype), tare_dtype_name(dtype));
        if (!tare_shape_equal(&variable->value.shape, shape))
            return TARE_FAIL(TARE_SHAPE, "variable '%s' has shape %s, the gradient %s", variable->name,
                             tare_shape_text(expected, &variable->value.shape), tare_shape_text(got, shape));
        out->variables[s] = variable;
    }
    return TARE_OK;
}

static tare_status read_numbers(double *numbers, const struct tare_kernel *kernel, const struct optimizer *o,
                                bool sparse) {
    const int operands = o->numbers + 1 + sparse;
    for (int i = 0, n = 0; i < operands; i++) {
        const struct tare_tensor *operand = &kernel->inputs[o->slots + i];
        if (i == o->grad || (sparse && i == o->grad + 1)) continue;
        if (operand->elements != 1)
            return TARE_FAIL(TARE_SHAPE, "operand %d is not a scalar: %lld elements", o->slots + i,
                             (long long)operand->elements);
        numbers[n++] = tare_tensor_get_f64(operand, 0);
    }
    return TARE_OK;
}

static struct point point_of(const struct tare_node *node, const double *numbers) {
    return (struct point){ .numbers = numbers,
                           .nesterov = tare_node_bool(node, "use_nesterov", false),
                           .update_slots = tare_node_bool(node, "update_slots", true),
                           .times_lr = tare_node_bool(node, "multiply_linear_by_lr", false) };
}

/* Updates element `at` of the variables with element `i` of the gradient. */
static void step_at(struct point *p, const struct optimizer *o, const struct slots *slots, int64_t at,
                    const struct tare_tensor *grad, int64_t i) {
    p->grad = tare_tensor_get_f64(grad, i);
    for (int s = 0; s < o->slots; s++)
        p->slots[s] = tare_tensor_get_f64(&slots->variables[s]->value, at);
    o->step(p);
    for (int s = 0; s < o->slots; s++)
        tare_tensor_set_f64(&slots->variables[s]->value, at, p->slots[s]);
}

static tare_status run_optimizer(struct tare_kernel *kernel) {
    const struct optimizer *o = kernel->op->aux;
    const struct tare_tensor *grad = &kernel->inputs[o->slots + o->grad];
    double numbers[MOST_NUMBERS];
    struct slots slots;
    TARE_TRY(read_numbers(numbers, kernel, o, false));
    if (!tare_dtype_is_floating(grad->dtype))
        return TARE_FAIL(TARE_UNSUPPORTED, "a gradient of %s", tare_dtype_name(grad->dtype));
    TARE_TRY(open_slots(&slots, kernel, o, grad->dtype, &grad->shape));
    struct point p = point_of(kernel->node, numbers);
    for (int64_t i = 0; i < grad->elements; i++)
        step_at(&p, o, &slots, i, grad, i);
    return kernel->n_outputs ? tare_kernel_forward(kernel, 0, 0) : TARE_OK;
}

/* The gradient contains only some rows of the variables; the operand after it lists them. A row listed twice is
 * updated twice. */
static tare_status run_sparse(struct tare_kernel *kernel) {
    const struct optimizer *o = kernel->op->aux;
    const struct tare_tensor *grad = &kernel->inputs[o->slots + o->grad], *indices = grad + 1;
    double numbers[MOST_NUMBERS];
    struct tare_variable_object *variable;
    struct slots slots;
    TARE_TRY(read_numbers(numbers, kernel, o, true));
    if (!tare_dtype_is_floating(grad->dtype))
        return TARE_FAIL(TARE_UNSUPPORTED, "a gradient of %s", tare_dtype_name(grad->dtype));
    if (indices->shape.rank != 1 || grad->shape.rank < 1 || grad->shape.dims[0] != indices->elements)
        return TARE_FAIL(TARE_SHAPE, "%lld indices for a gradient of %lld rows", (long long)indices->elements,
                         (long long)(grad->shape.rank ? grad->shape.dims[0] : 0));
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    struct tare_shape whole = grad->shape;
    if (variable->value.dtype == TARE_DT_INVALID || variable->value.shape.rank < 1)
        return TARE_FAIL(TARE_SHAPE, "variable '%s' has no rows", variable->name);
    whole.dims[0] = variable->value.shape.dims[0];
    TARE_TRY(open_slots(&slots, kernel, o, grad->dtype, &whole));
    struct point p = point_of(kernel->node, numbers);
    const int64_t inner = indices->elements ? grad->elements / indices->elements : 0;
    for (int64_t k = 0; k < indices->elements; k++) {
        const int64_t row = tare_index_at(indices, k);
        if (row < 0 || row >= whole.dims[0]) return tare_index_fault("indices", indices, k, row, whole.dims[0]);
    }
    for (int64_t k = 0; k < indices->elements; k++)
        for (int64_t i = 0; i < inner; i++)
            step_at(&p, o, &slots, tare_index_at(indices, k) * inner + i, grad, k * inner + i);
    return kernel->n_outputs ? tare_kernel_forward(kernel, 0, 0) : TARE_OK;
}

static tare_status infer_optimizer(struct tare_infer *infer) {
    if (infer->n_outputs) infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

#define STEP(name, slots, numbers, grad) static const struct optimizer step_##name = { slots, numbers, grad, name }
STEP(descend, 1, 1, 1);
STEP(momentum, 2, 2, 1);
STEP(keras_momentum, 2, 2, 1);
STEP(adam, 3, 6, 6);
STEP(amsgrad, 4, 6, 6);
STEP(adamax, 3, 5, 5);
STEP(adagrad, 2, 1, 1);
STEP(adagrad_v2, 2, 2, 2);
STEP(adadelta, 3, 3, 3);
STEP(rms_prop, 3, 4, 4);
STEP(centered_rms_prop, 4, 4, 4);
STEP(ftrl, 3, 4, 0);
STEP(ftrl_v2, 3, 5, 0);
STEP(proximal_descent, 1, 3, 3);
STEP(proximal_adagrad, 2, 3, 3);
STEP(power_sign, 2, 4, 4);
STEP(add_sign, 2, 4, 4);
#undef STEP

/* The dtypes that all of these ops accept as T. */
#define NUMBERS                                                                                                        \
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "        \
    "quint16, uint16, complex128, half, uint32, uint64}"

/* Both variants of a sparse step: by reference and by handle. */
#define ROWS "; Tindices: {int32, int64}; use_locking: bool = false"
#define BY_REFERENCE(op, in, more, table)                                                                              \
    {                                                                                                                  \
        .name = op, .inputs = in, .outputs = "out: Ref(T)", .attrs = NUMBERS ROWS more, .infer = infer_optimizer,      \
        .run = run_sparse, .aux = &table, .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES                                    \
    }
#define BY_HANDLE(op, in, more, table)                                                                                 \
    {                                                                                                                  \
        .name = op, .inputs = in, .attrs = NUMBERS ROWS more, .infer = infer_optimizer, .run = run_sparse,             \
        .aux = &table, .flags = TARE_OP_STATEFUL | TARE_OP_WRITES                                                      \
    }

const struct tare_op tare_ops_optimizer[] = {
    { .name = "ApplyGradientDescent",
      .inputs = "var: Ref(T), alpha: T, delta: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_descend,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ApplyMomentum",
      .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "use_nesterov: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_momentum,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyMomentum",
      .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "use_nesterov: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_momentum,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ResourceApplyKerasMomentum",
      .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "use_nesterov: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_keras_momentum,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAdam",
      .inputs = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
                "epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "use_nesterov: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adam,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAdam",
      .inputs = "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: "
                "T, epsilon: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "use_nesterov: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adam,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ResourceApplyAdamWithAmsgrad",
      .inputs = "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, "
                "beta1: T, beta2: T, epsilon: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_amsgrad,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAdaMax",
      .inputs = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adamax,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAdaMax",
      .inputs = "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
                "grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adamax,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAdagrad",
      .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "update_slots: bool = true",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adagrad,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAdagrad",
      .inputs = "var: resource, accum: resource, lr: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "update_slots: bool = true",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adagrad,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAdagradV2",
      .inputs = "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "update_slots: bool = true",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adagrad_v2,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAdagradV2",
      .inputs = "var: resource, accum: resource, lr: T, epsilon: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "update_slots: bool = true",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adagrad_v2,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAdadelta",
      .inputs = "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adadelta,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAdadelta",
      .inputs = "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_adadelta,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyRMSProp",
      .inputs = "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_rms_prop,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyRMSProp",
      .inputs = "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_rms_prop,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyCenteredRMSProp",
      .inputs = "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_centered_rms_prop,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyCenteredRMSProp",
      .inputs = "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, "
                "grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_centered_rms_prop,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyFtrl",
      .inputs = "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "multiply_linear_by_lr: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_ftrl,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyFtrl",
      .inputs = "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "multiply_linear_by_lr: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_ftrl,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyFtrlV2",
      .inputs = "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, "
                "lr_power: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "multiply_linear_by_lr: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_ftrl_v2,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyFtrlV2",
      .inputs = "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, "
                "lr_power: T",
      .attrs = NUMBERS "; use_locking: bool = false; "
                       "multiply_linear_by_lr: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_ftrl_v2,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyProximalGradientDescent",
      .inputs = "var: Ref(T), alpha: T, l1: T, l2: T, delta: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_proximal_descent,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyProximalGradientDescent",
      .inputs = "var: resource, alpha: T, l1: T, l2: T, delta: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_proximal_descent,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyProximalAdagrad",
      .inputs = "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_proximal_adagrad,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyProximalAdagrad",
      .inputs = "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_proximal_adagrad,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyPowerSign",
      .inputs = "var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_power_sign,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyPowerSign",
      .inputs = "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_power_sign,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "ApplyAddSign",
      .inputs = "var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T",
      .outputs = "out: Ref(T)",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_add_sign,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { .name = "ResourceApplyAddSign",
      .inputs = "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T",
      .attrs = NUMBERS "; use_locking: bool = false",
      .infer = infer_optimizer,
      .run = run_optimizer,
      .aux = &step_add_sign,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    BY_REFERENCE(
        "SparseApplyAdadelta",
        "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T, indices: Tindices", "",
        step_adadelta),
    BY_HANDLE(
        "ResourceSparseApplyAdadelta",
        "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, indices: Tindices",
        "", step_adadelta),
    BY_REFERENCE("SparseApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices",
                 "; update_slots: bool = true", step_adagrad),
    BY_HANDLE("ResourceSparseApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices",
              "; update_slots: bool = true", step_adagrad),
    BY_REFERENCE("SparseApplyAdagradV2", "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices",
                 "; update_slots: bool = true", step_adagrad_v2),
    BY_HANDLE("ResourceSparseApplyAdagradV2",
              "var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices",
              "; update_slots: bool = true", step_adagrad_v2),
    BY_REFERENCE("SparseApplyCenteredRMSProp",
                 "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, "
                 "indices: Tindices",
                 "", step_centered_rms_prop),
    BY_HANDLE("ResourceSparseApplyCenteredRMSProp",
              "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: "
              "T, indices: Tindices",
              "", step_centered_rms_prop),
    BY_REFERENCE(
        "SparseApplyFtrl",
        "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
        "; multiply_linear_by_lr: bool = false", step_ftrl),
    BY_HANDLE("ResourceSparseApplyFtrl",
              "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
              "lr_power: T",
              "; multiply_linear_by_lr: bool = false", step_ftrl),
    BY_REFERENCE("SparseApplyFtrlV2",
                 "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
                 "l2_shrinkage: T, lr_power: T",
                 "; multiply_linear_by_lr: bool = false", step_ftrl_v2),
    BY_HANDLE("ResourceSparseApplyFtrlV2",
              "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
              "l2_shrinkage: T, lr_power: T",
              "; multiply_linear_by_lr: bool = false", step_ftrl_v2),
    BY_HANDLE("ResourceSparseApplyKerasMomentum",
              "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
              "; use_nesterov: bool = false", step_keras_momentum),
    BY_REFERENCE("SparseApplyMomentum", "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T",
                 "; use_nesterov: bool = false", step_momentum),
    BY_HANDLE("ResourceSparseApplyMomentum",
              "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T",
              "; use_nesterov: bool = false", step_momentum),
    BY_REFERENCE("SparseApplyProximalAdagrad",
                 "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: Tindices", "",
                 step_proximal_adagrad),
    BY_HANDLE("ResourceSparseApplyProximalAdagrad",
              "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices", "",
              step_proximal_adagrad),
    BY_REFERENCE("SparseApplyProximalGradientDescent",
                 "var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices", "", step_proximal_descent),
    BY_HANDLE("ResourceSparseApplyProximalGradientDescent",
              "var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices", "", step_proximal_descent),
    BY_REFERENCE(
        "SparseApplyRMSProp",
        "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices", "",
        step_rms_prop),
    BY_HANDLE("ResourceSparseApplyRMSProp",
              "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: "
              "Tindices",
              "", step_rms_prop),
    { 0 },
};
