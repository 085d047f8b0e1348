/* Outputs apart from inputs: what is read must not be replaced, removed or added to. */
#include "base/file.h"
#include "base/output.h"

#include <stdbool.h>
#include <string.h>

tare_status tare_output_check_apart(const char *path, const char *input) {
    const enum tare_file_kind kind = tare_file_kind_of(input);
    bool is_inside, contains;
    /* A device or a pipe may be both. */
    if (strcmp(path, "-") == 0 || strcmp(input, "-") == 0 || kind == TARE_FILE_NONE || kind == TARE_FILE_OTHER)
        return TARE_OK;
    if (tare_path_is_same(path, input))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the output '%s' is the input '%s' (choose another %s)", path, input,
                         kind == TARE_FILE_DIRECTORY ? "folder" : "file");
    TARE_TRY(tare_path_is_inside(&is_inside, path, input));
    TARE_TRY(tare_path_is_inside(&contains, input, path));
    if (is_inside)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the output '%s' is inside the input '%s' (choose another folder)",
                         path, input);
    if (contains)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the output '%s' contains the input '%s' (choose another folder)", path,
                         input);
    return TARE_OK;
}

tare_status tare_output_check_all_apart(const char *path, const char *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_output_check_apart(path, inputs[i]));
    return TARE_OK;
}
