/* Options of every command that limit what it may use: --max-memory and --max-seconds. */
#ifndef TARE_CLI_LIMITS_H
#define TARE_CLI_LIMITS_H

#include "base/option.h"
#include "base/status.h"

/* Applies the limits among the arguments (anywhere before "--") and removes them from argv, whose new length is *argc.
 * Without --max-memory the limit is the memory of the machine. TARE_USAGE for an invalid value. */
tare_status tare_limits_apply(int *argc, char **argv) TARE_WARN_UNUSED;
/* The two options, for help, manual pages and completion; tare_limits_apply reads them before the options of a command
 * are parsed, so they have no fields. */
extern const struct tare_option tare_limits_rows[];

#endif
