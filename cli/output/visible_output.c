/* The stream that replaces stdout. A chunk may end within a character: its bytes wait for the next chunk. */
#include "cli/output/visible_output.h"
#include "base/log.h"
#include "base/visible.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 14 };

static struct {
    bool colors, used;
    size_t carried;
    char carry[8];
} state;

static bool write_all(const char *data, size_t size) {
    while (size) {
        const ssize_t done = write(STDOUT_FILENO, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        data += done;
        size -= (size_t)done;
    }
    return true;
}

/* The number of bytes of plain text, which is nearly everything, at the beginning. */
static size_t plain_length(const char *text, size_t size) {
    size_t n = 0;
    while (n < size && (((unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x7f) || text[n] == '\n'))
        n++;
    return n;
}

/* The length of "\033[…m", as tare prints colors; 0: there is none. */
static size_t color_length(const char *text, size_t size) {
    size_t n = 2;
    if (!state.colors || size < 3 || text[0] != '\033' || text[1] != '[') return 0;
    while (n < size && ((text[n] >= '0' && text[n] <= '9') || text[n] == ';'))
        n++;
    return n < size && text[n] == 'm' ? n + 1 : 0;
}

static bool write_visible(const char *text, size_t size, bool last) {
    char out[ROOM];
    size_t done = 0, at = 0, used;
    while (at < size) {
        const size_t room = ROOM - done;
        size_t count = plain_length(text + at, size - at < room ? size - at : room);
        if (!count) count = color_length(text + at, size - at);
        if (count > room) count = room;
        memcpy(out + done, text + at, count);
        done += count;
        at += count;
        if (ROOM - done < TARE_VISIBLE_MAX) {
            if (!write_all(out, done)) return false;
            done = 0;
        }
        if (count) continue;
        count = tare_visible_step(out + done, &used, text + at, size - at, true, last);
        if (!count) break;
        done += count;
        at += used;
    }
    state.carried = size - at;
    memcpy(state.carry, text + at, state.carried);
    return write_all(out, done);
}

static ssize_t write_chunk(void *arg, const char *data, size_t size) {
    char joined[sizeof state.carry + 1];
    size_t taken = 0;
    (void)arg;
    state.used |= size > 0;
    while (state.carried && taken < size) {
        const size_t carried = state.carried;
        memcpy(joined, state.carry, carried);
        joined[carried] = data[taken++];
        if (!write_visible(joined, carried + 1, false)) return 0;
    }
    if (taken < size && !write_visible(data + taken, size - taken, false)) return 0;
    return (ssize_t)size;
}

static int close_stream(void *arg) {
    char rest[sizeof state.carry];
    const size_t size = state.carried;
    (void)arg;
    memcpy(rest, state.carry, size);
    return write_visible(rest, size, true) ? 0 : EOF;
}

bool tare_stdout_is_used(void) {
    return state.used;
}

void tare_print_line(const char *label, const char *text) {
    struct tare_arena arena = { 0 };
    printf("%s%s\n", label, tare_visible_name(&arena, text));
    tare_arena_free(&arena);
}

const char *tare_visible_name(struct tare_arena *arena, const char *text) {
    const size_t room = 6 * strlen(text) + 1; /* every byte could become six */
    char *visible;
    if (tare_is_visible(text)) return text;
    visible = tare_arena_alloc(arena, room);
    return visible ? tare_visible_line(visible, room, text) : "";
}

void tare_make_stdout_visible(void) {
    static const cookie_io_functions_t functions = { .write = write_chunk, .close = close_stream };
    FILE *stream = fopencookie(NULL, "w", functions);
    if (!stream) return;
    state.colors = tare_log_colors_on(stdout);
    setvbuf(stream, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, 1 << 15);
    fflush(stdout);
    stdout = stream;
}
