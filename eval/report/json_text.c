/* jansson trees as text. */
#include "eval/report/json_text.h"
#include "base/format.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

char *tare_json_dump(const json_t *root, size_t flags) {
    const locale_t before = uselocale(tare_locale_c());
    char *text = root ? json_dumps(root, flags) : NULL;
    uselocale(before);
    return text;
}

json_t *tare_json_parse(const char *text, size_t size, json_error_t *error) {
    const locale_t before = uselocale(tare_locale_c());
    json_t *root = json_loadb(text, size, 0, error);
    uselocale(before);
    return root;
}

tare_status tare_json_write(struct tare_strbuf *out, json_t *root) {
    char *text = tare_json_dump(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (text) {
        tare_strbuf_puts(out, text);
        tare_strbuf_putc(out, '\n');
    }
    free(text);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for JSON");
    return tare_strbuf_status(out);
}

json_t *tare_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *tare_json_text_of(const char *text, size_t size) {
    struct tare_strbuf escaped = { 0 };
    json_t *value = json_stringn(text, size);
    if (value) return value;
    tare_strbuf_escape(&escaped, text, size);
    if (!escaped.failed) value = json_string(tare_strbuf_text(&escaped));
    tare_strbuf_free(&escaped);
    return value;
}

json_t *tare_json_text(const char *text) {
    return text ? tare_json_text_of(text, strlen(text)) : json_null();
}

json_t *tare_json_warnings(const struct tare_warnings *warnings) {
    json_t *list = warnings->failed ? NULL : json_array();
    for (size_t i = 0; list && i < warnings->count; i++)
        json_array_append_new(list, tare_json_text(warnings->texts[i]));
    return list;
}

void tare_json_set(json_t *object, const char *key, json_t *value) {
    struct tare_strbuf escaped = { 0 };
    json_incref(value);
    if (json_object_set_new(object, key, value) != 0) {
        tare_strbuf_escape(&escaped, key, strlen(key));
        json_object_set(object, tare_strbuf_text(&escaped), value);
        tare_strbuf_free(&escaped);
    }
    json_decref(value);
}
