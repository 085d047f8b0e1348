/* The integers of a module that are known once the platform is: a module for several platforms takes the platform's
 * index as the first argument of main and selects branches by it. */
#ifndef TARE_CONVERT_STABLEHLO_KNOWN_INDEX_H
#define TARE_CONVERT_STABLEHLO_KNOWN_INDEX_H

#include "base/arena.h"
#include "base/status.h"
#include "convert/stablehlo/module.h"

struct tare_known_indices {
    uint16_t *by_value; /* by number of the value; NULL: only constants are known */
};

/* For main's first argument equal to `platform`. Follows it through calls and the results of cases. */
tare_status tare_known_indices_make(struct tare_known_indices *out, struct tare_arena *arena,
                                    const struct tare_shlo_module *module, size_t platform) TARE_WARN_UNUSED;
/* The value's number, which is at least 0; -1: it is not known. */
int64_t tare_known_index(const struct tare_known_indices *known, const struct tare_shlo_value *value);

#endif
