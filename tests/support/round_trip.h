/* Modules that are read, written and read again. */
#ifndef TARE_TESTS_SUPPORT_ROUND_TRIP_H
#define TARE_TESTS_SUPPORT_ROUND_TRIP_H

#include "convert/stablehlo/module.h"

/* The module's text; constants of up to 4,096 elements are complete. Release with tare_free. */
char *round_trip_text(const struct tare_shlo_module *module);
/* Writes the module, reads the file and compares the texts; prints the difference. *refused: the writer does not
 * support it. */
bool round_trip_is_equal(bool *refused, const struct tare_shlo_module *module, const char *name);

#endif
