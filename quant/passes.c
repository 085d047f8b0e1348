/* The accuracy passes and their names. */
#include "quant/layer.h"
#include "base/format.h"
#include "quant/pass.h"
#include "base/arena.h"
#include "base/option.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

#define ROW(name) &tare_quant_pass_##name,
#define NAME(name) #name,
const struct tare_quant_pass *const tare_quant_passes[] = { TARE_QUANT_PASSES(ROW) NULL };
const char *const tare_quant_pass_names[] = { TARE_QUANT_PASSES(NAME) NULL };
enum { N_PASSES = sizeof tare_quant_passes / sizeof *tare_quant_passes - 1 };

const struct tare_quant_pass *tare_quant_pass_find(const char *name) {
    for (size_t i = 0; tare_quant_passes[i]; i++)
        if (strcmp(tare_quant_passes[i]->name, name) == 0) return tare_quant_passes[i];
    return NULL;
}

static tare_status unknown(const char *name) {
    const char *nearest = tare_nearest_name(name, tare_quant_pass_names);
    struct tare_strbuf list = { 0 };
    tare_status status;
    for (size_t i = 0; i < N_PASSES; i++)
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", tare_quant_pass_names[i]);
    status = nearest
                 ? TARE_FAIL(TARE_USAGE, "there is no accuracy pass '%s' (did you mean '%s'?)", name, nearest)
                 : TARE_FAIL(TARE_USAGE, "there is no accuracy pass '%s' (known: %s)", name, tare_strbuf_text(&list));
    tare_strbuf_free(&list);
    return status;
}

/* ---- parameters ---- */

static tare_status read_value(struct tare_quant_pass_parameter *parameter, const char *pass, const char *text) {
    char *end;
    double value;
    if (parameter->flag) {
        parameter->value = strcmp(text, "true") == 0;
        if (parameter->value || strcmp(text, "false") == 0) return TARE_OK;
        return TARE_FAIL(TARE_USAGE, "%s: %s is '%s' (expected true or false)", pass, parameter->name, text);
    }
    value = tare_read_double(text, &end);
    if (end == text || *end || !(value >= parameter->least) || !(value <= parameter->most))
        return TARE_FAIL(TARE_USAGE, "%s: %s is '%s' (expected a number from %g to %g)", pass, parameter->name, text,
                         parameter->least, parameter->most);
    parameter->value = value;
    return TARE_OK;
}

/* Parses "damp=0.1,act_order=true" into a copy of the row. */
static tare_status read_parameters(const struct tare_quant_pass **out, struct tare_arena *arena, char *text) {
    struct tare_quant_pass *copy = TARE_NEW(arena, struct tare_quant_pass);
    char *save = NULL;
    if (!copy) return TARE_NO_MEMORY;
    *copy = **out;
    for (char *at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
        char *value = strchr(at, '=');
        int i = 0;
        if (value) *value++ = '\0';
        while (i < TARE_QUANT_PASS_PARAMETERS && copy->parameters[i].name && strcmp(copy->parameters[i].name, at) != 0)
            i++;
        if (i == TARE_QUANT_PASS_PARAMETERS || !copy->parameters[i].name)
            return TARE_FAIL(TARE_USAGE, "accuracy pass %s has no parameter '%s'", copy->name, at);
        TARE_TRY(read_value(&copy->parameters[i], copy->name, value ? value : ""));
    }
    *out = copy;
    return TARE_OK;
}

/* ---- lists ---- */

/* Terminates the item at its comma and returns the rest; NULL: none. A piece with '=' and without ':' belongs to the
 * preceding item. */
static char *end_item(char *item) {
    char *comma = strchr(item, ',');
    while (comma) {
        const size_t size = strcspn(comma + 1, ",");
        if (!memchr(comma + 1, '=', size) || memchr(comma + 1, ':', size)) break;
        comma = strchr(comma + 1, ',');
    }
    if (comma) *comma++ = '\0';
    return comma;
}

static tare_status read_item(const struct tare_quant_pass **expected, struct tare_arena *arena, char *item) {
    char *parameters = strchr(item, ':');
    const struct tare_quant_pass *pass;
    if (parameters) *parameters++ = '\0';
    pass = tare_quant_pass_find(item);
    if (!pass) return unknown(item);
    for (size_t i = 0; i < N_PASSES; i++) {
        if (tare_quant_passes[i] != pass) continue;
        expected[i] = pass;
        if (parameters) TARE_TRY(read_parameters(&expected[i], arena, parameters));
    }
    return TARE_OK;
}

tare_status tare_quant_passes_parse(const struct tare_quant_pass *const **out, struct tare_arena *arena,
                                    const char *text) {
    const struct tare_quant_pass **list = TARE_NEW_ARRAY(arena, const struct tare_quant_pass *, N_PASSES + 1);
    const struct tare_quant_pass *expected[N_PASSES] = { NULL };
    char *copy = tare_arena_strdup(arena, text), *next, *to = copy;
    size_t count = 0;
    if (!list || !copy) return TARE_NO_MEMORY;
    for (const char *from = copy; *from; from++)
        if (*from != ' ') *to++ = *from;
    *to = '\0';
    for (char *item = copy; item; item = next) {
        next = end_item(item);
        if (*item) TARE_TRY(read_item(expected, arena, item));
    }
    for (size_t i = 0; i < N_PASSES; i++)
        if (expected[i]) list[count++] = expected[i];
    *out = list;
    return TARE_OK;
}

static void print_parameters(struct tare_strbuf *out, const struct tare_quant_pass *pass) {
    const struct tare_quant_pass *row = tare_quant_pass_find(pass->name);
    char separator = ':';
    for (size_t i = 0; i < TARE_QUANT_PASS_PARAMETERS && pass->parameters[i].name; i++) {
        const struct tare_quant_pass_parameter *parameter = &pass->parameters[i];
        if (parameter->value == row->parameters[i].value) continue;
        tare_strbuf_printf(out, "%c%s=", separator, parameter->name);
        if (parameter->flag)
            tare_strbuf_puts(out, parameter->value != 0 ? "true" : "false");
        else
            tare_strbuf_printf(out, "%.10g", parameter->value);
        separator = ',';
    }
}

void tare_quant_passes_print(struct tare_strbuf *out, const struct tare_quant_pass *const *passes, char separator) {
    for (size_t i = 0; passes && passes[i]; i++) {
        if (i) tare_strbuf_putc(out, separator);
        tare_strbuf_puts(out, passes[i]->name);
        print_parameters(out, passes[i]);
    }
}

bool tare_quant_passes_have(const struct tare_quant_pass *const *passes, const struct tare_quant_pass *pass) {
    for (size_t i = 0; passes && passes[i]; i++)
        if (passes[i]->run == pass->run) return true;
    return false;
}

bool tare_quant_passes_need_channels(const struct tare_quant_pass *const *passes) {
    for (size_t i = 0; passes && passes[i]; i++)
        if (passes[i]->needs_channels) return true;
    return false;
}

bool tare_quant_passes_need_hessians(const struct tare_quant_pass *const *passes) {
    for (size_t i = 0; passes && passes[i]; i++)
        if (passes[i]->needs_hessians) return true;
    return false;
}

tare_status tare_quant_each_weight(struct tare_quant_work *work,
                                   tare_status (*fn)(struct tare_quant_work *work, struct tare_quant_layer *layer)) {
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        if (layer->refused || !layer->weight) continue;
        TARE_TRY(tare_error_prefix(fn(work, layer), "%s", layer->op->name));
    }
    return TARE_OK;
}
