/* Recording violations with the place where they were found. */
#include "base/alloc.h"
#include "base/format.h"
#include "interpreter/validation/validate_internal.h"

#include <stdio.h>
#include <string.h>

void tare_faults_free(struct tare_faults *faults) {
    tare_free(faults->items);
    tare_free(faults->notes);
    tare_arena_free(&faults->arena);
    memset(faults, 0, sizeof *faults);
}

const char *tare_graph_label(const struct tare_graph *graph) {
    return *graph->name ? graph->name : "graph";
}

static void add(struct tare_validator *validator, const char *text) {
    struct tare_faults *faults = validator->faults;
    if (!text || !TARE_GROW(faults->items, faults->count, faults->capacity))
        validator->out_of_memory = true;
    else
        faults->items[faults->count++] = text;
}

tare_status tare_faults_add(struct tare_faults *faults, const char *where, const char *what) {
    const char *text = tare_arena_printf(&faults->arena, "%s: %s", where, what);
    if (!text || !TARE_GROW(faults->items, faults->count, faults->capacity)) return TARE_NO_MEMORY;
    faults->items[faults->count++] = text;
    return TARE_OK;
}

tare_status tare_faults_note(struct tare_faults *faults, const char *where, const char *what) {
    const char *text = tare_arena_printf(&faults->arena, "%s: %s", where, what);
    if (!text || !TARE_GROW(faults->notes, faults->n_notes, faults->notes_capacity)) return TARE_NO_MEMORY;
    faults->notes[faults->n_notes++] = text;
    return TARE_OK;
}

void tare_fault(struct tare_validator *validator, const char *where, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    tare_format_va(what, sizeof what, format, args);
    va_end(args);
    add(validator, tare_arena_printf(&validator->faults->arena, "%s: %s", where, what));
}

void tare_fault_at(struct tare_validator *validator, const struct tare_node *node, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    tare_format_va(what, sizeof what, format, args);
    va_end(args);
    add(validator, tare_arena_printf(&validator->faults->arena, "%s/%s (%s): %s", tare_graph_label(node->graph),
                                     node->name, node->op, what));
}
