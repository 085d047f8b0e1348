/* Which layers of a model a quantization makes faster on a chip: the choice of --for CHIP. Every layer is estimated in
 * both forms (tpu/cost/fused.h); the whole model is then compared as the plan has it, with the layers that become
 * faster, and without quantization. Google's compiler compiles these where it is installed, and a fourth one, of the
 * layers that are faster by what it says; the fastest is chosen, so that none is slower than the float model, whose
 * products are in bfloat16 on the chip. Without the compiler a quantized model must be estimated 20 % faster. */
#ifndef TARE_WORKFLOW_CHECK_FASTEST_H
#define TARE_WORKFLOW_CHECK_FASTEST_H

#include "calib/calibration.h"
#include "graph/model.h"
#include "quant/quantize.h"

/* Everything is borrowed. */
struct tare_fastest_task {
    const struct tare_graph_model *model;       /* prepared */
    const struct tare_quant_plan *plan;         /* what is quantized at most */
    const struct tare_calibration *calibration; /* NULL: none */
    const char *signature;                      /* NULL: serving_default, or the only one */
    int chip;                                   /* index into tare_tpu_chips */
    int64_t batch;                              /* at least 1 */
    bool estimates;                             /* without the compiler */
    struct json_t *known; /* programs that are compiled (workflow/check/check.h); NULL: those of this call */
};

struct tare_fastest_layer {
    const char *function, *node;
    double quantized, real; /* seconds, estimated */
    double cycles[2];       /* by the compiler, of all ops that it named after the layer: quantized, real */
    bool keeps;             /* stays float */
};

enum tare_fastest_form {
    TARE_FASTEST_FLOAT,
    TARE_FASTEST_ALL,      /* as the plan has it */
    TARE_FASTEST_SOME,     /* the layers that are estimated to become faster */
    TARE_FASTEST_BY_PARTS, /* the layers that become faster by the compiler */
    TARE_FASTEST_FORMS
};

struct tare_fastest {
    const char *chip;     /* NULL: nothing was chosen */
    const char *compiler; /* "libtpu 0.0.42"; NULL: by the estimate */
    const char *why;      /* no compiler was asked; NULL: it was */
    int64_t batch;
    double cost[TARE_FASTEST_FORMS]; /* of the model: cycles, or seconds without compiler; NaN: not known */
    enum tare_fastest_form chosen;
    struct tare_fastest_layer *layers;
    size_t n_layers, n_float; /* of them, those that stay float */
};

/* Arena memory. */
tare_status tare_workflow_fastest(struct tare_fastest *out, struct tare_arena *arena,
                                  const struct tare_fastest_task *task) TARE_WARN_UNUSED;
/* Adds a rule for each layer that stays float to the plan; arena memory. */
tare_status tare_workflow_fastest_apply(struct tare_quant_plan *plan, struct tare_arena *arena,
                                        const struct tare_fastest *fastest) TARE_WARN_UNUSED;
/* Gives these layers their reason in the report of the quantization by that plan. */
tare_status tare_workflow_fastest_explain(struct tare_quant_report *report, struct tare_arena *arena,
                                          const struct tare_fastest *fastest) TARE_WARN_UNUSED;
/* Appends what was chosen, by whom, and what the forms cost; without a line break. */
struct tare_strbuf;
void tare_workflow_fastest_put(struct tare_strbuf *out, const struct tare_fastest *fastest);

#endif
