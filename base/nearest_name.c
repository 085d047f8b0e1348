/* The nearest of several names, for suggestions in error messages. */
#include "base/option.h"
#include "base/ascii.h"

#include <string.h>

enum { LONGEST_NAME = 64 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment distance: Damerau-Levenshtein without editing a substring twice. Keeps three rows of the
 * table. */
size_t tare_edit_distance(const char *a, const char *b) {
    size_t rows[3][LONGEST_NAME + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    size_t m = strnlen(a, LONGEST_NAME), n = strnlen(b, LONGEST_NAME);

    for (size_t j = 0; j <= n; j++)
        above[j] = j, before[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *swap = before;
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        before = above;
        above = row;
        row = swap;
    }
    return above[n];
}

const char *tare_nearest_name(const char *text, const char *const *names) {
    const char *nearest = NULL;
    size_t fewest = SIZE_MAX;
    for (; *names; names++) {
        size_t edits = tare_same_letters(text, *names) ? 0 : tare_edit_distance(text, *names);
        size_t longer = strlen(text) > strlen(*names) ? strlen(text) : strlen(*names);
        if (edits < fewest && edits * 3 <= longer) {
            fewest = edits;
            nearest = *names;
        }
    }
    return nearest;
}
