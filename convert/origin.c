/* See origin.h. The record is one line, a relative path, in a folder that TensorFlow copies and does not read. */
#include "convert/origin.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "convert/model_hint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char RECORD[] = "assets.extra/tare_made_from";

/* ---- reading ---- */

/* Removes the last part of the path, if that is a name. */
static bool remove_name(char *path) {
    size_t size;
    const char *last = tare_path_last(&size, path);
    if (!size || *last == '/' || strspn(last, ".") >= size) return false;
    path[last - path] = '\0';
    return true;
}

/* `relative` seen from `folder`: "../a" from "b" is "a". */
static tare_status resolve(char **out, const char *folder, const char *relative) {
    char *start = tare_strdup(folder);
    while (start && strncmp(relative, "../", 3) == 0 && remove_name(start))
        relative += 3;
    *out = start ? tare_path_join(start, relative) : NULL;
    tare_free(start);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static bool is_model(const char *path) {
    return tare_is_saved_model_folder(path) || tare_file_kind_of(path) == TARE_FILE_REGULAR;
}

tare_status tare_origin_of(char **out, const char *path) {
    char *record = tare_path_join(path, RECORD), *text = NULL;
    size_t size = 0;
    tare_status status = record ? TARE_OK : TARE_NO_MEMORY;
    *out = NULL;
    if (record && tare_file_kind_of(record) == TARE_FILE_REGULAR && tare_file_size(record) <= PATH_MAX)
        status = tare_error_dismiss(tare_file_read(&text, &size, record));
    if (text && size > 1 && text[size - 1] == '\n' && !memchr(text, '\0', size)) {
        text[size - 1] = '\0';
        status = resolve(out, path, text);
    }
    if (*out && !is_model(*out)) {
        tare_free(*out);
        *out = NULL;
    }
    tare_free(text);
    tare_free(record);
    return status;
}

/* ---- writing ---- */

/* Appends how to reach `to` from the folder `from`, both real paths. */
static void put_relative(struct tare_strbuf *out, const char *from, const char *to) {
    size_t same = 0; /* of both, up to the end of a name */
    for (size_t i = 0; from[i] == to[i] || !from[i] || !to[i]; i++) {
        if ((!from[i] || from[i] == '/') && (!to[i] || to[i] == '/')) same = i;
        if (!from[i] || !to[i]) break;
    }
    for (const char *rest = from + same; *rest; rest++)
        if (*rest == '/' && rest[1]) tare_strbuf_puts(out, "../");
    tare_strbuf_puts(out, to[same] == '/' ? to + same + 1 : to + same);
}

static tare_status write_line(const char *folder, struct tare_strbuf *line) {
    char *path = tare_path_join(folder, RECORD), *parent = path ? tare_path_folder(path) : NULL;
    size_t existed;
    tare_status status = parent && !line->failed ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_file_make_folders(parent, &existed);
    if (status == TARE_OK) status = tare_file_write(path, tare_strbuf_text(line), line->size);
    tare_free(parent);
    tare_free(path);
    return status;
}

tare_status tare_origin_write(const char *folder, const char *out, const char *source) {
    char *origin, *parent, rooms[2][PATH_MAX];
    struct tare_strbuf line = { 0 };
    tare_status status = tare_origin_of(&origin, source);
    parent = tare_path_folder(out);
    const char *from = parent ? realpath(parent, rooms[0]) : NULL, *to = realpath(origin ? origin : source, rooms[1]);
    if (status == TARE_OK && from && to && !strpbrk(to, "\r\n")) {
        tare_strbuf_puts(&line, "../");
        put_relative(&line, from, to);
        tare_strbuf_putc(&line, '\n');
        status = write_line(folder, &line);
    }
    tare_strbuf_free(&line);
    tare_free(parent);
    tare_free(origin);
    return status;
}
