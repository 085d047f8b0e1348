/* The method of a job as options of a command. */
#include "convert/job_method.h"
#include "base/strbuf.h"

#include <string.h>

tare_status tare_text_list_add(struct tare_text_list *list, struct tare_arena *arena, const char *text) {
    const char **grown = tare_arena_append(arena, (void *)(uintptr_t)list->items, list->count, sizeof *grown);
    if (!grown || !text) return TARE_NO_MEMORY;
    grown[list->count++] = text;
    list->items = grown;
    return TARE_OK;
}

/* "block=32" and others "activation_bits=16" */
static tare_status add_setting(struct tare_text_list *words, struct tare_arena *arena, const char *text) {
    static const char block[] = "block=";
    if (strncmp(text, block, strlen(block)) == 0)
        return tare_text_list_add(words, arena,
                                  tare_arena_printf(arena, "--granularity=per_block:%s", text + strlen(block)));
    return tare_text_list_add(words, arena, tare_arena_printf(arena, "--%s", text));
}

tare_status tare_job_method_words(struct tare_text_list *out, bool *bfloat16, struct tare_arena *arena,
                                  const char *method) {
    char *copy = tare_arena_strdup(arena, method), *outer = NULL, *inner = NULL;
    struct tare_strbuf passes = { 0 };
    tare_status status = TARE_OK;
    *out = (struct tare_text_list){ 0 };
    *bfloat16 = false;
    char *first = copy ? strtok_r(copy, "+", &outer) : NULL, *name = first ? strtok_r(first, ":", &inner) : NULL;
    if (!copy) return TARE_NO_MEMORY;
    if (name && strcmp(name, "bfloat16") == 0)
        *bfloat16 = true;
    else
        status = tare_text_list_add(out, arena, tare_arena_printf(arena, "--method=%s", name ? name : ""));
    for (char *piece; status == TARE_OK && inner && (piece = strtok_r(NULL, ":", &inner));)
        status = add_setting(out, arena, piece);
    for (char *piece; status == TARE_OK && outer && (piece = strtok_r(NULL, "+", &outer));) {
        if (strcmp(piece, "bfloat16") == 0)
            *bfloat16 = true;
        else
            tare_strbuf_printf(&passes, "%s%s", passes.size ? "," : "--passes=", piece);
    }
    if (passes.size && status == TARE_OK)
        status = tare_text_list_add(out, arena, tare_arena_strdup(arena, tare_strbuf_text(&passes)));
    if (*bfloat16 && status == TARE_OK) status = tare_text_list_add(out, arena, "--bfloat16=analysis");
    tare_strbuf_free(&passes);
    return status;
}
