#include "cli/batch/page.h"
#include "base/alloc.h"
#include "base/file.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "eval/jobs/job_key.h"
#include "eval/model_diff.h"

enum { MOST_MB = 500 };

static tare_status make_folder_of(const char *path) {
    char *folder = tare_path_folder(path);
    const tare_status status = folder ? tare_file_make_folders(folder, NULL) : TARE_NO_MEMORY;
    tare_free(folder);
    return status;
}

tare_status tare_batch_page_write(const struct tare_job *job, const char *folder, const char *name, const char *path) {
    struct tare_graph_model *first = NULL, *second = NULL;
    struct tare_model_diff diff = { 0 };
    struct tare_strbuf page = { 0 };
    int64_t bytes;
    tare_status status;
    TARE_CHECK(tare_folder_bytes(&bytes, job->model));
    if (bytes > MOST_MB * (int64_t)1000000) goto done;
    TARE_CHECK(make_folder_of(path));
    TARE_CHECK(tare_command_load(&first, job->model));
    TARE_CHECK(tare_command_load(&second, folder));
    TARE_CHECK(tare_model_diff_make(&diff, first, job->model, second, name));
    tare_model_diff_html(&page, &diff);
    status = tare_report_write(path, &page);
done:
    tare_strbuf_free(&page);
    tare_model_diff_free(&diff);
    tare_model_free(first);
    tare_model_free(second);
    return status;
}
