/* The Conversion Report as JSON. */
#ifndef TARE_CLI_CONVERT_REPORT_H
#define TARE_CLI_CONVERT_REPORT_H

#include "convert/pipeline.h"

/* Writes costs by function and op, memory before and after against every chip, least times, bytes that cross, padding by
 * allowed batch size, changes of every pass, and findings (docs/converter.md, "The report"). `prepared`: counts of
 * tare_pipeline_prepare; NULL when it did not run. */
tare_status tare_convert_report_write(const char *path, const struct tare_conversion *conversion,
                                      const struct tare_converter_options *options,
                                      const struct tare_pass_count *prepared);

#endif
