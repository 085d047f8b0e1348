/* What a check found (workflow/check/check.h), as text, page and JSON. */
#ifndef TARE_WORKFLOW_CHECK_REPORT_H
#define TARE_WORKFLOW_CHECK_REPORT_H

#include "workflow/check/check.h"

#include <jansson.h>

struct tare_strbuf;

/* Of all computations; NaN if one is not known. */
double tare_check_cycles(const struct tare_check *check);
/* The same of the estimate. */
double tare_check_seconds(const struct tare_check *check);
/* Appends the computations with their `top` dearest ops; `model`: its path, for the heading. */
void tare_check_put(struct tare_strbuf *out, const struct tare_check *check, const char *model,
                    const struct tare_check_request *request, size_t top);
/* Appends how many times the cycles of `other`, or its estimated time, the model takes; nothing if neither is known. */
void tare_check_put_ratio(struct tare_strbuf *out, const struct tare_check *check, const char *model,
                          const struct tare_check *other, const char *with);
/* A page with the compiler's figures and the estimate's of one model, or of two (`other` NULL: one). */
void tare_check_html(struct tare_strbuf *out, const struct tare_check_request *request, const struct tare_check *check,
                     const char *model, const struct tare_check *other, const char *with);
/* A new reference (docs/json.md). */
json_t *tare_check_json(const struct tare_check *check, const char *model, const struct tare_check_request *request);

#endif
