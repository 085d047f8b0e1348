/* The method of a job, named as the rows of `tare compare` are (eval/variant.h), as options of `tare quantize` and
 * `tare convert`, which say what is wrong with them. */
#ifndef TARE_CONVERT_JOB_METHOD_H
#define TARE_CONVERT_JOB_METHOD_H

#include "convert/jobs.h"

/* "weight_only:bits=4:block=32+gptq": --method=weight_only --bits=4 --granularity=per_block:32 --passes=gptq.
 * *bfloat16: the rest computes in bfloat16, which `tare convert` does. Arena memory. */
tare_status tare_job_method_words(struct tare_text_list *out, bool *bfloat16, struct tare_arena *arena,
                                  const char *method) TARE_WARN_UNUSED;

/* Appends; the list grows in the arena. TARE_NO_MEMORY also where the text is NULL. */
tare_status tare_text_list_add(struct tare_text_list *list, struct tare_arena *arena,
                               const char *text) TARE_WARN_UNUSED;

#endif
