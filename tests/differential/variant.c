#include "differential/variant.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"
#include "workflow/calibrate.h"
#include "workflow/option_text.h"
#include "workflow/quantize.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct variant variants[] = {
    { .name = "float" },
    { .name = "prepared", .prepares = true },
    { .name = "bfloat16", .prepares = true, .to_bfloat16 = true },
    { .name = "static", .prepares = true, .quantize = "activation-bits=8" },
    { .name = "static-depthwise", .prepares = true, .quantize = "activation-bits=8 depthwise" },
    { .name = "static-adds", .prepares = true, .quantize = "activation-bits=8 depthwise integer-adds two-inputs" },
    { .name = "static-symmetric",
      .prepares = true,
      .quantize = "activation-bits=8 symmetric full-range granularity=per_tensor" },
    { .name = "static-16", .prepares = true, .quantize = "activation-bits=16 depthwise" },
    { .name = "static-bfloat16", .prepares = true, .quantize = "activation-bits=8", .to_bfloat16 = true },
    { .name = "dynamic", .prepares = true, .quantize = "method=dynamic min-elements=1 depthwise", .mixes = true },
    { .name = "weights", .prepares = true, .quantize = "method=weight_only min-elements=1 depthwise" },
    { .name = "weights-4", .prepares = true, .quantize = "method=weight_only bits=4 min-elements=1 depthwise" },
    { .name = "weights-block",
      .prepares = true,
      .quantize = "method=weight_only bits=4 granularity=per_block:32 min-elements=1" },
    { .name = "weights-bfloat16",
      .prepares = true,
      .quantize = "method=weight_only min-elements=1 depthwise",
      .to_bfloat16 = true },
    { .name = "drawn", .prepares = true, .quantize = "", .draws = true, .mixes = true },
    { 0 },
};

enum { CALIBRATED = 3 };

/* ---- examples ---- */

struct tare_tensor variant_examples(const struct tare_shape *shape, uint64_t seed) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, seed);
    for (int64_t i = 0; i < value.elements; i += 1 + (int64_t)(draw_bits(&seed) % 64))
        TARE_DATA(float, &value)[i] = i % 3 ? 0 : copysignf(8, TARE_DATA(float, &value)[i]);
    return value;
}

void variant_spoil(struct tare_tensor *examples, uint64_t seed) {
    static const float values[] = { NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN / 8, -0.0f };
    for (int64_t i = 0; i < examples->elements; i += 1 + (int64_t)(draw_bits(&seed) % 200))
        TARE_DATA(float, examples)[i] = values[draw_bits(&seed) % (sizeof values / sizeof *values)];
}

/* ---- calibration ---- */

struct examples {
    struct tare_shape shape;
    uint64_t seed;
    int64_t at;
};

static tare_status next(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*wanted)(void *wanted_arg, const struct tare_record *record), void *wanted_arg) {
    struct examples *examples = arg;
    for (; examples->at < CALIBRATED; examples->at++) {
        const struct tare_record here = { .number = examples->at, .index = examples->at };
        if (!wanted(wanted_arg, &here)) continue;
        *record = here;
        inputs[0] = variant_examples(&examples->shape, examples->seed + (uint64_t)examples->at++);
        return TARE_OK;
    }
    *end = true;
    return TARE_OK;
}

static struct tare_calibration *calibrate(const struct tare_graph_model *model, const struct tare_shape *shape,
                                          uint64_t seed) {
    static const char *const files[] = { "examples" };
    struct examples examples = { .shape = *shape, .seed = seed };
    examples.shape.dims[0] = 1;
    const struct tare_sample_source source = {
        .arg = &examples, .files = files, .n_files = 1, .remaining = CALIBRATED, .next = next
    };
    const struct tare_calibrate_options options = { .threads = 1, .batch = 1, .samples = &source };
    struct tare_calibration *calibration;
    mini_ok(tare_workflow_calibrate(&calibration, model, &options));
    return calibration;
}

/* ---- conversion ---- */

static const struct tare_option_set quantize_set = { .program = "quantize", .options = tare_quantize_rows };

/* Method, op set and widths in any combination that exists. */
static const char *draw_options(char *text, size_t size, uint64_t seed) {
    static const char *const methods[] = { "static", "static", "dynamic", "weight_only" },
                             *const flags[] = { " symmetric",
                                                " full-range",
                                                " depthwise",
                                                " two-inputs",
                                                " integer-adds",
                                                " granularity=per_tensor",
                                                " granularity=per_channel",
                                                " bits=4",
                                                " algorithm=mse" },
                             *const op_sets[] = { "xla", "tf", "uniform_quantized" };
    const char *const method = methods[draw_bits(&seed) % 4], *const op_set =
                                                                  op_sets[method[0] == 'w' ? 0 : draw_bits(&seed) % 3];
    const bool is_static = strcmp(method, "static") == 0, is_wide = is_static && strcmp(op_set, "xla") == 0;
    size_t at = (size_t)snprintf(text, size, "method=%s op-set=%s min-elements=1", method, op_set);
    if (is_static && (!is_wide || draw_bits(&seed) % 4))
        at += (size_t)snprintf(text + at, size - at, " activation-bits=%d",
                               is_wide && draw_bits(&seed) % 3 == 0 ? 16 : 8);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (draw_bits(&seed) % 3 == 0) at += (size_t)snprintf(text + at, size - at, "%s", flags[i]);
    return text;
}

static void quantize(const struct variant *variant, struct tare_graph_model *model, const struct tare_shape *shape,
                     uint64_t seed) {
    struct tare_quantize_request request = { 0 };
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    char drawn[200];
    const char *const text = variant->draws ? draw_options(drawn, sizeof drawn, seed) : variant->quantize;
    mini_ok(tare_option_text_read(&request, &arena, &quantize_set, text));
    mini_ok(tare_quant_plan_open(&request.plan, &arena));
    mini_ok(tare_pipeline_prepare(model, NULL));
    struct tare_calibration *calibration =
        tare_quant_plan_needs_calibration(&request.plan) ? calibrate(model, shape, seed) : NULL;
    mini_ok(tare_pipeline_quantize(&report, &arena, model, &request.plan, calibration));
    tare_calibration_free(calibration);
    tare_options_free(&request, &quantize_set);
    tare_arena_free(&arena);
}

static void to_bfloat16(struct tare_graph_model *model) {
    const struct tare_bfloat16_options options = { .skip_safety_checks = true,
                                                   .rounds_outputs = true,
                                                   .rounds_magnitudes = true };
    struct tare_graph *const graphs[] = { model->main };
    size_t changes = 0;
    mini_ok(tare_tpu_bfloat16(model, graphs, 1, &options, &changes));
}

void variant_apply(const struct variant *variant, struct tare_graph_model *model, const struct tare_shape *shape,
                   uint64_t seed) {
    if (variant->quantize)
        quantize(variant, model, shape, seed);
    else if (variant->prepares)
        mini_ok(tare_pipeline_prepare(model, NULL));
    if (variant->to_bfloat16 || (variant->draws && seed % 4 == 0)) to_bfloat16(model);
}
