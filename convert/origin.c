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
static char *resolve(const char *folder, const char *relative) {
    char *start = tare_strdup(folder), *path = NULL;
    while (start && strncmp(relative, "../", 3) == 0 && remove_name(start))
        relative += 3;
    if (start) path = tare_path_join(start, relative);
    tare_free(start);
    return path;
}

static bool is_model(const char *path) {
    return tare_is_saved_model_folder(path) || tare_file_kind_of(path) == TARE_FILE_REGULAR;
}

char *tare_origin_of(const char *path) {
    char *record = tare_path_join(path, RECORD), *text = NULL, *origin = NULL;
    size_t size = 0;
    if (record && tare_file_kind_of(record) == TARE_FILE_REGULAR && tare_file_size(record) <= PATH_MAX &&
        tare_file_read(&text, &size, record) != TARE_OK)
        tare_error_clear();
    if (text && size > 1 && text[size - 1] == '\n' && !memchr(text, '\0', size)) {
        text[size - 1] = '\0';
        origin = resolve(path, text);
    }
    if (origin && !is_model(origin)) {
        tare_free(origin);
        origin = NULL;
    }
    tare_free(text);
    tare_free(record);
    return origin;
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
    char *origin = tare_origin_of(source), *parent = tare_path_folder(out), rooms[2][PATH_MAX];
    const char *from = parent ? realpath(parent, rooms[0]) : NULL, *to = realpath(origin ? origin : source, rooms[1]);
    struct tare_strbuf line = { 0 };
    tare_status status = TARE_OK;
    if (from && to && !strpbrk(to, "\r\n")) {
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
