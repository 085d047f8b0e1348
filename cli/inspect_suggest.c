/* tare inspect --suggest: proposes functions to place on the TPU, with the command that converts the model, and lists
 * the ops that keep a function off the TPU. */
#include "workflow/inspection.h"
#include "tpu/suggest.h"

#include <stdio.h>

static void print_option(const struct tare_tpu_suggestion *suggestion) {
    if (suggestion->alias)
        printf("tpu_functions { function_alias: \"%s\" }\n", suggestion->alias);
    else
        printf("tpu_functions { concrete_function_name: \"%s\" }\n", suggestion->function->name);
}

static void print_suggestions(const struct tare_tpu_suggestions *s) {
    printf("\nsuggested for the TPU: %zu function%s with %zu of %zu ops\n", s->count, s->count == 1 ? "" : "s",
           s->covered, s->ops);
    for (size_t i = 0; i < s->count; i++) {
        printf("  %zu ops: ", s->items[i].ops);
        print_option(&s->items[i]);
    }
    for (size_t i = 0; i < s->n_remarks; i++)
        printf("  %s: %s\n", s->remarks[i].function->name, s->remarks[i].text);
    if (s->n_remarks) printf("  tare convert --tpu_functions auto splits what can be split, and places it\n");
}

tare_status inspect_print_suggestions(const struct tare_model *model) {
    struct tare_tpu_suggestions suggestions;
    struct tare_arena arena = { 0 };
    tare_status status = tare_tpu_suggest(&suggestions, &arena, model);
    if (status == TARE_OK) print_suggestions(&suggestions);
    tare_arena_free(&arena);
    return status;
}
