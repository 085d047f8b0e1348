/* Reconstruction of each layer's output: scales and integers that together minimize the error of the output over the
 * samples (mathematics in quant/gptq_rounding.c). Starts from the integers and scales of the passes before it, and
 * keeps them for each column where nothing better is found. A layer is reconstructed on its own, from the activations
 * of the float model; there is no training across layers. */
#include "quant/compensation.h"
#include "quant/pass.h"

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    const struct tare_quant_compensation wanted = { .damp = self->parameters[0].value,
                                                    .act_order = true,
                                                    .fits_scales = true };
    return tare_quant_compensate_layers(work, &wanted);
}

const struct tare_quant_pass tare_quant_pass_reconstruction = {
    .name = "reconstruction",
    .help = "scales and integers of weights that together make the error of each layer's output least",
    .needs_channels = true,
    .needs_hessians = true,
    .parameters = { { .name = "damp", .value = 0.01, .least = 0, .most = 10 } },
    .run = run,
};
