#include "support/round_trip.h"

#include "base/alloc.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/write.h"
#include "support/mini_model.h"

#include <string.h>

static tare_status append(void *arg, const char *text, size_t size) {
    tare_strbuf_append(arg, text, size);
    return TARE_OK;
}

char *round_trip_text(const struct tare_shlo_module *module) {
    struct tare_strbuf text = { 0 };
    const struct tare_shlo_print_options options = { .max_elements = 4096, .write = append, .arg = &text };
    mini_ok(tare_shlo_print(module, &options));
    mini_ok(tare_strbuf_status(&text));
    return text.data;
}

static bool same_text(const struct tare_shlo_module *first, const struct tare_shlo_module *second, const char *name) {
    char *one = round_trip_text(first), *other = round_trip_text(second);
    const char *at = one, *there = other;
    while (*at && *at == *there)
        at++, there++;
    const bool same = !*at && !*there;
    if (!same) print_message("%s: '%.80s' became '%.80s'\n", name, at, there);
    tare_free(one);
    tare_free(other);
    return same;
}

bool round_trip_is_equal(bool *refused, const struct tare_shlo_module *module, const char *name) {
    struct tare_strbuf file = { 0 };
    struct tare_shlo_module *again = NULL;
    const tare_status status = tare_shlo_write(&file, module, module->version);
    bool same = false;
    *refused = status == TARE_UNSUPPORTED;
    if (status != TARE_OK)
        print_message("%s: not written: %s\n", name, tare_error_text());
    else if (tare_shlo_read(&again, (const uint8_t *)file.data, file.size) != TARE_OK)
        print_message("%s: what was written is not read: %s\n", name, tare_error_text());
    else
        same = same_text(module, again, name);
    tare_shlo_free(again);
    tare_strbuf_free(&file);
    return same;
}
