/* The Conversion Report as JSON. */
#ifndef TARE_WORKFLOW_CONVERT_REPORT_H
#define TARE_WORKFLOW_CONVERT_REPORT_H

#include "convert/pipeline.h"

/* Costs by function and op, memory before and after against every chip, least times, bytes that cross, padding by
 * allowed batch size, changes of every pass, and findings (docs/converter.md, "The report"). `prepared`: counts of
 * tare_pipeline_prepare; NULL when it did not run. *text is the caller's to free(). */
tare_status tare_convert_report_json(char **text, const struct tare_conversion *conversion,
                                     const struct tare_converter_options *options,
                                     const struct tare_pass_count *prepared) TARE_WARN_UNUSED;

#endif
