#include "support/api_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void api_check_ok_at(tare_status status, int line) {
    if (status != TARE_OK) fail_msg("line %d: %s: %s", line, tare_status_name(status), tare_error_text());
}

void api_check_refused_at(tare_status status, tare_status expected, const char *text, int line) {
    if (status != expected)
        fail_msg("line %d: status %s (expected %s): %s", line, tare_status_name(status), tare_status_name(expected),
                 tare_error_text());
    if (!strstr(tare_error_text(), text)) fail_msg("line %d: '%s' has no '%s'", line, tare_error_text(), text);
}
