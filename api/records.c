/* Records that the caller supplies by a callback: taking them one at a time, and keeping them in a temporary TFRecord
 * file for work that reads them more than once. */
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/format.h"
#include "base/strbuf.h"
#include "datasets/tfrecord.h"
#include "api/handles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tare_status tare_public_check_struct(const char *what, size_t size, size_t expected, const uint64_t *reserved,
                                     size_t n_reserved) {
    if (size != expected)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: struct_size is %zu (expected %zu, sizeof(%s))", what, size,
                         expected, what);
    for (size_t i = 0; i < n_reserved; i++)
        if (reserved[i]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: reserved member %zu is not zero", what, i);
    return TARE_OK;
}

tare_status tare_public_check_records(const tare_records *records) {
    TARE_TRY(TARE_PUBLIC_CHECK_STRUCT(tare_records, records));
    return records->next ? TARE_OK : TARE_FAIL(TARE_INVALID_ARGUMENT, "tare_records: next must be set");
}

tare_status tare_public_next_record(const tare_records *records, const tare_array **arrays, size_t *count,
                                    int64_t number) {
    *arrays = NULL;
    *count = 0;
    const tare_status status = records->next(records->arg, arrays, count);
    return status == TARE_OK ? TARE_OK
                             : TARE_FAIL(status, "record %lld: the callback failed (%s)", (long long)number,
                                         tare_status_name(status));
}

tare_status tare_public_temporary(char **out) {
    const char *folder = getenv("TMPDIR");
    char *path = tare_path_join(folder && *folder ? folder : "/tmp", "tare-XXXXXX");
    if (!path) return TARE_NO_MEMORY;
    if (!mkdtemp(path)) {
        const tare_status status =
            TARE_FAIL(TARE_IO, "cannot create temporary directory '%s': %s", path, tare_system_error(errno));
        tare_free(path);
        return status;
    }
    *out = path;
    return TARE_OK;
}

static tare_status write_record(struct tare_tfrecord_writer *writer, const tare_array *arrays, size_t count) {
    struct tare_sample sample;
    void *data = NULL;
    size_t size;
    tare_status status = tare_public_borrow(&sample, arrays, count);
    if (status == TARE_OK) status = tare_sample_encode(&data, &size, sample.keys, sample.values, sample.count);
    if (status == TARE_OK) status = tare_tfrecord_write(writer, data, size);
    tare_free(data);
    tare_sample_reset(&sample);
    return status;
}

static tare_status write_all(struct tare_tfrecord_writer *writer, const tare_records *records,
                             const struct tare_context_handle *context) {
    const volatile sig_atomic_t *interrupted = tare_public_interrupted(context);
    for (int64_t i = 0;; i++) {
        const tare_array *arrays;
        size_t count;
        TARE_TRY(tare_flag_check(interrupted));
        TARE_TRY(tare_public_next_record(records, &arrays, &count, i));
        if (!arrays) return TARE_OK;
        TARE_TRY(tare_error_prefix(write_record(writer, arrays, count), "record %lld", (long long)i));
    }
}

tare_status tare_public_spool_write(struct tare_public_spool *out, const tare_records *records, const char *name,
                                    const struct tare_context_handle *context) {
    struct tare_tfrecord_writer *writer;
    tare_status status;
    *out = (struct tare_public_spool){ .name = tare_strdup(name) };
    if (!out->name) return TARE_NO_MEMORY;
    TARE_TRY(tare_public_temporary(&out->directory));
    out->path = tare_path_join(out->directory, "records.tfrecord");
    if (!out->path) return TARE_NO_MEMORY;
    TARE_TRY(tare_tfrecord_create(&writer, out->path));
    status = write_all(writer, records, context);
    if (status == TARE_OK) return tare_tfrecord_commit(writer);
    tare_tfrecord_abort(writer);
    return status;
}

/* "PATH: record 3 at 9564: …" as "NAME: record 3: …". */
static void write_with_name(struct tare_strbuf *out, const char *text, const struct tare_public_spool *spool) {
    const char *at = spool->path ? strstr(text, spool->path) : NULL;
    long long record, offset;
    int record_end = 0, offset_end = 0;
    if (!at) {
        tare_strbuf_puts(out, text);
        return;
    }
    tare_strbuf_printf(out, "%.*s%s", (int)(at - text), text, spool->name);
    at += strlen(spool->path);
    if (sscanf(at, ": record %lld%n at %lld%n", &record, &record_end, &offset, &offset_end) == 2) {
        tare_strbuf_printf(out, "%.*s", record_end, at);
        at += offset_end;
    }
    tare_strbuf_puts(out, at);
}

void tare_public_spool_remove(struct tare_public_spool *spool) {
    struct tare_strbuf text = { 0 };
    write_with_name(&text, tare_error_text(), spool);
    if (spool->directory && tare_file_remove_tree(spool->directory) != TARE_OK) tare_error_clear();
    if (tare_strbuf_status(&text) == TARE_OK) tare_error_set(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    tare_free(spool->directory);
    tare_free(spool->path);
    tare_free(spool->name);
    *spool = (struct tare_public_spool){ 0 };
}
