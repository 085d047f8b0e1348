/* The Conversion Report as JSON. */
#ifndef TARE_WORKFLOW_CONVERT_REPORT_H
#define TARE_WORKFLOW_CONVERT_REPORT_H

#include "base/warnings.h"
#include "convert/pipeline.h"
#include "workflow/bfloat16/check.h"

/* Cost per function and op, memory before and after for every chip, estimated times, host transfers in bytes, padding
 * per allowed batch size, changes by pass, and findings (docs/converter.md, "The report"). `prepared`: counts of
 * tare_pipeline_prepare; NULL if it did not run. `checked`: what the check of bfloat16 measured. `warnings`: of the
 * whole call. The caller releases *text with free(). */
tare_status tare_convert_report_json(char **text, const struct tare_conversion *conversion,
                                     const struct tare_converter_options *options,
                                     const struct tare_pass_count *prepared,
                                     const struct tare_bfloat16_checked *checked,
                                     const struct tare_warnings *warnings) TARE_WARN_UNUSED;

#endif
