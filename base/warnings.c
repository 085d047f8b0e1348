#include "base/warnings.h"
#include "base/alloc.h"

#include <string.h>

static bool is_known(const struct tare_warnings *warnings, const char *text) {
    const size_t size = strlen(text);
    for (size_t i = 0; i < warnings->count; i++) {
        const char *kept = warnings->texts[i];
        const size_t before = strlen(kept) < size ? 0 : strlen(kept) - size;
        if (strcmp(kept + before, text) == 0 && (!before || (before > 1 && memcmp(kept + before - 2, ": ", 2) == 0)))
            return true;
    }
    return false;
}

static void append(struct tare_warnings *warnings, const char *text) {
    char *copy = TARE_GROW(warnings->texts, warnings->count, warnings->capacity) ? tare_strdup(text) : NULL;
    if (copy) warnings->texts[warnings->count++] = copy;
    warnings->failed |= !copy;
}

bool tare_warnings_keep(struct tare_warnings *warnings, const char *text) {
    pthread_mutex_lock(&warnings->lock);
    const bool is_new = !is_known(warnings, text);
    if (is_new) append(warnings, text);
    pthread_mutex_unlock(&warnings->lock);
    return is_new;
}

static void write_kept(void *arg, enum tare_log_level level, const char *text) {
    struct tare_warnings *warnings = arg;
    const struct tare_log *next = &warnings->next;
    if (level == TARE_LOG_WARNING && !tare_warnings_keep(warnings, text)) return;
    if (next->write && level <= next->most) next->write(next->arg, level, text);
}

struct tare_log tare_warnings_log(struct tare_warnings *warnings, const struct tare_log *next) {
    warnings->next = next ? *next : (struct tare_log){ 0 };
    return (struct tare_log){ .most = warnings->next.most > TARE_LOG_WARNING ? warnings->next.most : TARE_LOG_WARNING,
                              .write = write_kept,
                              .arg = warnings };
}

static void write_silently(void *arg, enum tare_log_level level, const char *text) {
    if (level == TARE_LOG_WARNING) tare_warnings_keep(arg, text);
}

struct tare_log tare_warnings_silent(struct tare_warnings *warnings) {
    return (struct tare_log){ .most = TARE_LOG_WARNING, .write = write_silently, .arg = warnings };
}

void tare_warnings_free(struct tare_warnings *warnings) {
    for (size_t i = 0; i < warnings->count; i++)
        tare_free((char *)(uintptr_t)warnings->texts[i]);
    tare_free(warnings->texts);
    *warnings = (struct tare_warnings){ 0 };
}
