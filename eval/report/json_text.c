/* jansson trees as text. */
#include "eval/report/json_text.h"

#include <math.h>
#include <stdlib.h>

tare_status tare_json_write(struct tare_strbuf *out, json_t *root) {
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    if (text) {
        tare_strbuf_puts(out, text);
        tare_strbuf_putc(out, '\n');
    }
    free(text);
    return text && !out->failed ? TARE_OK : TARE_FAIL(TARE_NO_MEMORY, "out of memory");
}

json_t *tare_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}
