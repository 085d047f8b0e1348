/* Splits an option text into command line arguments, so that the same rows and parser apply. */
#include "workflow/option_text.h"
#include "base/ascii.h"

#include <string.h>

enum { MOST = 128 };

/* Copies the next word, prefixed with "--" and without quotes, and advances *text. *out is NULL at the end. */
static tare_status next_word(char **out, struct tare_arena *arena, const char **text) {
    const char *p = *text;
    bool quoted = false;
    size_t used = 2;
    while (tare_is_space(*p))
        p++;
    *out = NULL;
    if (!*p) return TARE_OK;
    char *word = TARE_NEW_ARRAY(arena, char, strlen(p) + 3);
    if (!word) return TARE_NO_MEMORY;
    memcpy(word, "--", 2);
    for (; *p && (quoted || !tare_is_space(*p)); p++) {
        if (quoted && *p == '\\' && p[1] == '"')
            word[used++] = *++p;
        else if (*p == '"')
            quoted = !quoted;
        else
            word[used++] = *p;
    }
    word[used] = '\0';
    if (quoted) return TARE_FAIL(TARE_USAGE, "options '%.40s…': unterminated quote", *text);
    *text = p;
    *out = word;
    return TARE_OK;
}

tare_status tare_option_text_read(void *values, struct tare_arena *arena, const struct tare_option_set *set,
                                  const char *text) {
    struct tare_option_outcome outcome;
    char *words[MOST];
    int count = 0;
    for (const char *rest = text ? text : "";;) {
        TARE_TRY(next_word(&words[count], arena, &rest));
        if (!words[count]) break;
        if (strcmp(words[count], "--help") == 0)
            return TARE_FAIL(TARE_USAGE, "options '%s': unknown option 'help'", text);
        if (++count == MOST) return TARE_FAIL(TARE_USAGE, "options '%.40s…': more than %d of them", text, MOST - 1);
    }
    return tare_options_parse(values, &outcome, set, count, words);
}
