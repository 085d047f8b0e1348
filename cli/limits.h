/* Options of every command that limit what it may use: --max-memory and --max-seconds. */
#ifndef TARE_CLI_LIMITS_H
#define TARE_CLI_LIMITS_H

#include "base/status.h"

struct tare_strbuf;

/* Applies the limits among the arguments (anywhere before "--") and removes them from argv, whose new length is *argc.
 * Without --max-memory the limit is the memory of the machine. TARE_USAGE for an invalid value. */
tare_status tare_limits_apply(int *argc, char **argv) TARE_WARN_UNUSED;
/* Appends the help of the two options. */
void tare_limits_help(struct tare_strbuf *out);

#endif
