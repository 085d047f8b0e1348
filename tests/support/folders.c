#include "support/folders.h"

#include "base/alloc.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

bool same_files(const char *a, const char *b) {
    struct tare_mapping first = { 0 }, second = { 0 };
    bool same = tare_file_map(&first, a) == TARE_OK && tare_file_map(&second, b) == TARE_OK;
    same = same && first.size == second.size && (!first.size || memcmp(first.data, second.data, first.size) == 0);
    if (!same) print_error("%s and %s differ\n", a, b);
    tare_file_unmap(&first);
    tare_file_unmap(&second);
    return same;
}

static bool same_entries(const char *a, const char *b) {
    return tare_file_kind_of(a) == TARE_FILE_DIRECTORY ? same_folders(a, b) : same_files(a, b);
}

bool same_folders(const char *a, const char *b) {
    struct tare_file_list names = { 0 }, others = { 0 };
    bool same = tare_file_list(&names, a) == TARE_OK && tare_file_list(&others, b) == TARE_OK;
    if (same && names.count != others.count) {
        print_error("%s has %zu entries, %s %zu\n", a, names.count, b, others.count);
        same = false;
    }
    for (size_t i = 0; same && i < names.count; i++) {
        char *x = tare_path_join(a, names.names[i]), *y = tare_path_join(b, names.names[i]);
        same = same_entries(x, y);
        tare_free(x);
        tare_free(y);
    }
    tare_file_list_free(&names);
    tare_file_list_free(&others);
    return same;
}
