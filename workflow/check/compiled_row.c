/* Compiles a clone of a model, and takes its cycles. */
#include "workflow/check/compiled_row.h"
#include "graph/clone.h"
#include "workflow/check/report.h"

#include <math.h>

/* Keeps the first reason. */
static tare_status note(struct tare_comparison *c, const char *why) {
    if (!c->not_compiled) c->not_compiled = tare_arena_strdup(&c->arena, why);
    return c->not_compiled ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status take(struct tare_comparison_row *row, struct tare_comparison *c, const struct tare_check *check) {
    if (!check->compiler) return note(c, check->why);
    row->tpu_cycles = tare_check_cycles(check);
    for (size_t i = 0; i < check->n_parts; i++)
        if (check->parts[i].error) return note(c, check->parts[i].error);
    if (!c->compiler) c->compiler = tare_arena_strdup(&c->arena, check->compiler);
    return c->compiler ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_check_compile_row(struct tare_comparison_row *row, struct tare_comparison *c,
                                   const struct tare_graph_model *model, const char *signature, struct json_t *known) {
    const struct tare_check_request request = { .signature = signature,
                                                .chip = c->chip,
                                                .batch = tare_comparison_chip_batch(c) };
    struct tare_graph_model *copy;
    struct tare_check check = { 0 };
    TARE_TRY(tare_model_clone(&copy, model));
    tare_status status = tare_workflow_check(&check, copy, &request, known);
    if (status == TARE_OK) {
        status = take(row, c, &check);
    } else {
        status = note(c, tare_error_text()) == TARE_OK ? tare_error_dismiss(status) : TARE_NO_MEMORY;
    }
    tare_check_free(&check);
    tare_model_free(copy);
    return status;
}
