/* Names of nodes. */
#include "graph/graph.h"
#include "graph/model.h"

#include <string.h>

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char FIRST[] = LETTERS_AND_DIGITS ".", LATER[] = LETTERS_AND_DIGITS "._-/";

bool tare_node_name_is_valid(const char *name) {
    const char *part = name;
    do {
        if (!*part || !strchr(FIRST, *part)) return false;
        part += strspn(part, LATER);
    } while (*part++ == '>');
    return !part[-1];
}

bool tare_node_is_loadable(const struct tare_node *node) {
    const bool internal = *node->name == '_' && node->graph == node->graph->model->main;
    const char *rest = node->name + (internal ? strspn(node->name, "._-/") : 0);
    return (internal && !*rest) || tare_node_name_is_valid(rest);
}

/* Of a letter outside ASCII, the first byte of its UTF-8 form stays as "_", and the others are dropped. */
static bool continues_letter(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

const char *tare_node_name_from(struct tare_arena *arena, const char *text) {
    char *name, *at;
    if (tare_node_name_is_valid(text)) return tare_arena_strdup(arena, text);
    while (*text && !strchr(FIRST, *text))
        text++;
    name = at = tare_arena_alloc(arena, strlen(text) + sizeof "node");
    if (!name) return NULL;
    for (; *text; text++)
        if (!continues_letter(*text)) *at++ = strchr(LATER, *text) ? *text : '_';
    *at = '\0';
    return *name ? name : strcpy(name, "node");
}
