/* The error of a command that was to print JSON. */
#ifndef TARE_CLI_OUTPUT_JSON_ERROR_H
#define TARE_CLI_OUTPUT_JSON_ERROR_H

#include "base/status.h"

#include <stdbool.h>

/* Whether the command line asks for JSON. It may be invalid, so that its options were not parsed. */
bool tare_json_is_requested(int argc, char *const *argv);
/* Prints {"error": …} (docs/json.md) unless the command has already printed something. */
void tare_print_json_error(tare_status status, const char *text, int exit_status);

#endif
