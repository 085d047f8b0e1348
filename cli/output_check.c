#include "cli/output_check.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "convert/saved_model.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

tare_status tare_command_check_model_output(const char *path, const char *input, bool overwrite) {
    struct tare_output_rules rules;
    tare_saved_model_output_rules(&rules, input, overwrite);
    return tare_output_dir_check(path, &rules);
}

tare_status tare_command_check_file_output(const char *path) {
    char *folder;
    tare_status status = TARE_OK;
    if (!path || strcmp(path, "-") == 0 || tare_file_kind_of(path) == TARE_FILE_OTHER) return TARE_OK;
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
        return TARE_FAIL(TARE_IO, "cannot create '%s': it is a folder", path);
    folder = tare_path_folder(path);
    if (!folder) return TARE_NO_MEMORY;
    if (tare_file_kind_of(folder) != TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_NOT_FOUND, "cannot create '%s': folder '%s' does not exist", path, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': %s", path, strerror(errno));
    tare_free(folder);
    return status;
}
