/* Types in StableHLO's notation. */
#include "convert/stablehlo/print.h"

#include <inttypes.h>

static void print_list(struct tare_strbuf *out, const struct tare_shlo_type_list *list, bool brackets) {
    if (brackets) tare_strbuf_putc(out, '(');
    for (size_t i = 0; i < list->count; i++) {
        if (i) tare_strbuf_puts(out, ", ");
        tare_shlo_print_type(out, list->items[i]);
    }
    if (brackets) tare_strbuf_putc(out, ')');
}

static void print_function(struct tare_strbuf *out, const struct tare_shlo_type *type) {
    print_list(out, &type->inputs, true);
    tare_strbuf_puts(out, " -> ");
    print_list(out, &type->outputs, type->outputs.count != 1);
}

static void print_shaped(struct tare_strbuf *out, const char *name, const struct tare_shlo_type *type) {
    tare_strbuf_printf(out, "%s<", name);
    for (size_t i = 0; i < type->rank; i++)
        if (type->dims[i] == TARE_SHLO_DYNAMIC)
            tare_strbuf_puts(out, "?x");
        else
            tare_strbuf_printf(out, "%" PRId64 "x", type->dims[i]);
    tare_shlo_print_type(out, type->element);
    if (type->encoding) {
        tare_strbuf_puts(out, ", ");
        tare_shlo_print_attr(out, type->encoding, 16);
    }
    tare_strbuf_putc(out, '>');
}

/* The range is printed where it is not that of the storage type. */
static void print_storage(struct tare_strbuf *out, const struct tare_shlo_quantized *q) {
    const int bits = tare_shlo_type_bits(q->storage);
    const int64_t high = bits < 2 || bits > 32 ? 0
                         : q->is_signed        ? (INT64_C(1) << (bits - 1)) - 1
                                               : (INT64_C(1) << bits) - 1;
    const int64_t low = q->is_signed ? -high - 1 : 0;
    tare_shlo_print_type(out, q->storage);
    if (q->minimum != low || q->maximum != high)
        tare_strbuf_printf(out, "<%" PRId64 ":%" PRId64 ">", q->minimum, q->maximum);
    tare_strbuf_putc(out, ':');
    tare_shlo_print_type(out, q->expressed);
}

static void print_quantized(struct tare_strbuf *out, const struct tare_shlo_quantized *q) {
    tare_strbuf_puts(out, "!quant.uniform<");
    print_storage(out, q);
    if (q->axis >= 0) tare_strbuf_printf(out, ":%" PRId64, q->axis);
    tare_strbuf_puts(out, q->axis >= 0 ? ", {" : ", ");
    for (size_t i = 0; i < q->count; i++) {
        tare_strbuf_printf(out, "%s%.9g", i ? ", " : "", q->scales[i]);
        if (q->zero_points[i]) tare_strbuf_printf(out, ":%" PRId64, q->zero_points[i]);
    }
    tare_strbuf_puts(out, q->axis >= 0 ? "}>" : ">");
}

static void print_composed(struct tare_strbuf *out, const char *name, const struct tare_shlo_type *type) {
    tare_strbuf_printf(out, "%s<", name);
    if (type->element)
        tare_shlo_print_type(out, type->element);
    else
        print_list(out, &type->inputs, false);
    tare_strbuf_putc(out, '>');
}

void tare_shlo_print_type(struct tare_strbuf *out, const struct tare_shlo_type *type) {
    static const char *const names[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_BOOL] = "i1",
        [TARE_SHLO_BF16] = "bf16",
        [TARE_SHLO_F16] = "f16",
        [TARE_SHLO_F32] = "f32",
        [TARE_SHLO_F64] = "f64",
        [TARE_SHLO_F8E4M3FN] = "f8E4M3FN",
        [TARE_SHLO_F8E5M2] = "f8E5M2",
        [TARE_SHLO_INDEX] = "index",
        [TARE_SHLO_SI4] = "i4",
        [TARE_SHLO_SI8] = "i8",
        [TARE_SHLO_SI16] = "i16",
        [TARE_SHLO_SI32] = "i32",
        [TARE_SHLO_SI64] = "i64",
        [TARE_SHLO_UI4] = "ui4",
        [TARE_SHLO_UI8] = "ui8",
        [TARE_SHLO_UI16] = "ui16",
        [TARE_SHLO_UI32] = "ui32",
        [TARE_SHLO_UI64] = "ui64",
        [TARE_SHLO_TOKEN] = "!stablehlo.token",
        [TARE_SHLO_WITNESS] = "!shape.witness",
        [TARE_SHLO_F8E4M3FNUZ] = "f8E4M3FNUZ",
        [TARE_SHLO_F8E5M2FNUZ] = "f8E5M2FNUZ",
        [TARE_SHLO_F8E4M3B11FNUZ] = "f8E4M3B11FNUZ",
        [TARE_SHLO_SI2] = "i2",
        [TARE_SHLO_UI2] = "ui2",
        [TARE_SHLO_NONE] = "none",
        [TARE_SHLO_TF32] = "tf32",
        [TARE_SHLO_F8E4M3] = "f8E4M3",
        [TARE_SHLO_F8E3M4] = "f8E3M4",
        [TARE_SHLO_F4E2M1FN] = "f4E2M1FN",
        [TARE_SHLO_F6E2M3FN] = "f6E2M3FN",
        [TARE_SHLO_F6E3M2FN] = "f6E3M2FN",
        [TARE_SHLO_F8E8M0FNU] = "f8E8M0FNU",
    };
    switch (type->kind) {
    case TARE_SHLO_COMPLEX:
        print_composed(out, "complex", type);
        break;
    case TARE_SHLO_FUNCTION:
        print_function(out, type);
        break;
    case TARE_SHLO_TENSOR:
        print_shaped(out, "tensor", type);
        break;
    case TARE_SHLO_BUFFER:
        print_shaped(out, "memref", type);
        break;
    case TARE_SHLO_UNRANKED:
        tare_strbuf_puts(out, "tensor<*x");
        tare_shlo_print_type(out, type->element);
        tare_strbuf_putc(out, '>');
        break;
    case TARE_SHLO_TUPLE:
        print_composed(out, "tuple", type);
        break;
    case TARE_SHLO_FUTURE:
        print_composed(out, "!stablehlo.future", type);
        break;
    case TARE_SHLO_QUANTIZED:
    case TARE_SHLO_QUANTIZED_PER_AXIS:
        print_quantized(out, type->quantized);
        break;
    default:
        tare_strbuf_puts(out, names[type->kind]);
    }
}
