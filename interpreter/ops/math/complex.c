/* Complex, Real, Imag, Conj, ComplexAbs and Angle: conversions between complex numbers and their real components. */
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <tgmath.h>

struct complex_op {
    tare_loop1 narrow, wide; /* for complex64 and complex128 */
};

TARE_LOOP1(real_c64, _Complex float, float, TARE_SAME, TARE_SAME, creal(x))
TARE_LOOP1(real_c128, _Complex double, double, TARE_SAME, TARE_SAME, creal(x))
TARE_LOOP1(imag_c64, _Complex float, float, TARE_SAME, TARE_SAME, cimag(x))
TARE_LOOP1(imag_c128, _Complex double, double, TARE_SAME, TARE_SAME, cimag(x))
TARE_LOOP1(abs_c64, _Complex float, float, TARE_SAME, TARE_SAME, fabs(x))
TARE_LOOP1(abs_c128, _Complex double, double, TARE_SAME, TARE_SAME, fabs(x))
TARE_LOOP1(angle_c64, _Complex float, float, TARE_SAME, TARE_SAME, carg(x))
TARE_LOOP1(angle_c128, _Complex double, double, TARE_SAME, TARE_SAME, carg(x))
TARE_LOOP1(conj_c64, _Complex float, _Complex float, TARE_SAME, TARE_SAME, conj(x))
TARE_LOOP1(conj_c128, _Complex double, _Complex double, TARE_SAME, TARE_SAME, conj(x))
static const struct complex_op real_op = { real_c64, real_c128 }, imag_op = { imag_c64, imag_c128 },
                               abs_op = { abs_c64, abs_c128 }, angle_op = { angle_c64, angle_c128 },
                               conj_op = { conj_c64, conj_c128 };

static tare_status run_part(struct tare_kernel *kernel) {
    const struct complex_op *op = kernel->op->aux;
    const int dtype = kernel->inputs[0].dtype, to = tare_dtype_base(kernel->node->output_dtypes[0]);
    const bool wide = dtype == TARE_DT_COMPLEX128, wide_out = to == TARE_DT_DOUBLE || to == TARE_DT_COMPLEX128;
    if (dtype == TARE_DT_VARIANT) return TARE_FAIL(TARE_UNSUPPORTED, "dtype variant");
    if (wide != wide_out)
        return TARE_FAIL(TARE_TYPE, "output of dtype %s from %s", tare_dtype_name(to), tare_dtype_name(dtype));
    return tare_elementwise_run1(kernel, wide ? op->wide : op->narrow, to);
}

TARE_LOOP2(make_c64, float, _Complex float, TARE_SAME, TARE_SAME, TARE_COMPLEX64(x, y))
TARE_LOOP2(make_c128, double, _Complex double, TARE_SAME, TARE_SAME, TARE_COMPLEX128(x, y))

static tare_status run_complex(struct tare_kernel *kernel) {
    const int dtype = kernel->inputs[0].dtype, to = tare_dtype_base(kernel->node->output_dtypes[0]);
    const bool wide = dtype == TARE_DT_DOUBLE;
    if (wide != (to == TARE_DT_COMPLEX128))
        return TARE_FAIL(TARE_TYPE, "output of dtype %s from %s", tare_dtype_name(to), tare_dtype_name(dtype));
    return tare_elementwise_run2(kernel, wide ? make_c128 : make_c64, to);
}

#define ROW(op_name, table)                                                                                            \
    { .name = op_name, .infer = tare_infer_same, .run = run_part, .aux = &table, .flags = TARE_OP_ELEMENTWISE }

const struct tare_op tare_ops_complex[] = {
    { .name = "Complex", .infer = tare_infer_broadcast, .run = run_complex, .flags = TARE_OP_ELEMENTWISE },
    ROW("Real", real_op),
    ROW("Imag", imag_op),
    ROW("ComplexAbs", abs_op),
    ROW("Angle", angle_op),
    { .name = "Conj",
      .infer = tare_infer_same,
      .run = run_part,
      .aux = &conj_op,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE },
    { 0 },
};
