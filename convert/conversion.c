/* The counts of a conversion. */
#include "convert/pipeline.h"

#include <string.h>

size_t tare_conversion_changes(const struct tare_conversion *conversion, const char *count) {
    for (size_t i = 0; i < conversion->n_counts; i++)
        if (strcmp(conversion->counts[i].name, count) == 0) return conversion->counts[i].changes;
    return 0;
}
