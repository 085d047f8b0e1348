/* Whether the outputs of a quantized model are near those of the float model, on a few of the samples. */
#ifndef TARE_WORKFLOW_QUALITY_CHECK_H
#define TARE_WORKFLOW_QUALITY_CHECK_H

#include "workflow/quantize.h"

/* Adds a warning to the report of the result if --auto found a loss above the margin of the request, or if the SQNR of
 * the worst output is below TARE_VERDICT_DB: as --auto has measured it, otherwise on the first samples of the request.
 * Nothing is measured without a log for the warning, without samples that can be read again, or where a model cannot
 * run here. */
tare_status tare_workflow_check_quality(struct tare_quantized *out, struct tare_arena *arena,
                                        const struct tare_graph_model *model,
                                        const struct tare_quantize_task *task) TARE_WARN_UNUSED;

#endif
