/* GPTQ: rounds weights so that the error of the layer's output over the samples is small, with the existing scales: per
 * tensor, channel or block, clipped or not. */
#include "quant/compensation.h"
#include "quant/pass.h"

enum { DAMP, ACT_ORDER }; /* parameters */

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    const struct tare_quant_compensation wanted = { .damp = self->parameters[DAMP].value,
                                                    .act_order = self->parameters[ACT_ORDER].value != 0 };
    return tare_quant_compensate_layers(work, &wanted);
}

const struct tare_quant_pass tare_quant_pass_gptq = {
    .name = "gptq",
    .help = "weights rounded so that later rows make up for the errors of earlier ones",
    .needs_channels = true,
    .needs_hessians = true,
    .idle = "no quantized layer has a weight and an input whose Hessian is known",
    .parameters = { { .name = "damp", .value = 0.01, .least = 0, .most = 10 },
                    { .name = "act_order", .value = 1, .flag = true } },
    .run = run,
};
