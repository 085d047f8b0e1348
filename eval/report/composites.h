/* A model's composite functions in the reports of `tare quantize` and `tare convert`. */
#ifndef TARE_EVAL_REPORT_COMPOSITES_H
#define TARE_EVAL_REPORT_COMPOSITES_H

#include "base/log.h"
#include "graph/model.h"

#include <jansson.h>

/* A list of {function, implements, fused, reason} (docs/schemas/composite.json). */
json_t *tare_composites_json(const struct tare_composites *composites);
/* A note for each. */
void tare_composites_log(const struct tare_log *log, const struct tare_composites *composites);

#endif
