/* Mapped files and lost ones; see the header. */
#include "base/file_lost.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tare_mapped_file *_Atomic mappings;
static _Atomic int64_t lost_files;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of changes; reading needs none */

uintptr_t tare_page_size(void) {
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

size_t tare_whole_pages(size_t size) {
    const size_t page = tare_page_size();
    return (size + page - 1) / page * page;
}

/* ---- the list ---- */

struct tare_mapped_file *tare_mapped_file_find(const void *address) {
    const uintptr_t at = (uintptr_t)address;
    for (struct tare_mapped_file *m = atomic_load(&mappings); m; m = m->next) {
        const uintptr_t start = atomic_load(&m->start);
        if (start && at >= start && at - start < tare_whole_pages(m->size)) return m;
    }
    return NULL;
}

void tare_mapped_file_lose(struct tare_mapped_file *file) {
    if (atomic_exchange(&file->lost, true)) return;
    atomic_fetch_add(&lost_files, 1);
}

/* The record keeps its name if the file was lost: messages refer to it. */
static struct tare_mapped_file *unused_record(void) {
    struct tare_mapped_file *m = atomic_load(&mappings);
    while (m && (atomic_load(&m->start) || atomic_load(&m->lost)))
        m = m->next;
    if (m) return m;
    m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->next = atomic_load(&mappings);
    atomic_store(&mappings, m);
    return m;
}

tare_status tare_mapped_file_add(void *data, size_t size, int fd, const char *path, struct tare_file_reader reader) {
    struct tare_mapped_file *m;
    pthread_mutex_lock(&list_lock);
    m = unused_record();
    if (m) {
        m->size = size;
        m->fd = fd;
        m->family = reader.family;
        atomic_store(&m->call, reader.call);
        snprintf(m->name, sizeof m->name, "%s", path);
        atomic_store(&m->start, (uintptr_t)data);
    }
    pthread_mutex_unlock(&list_lock);
    if (!m && fd >= 0) close(fd);
    return m ? TARE_OK : TARE_NO_MEMORY;
}

static void compare_size(struct tare_mapped_file *m) {
    struct stat info;
    if (m->fd >= 0 && fstat(m->fd, &info) == 0 && (size_t)info.st_size < m->size) tare_mapped_file_lose(m);
}

void tare_mapped_file_remove(struct tare_mapped_file *file, struct tare_file_reader reader) {
    pthread_mutex_lock(&list_lock);
    atomic_store(&file->call, reader.call);
    compare_size(file);
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
    atomic_store(&file->start, 0);
    pthread_mutex_unlock(&list_lock);
}

/* ---- lost files ---- */

int64_t tare_file_lost_count(void) {
    return atomic_load(&lost_files);
}

void tare_file_compare_sizes(void) {
    if (!atomic_load(&mappings)) return;
    pthread_mutex_lock(&list_lock);
    for (struct tare_mapped_file *m = atomic_load(&mappings); m; m = m->next)
        if (atomic_load(&m->start)) compare_size(m);
    pthread_mutex_unlock(&list_lock);
}

const char *tare_file_lost_for(struct tare_file_reader reader) {
    for (struct tare_mapped_file *m = atomic_load(&mappings); m; m = m->next) {
        const uint64_t call = atomic_load(&m->call);
        if (!atomic_load(&m->lost)) continue;
        if (call ? call == reader.call : m->family == reader.family && atomic_load(&m->start)) return m->name;
    }
    return NULL;
}

void tare_file_lost_end(struct tare_file_reader reader) {
    if (!atomic_load(&mappings)) return;
    pthread_mutex_lock(&list_lock);
    for (struct tare_mapped_file *m = atomic_load(&mappings); m; m = m->next)
        if (atomic_load(&m->call) == reader.call) atomic_store(&m->call, 0);
    pthread_mutex_unlock(&list_lock);
}

tare_status tare_file_lost_error(const char *name) {
    return TARE_FAIL(TARE_IO,
                     "cannot read '%s': the file became shorter, or the disk failed, while it was read (run again with "
                     "the whole file)",
                     name);
}

const char *tare_file_note_lost(const void *data) {
    struct tare_mapped_file *m = tare_mapped_file_find(data);
    if (m) compare_size(m);
    return m && atomic_load(&m->lost) ? m->name : NULL;
}
