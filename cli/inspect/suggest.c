/* tare inspect --suggest: proposes functions to place on the TPU, with the command that converts the model, and lists
 * the ops that keep a function off the TPU. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "cli/hint.h"
#include "tpu/functions.h"
#include "tpu/suggest.h"
#include "workflow/inspection.h"

#include <stdio.h>

/* The signature that runs exactly this function; NULL: none. */
static const char *signature_of(const struct tare_graph_model *model, const struct tare_graph *function) {
    for (size_t i = 0; i < model->n_signatures; i++)
        if (tare_signature_function(&model->signatures[i]) == function) return model->signatures[i].key;
    return NULL;
}

/* Prefers the alias, which is stable across exports, then the signature; names of concrete functions change with every
 * export. */
static void append_choice(struct tare_strbuf *out, const struct tare_graph_model *model,
                          const struct tare_tpu_suggestion *suggestion) {
    const char *signature = signature_of(model, suggestion->function);
    if (suggestion->alias)
        tare_strbuf_printf(out, "tpu_functions { function_alias: \"%s\" }", suggestion->alias);
    else if (signature)
        tare_strbuf_printf(out, "tpu_functions { signature_name: \"%s\" }", signature);
    else
        tare_strbuf_printf(out, "tpu_functions { concrete_function_name: \"%s\" }", suggestion->function->name);
}

/* The output is in the working folder: the folder of the model may be read-only. */
static void print_convert(const struct tare_graph_model *model, const char *option, const char *value) {
    struct tare_strbuf line = { 0 };
    char *output;
    tare_hint_name(&output, model->path, "_tpu");
    tare_hint_put_program(&line);
    tare_strbuf_puts(&line, " convert ");
    tare_strbuf_shell_word(&line, model->path);
    tare_strbuf_putc(&line, ' ');
    if (output) tare_strbuf_shell_word(&line, output);
    tare_strbuf_printf(&line, " %s=", option);
    tare_strbuf_shell_word(&line, value);
    if (output && !line.failed) printf("  %s\n", tare_strbuf_text(&line));
    tare_strbuf_free(&line);
    tare_free(output);
}

static void print_choices(const struct tare_tpu_suggestions *s, const struct tare_graph_model *model) {
    struct tare_strbuf options = { 0 };
    for (size_t i = 0; i < s->count; i++) {
        struct tare_strbuf choice = { 0 };
        append_choice(&choice, model, &s->items[i]);
        printf("  %zu ops: %s\n", s->items[i].ops, tare_strbuf_text(&choice));
        tare_strbuf_printf(&options, "%s%s", i ? " " : "", tare_strbuf_text(&choice));
        tare_strbuf_free(&choice);
    }
    print_convert(model, "--converter_options_string", tare_strbuf_text(&options));
    tare_strbuf_free(&options);
}

static void print_suggestions(const struct tare_tpu_suggestions *s, const struct tare_graph_model *model) {
    printf("\nsuggested for the TPU: %zu function%s with %zu of %zu ops\n", s->count, s->count == 1 ? "" : "s",
           s->covered, s->ops);
    if (s->count) print_choices(s, model);
    for (size_t i = 0; i < s->n_remarks; i++)
        printf("  %s: %s\n", s->remarks[i].function->name, s->remarks[i].text);
    if (s->n_remarks) printf("  to keep the unsupported parts on the CPU:\n");
    if (s->n_remarks) print_convert(model, "--tpu_functions", "auto");
}

tare_status inspect_print_suggestions(const struct tare_graph_model *model) {
    struct tare_tpu_suggestions suggestions;
    struct tare_arena arena = { 0 };
    tare_status status = tare_tpu_suggest(&suggestions, &arena, model);
    if (status == TARE_OK) print_suggestions(&suggestions, model);
    tare_arena_free(&arena);
    return status;
}
