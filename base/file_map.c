/* Mapped files that may shrink.
 *
 * A page of a mapping that is no longer in the file raises SIGBUS when it is read. Small files are therefore read into
 * memory. For large ones a handler of SIGBUS replaces the pages from the faulting one on by zeros, so that the thread
 * continues, and counts the file as lost; tare_control_check and tare_control_verify of the calls that the file
 * concerns then fail (base/control.h), so that no result that was computed from the zeros is used. A jump out of the
 * handler (sigsetjmp) would skip the cleanup of all functions between, in any thread; a copy of each file would take
 * the memory that mapping saves.
 *
 * The handler is installed with the first mapping, and again with a later one if the host has replaced it meanwhile. It
 * handles only addresses of mappings in the list of base/file_lost.h and passes all other signals to the handler that
 * was there before. A file that loses only a part of its last page raises no signal: sizes are compared when a mapping
 * ends and before results are used.
 */
#include "base/control.h"
#include "base/file.h"
#include "base/file_lost.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SMALL = 1 << 20,  /* bytes; larger files are mapped */
    MOST_FILES = 256, /* file descriptors from here on are not kept open for a mapping */
};

static struct sigaction previous; /* handler of SIGBUS before ours */
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool passing; /* a signal is with the handler before ours, which might pass it back */

static const uint8_t nothing[1];

/* ---- the signal ---- */

static void pass_on(int number, siginfo_t *info, void *context) {
    const bool again = atomic_exchange(&passing, true);
    if (!again && (previous.sa_flags & SA_SIGINFO)) {
        previous.sa_sigaction(number, info, context);
        atomic_store(&passing, false);
    } else if (!again && previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
        atomic_store(&passing, false);
    } else {
        signal(number, SIG_DFL); /* the access is repeated and ends the process, or the signal is raised again */
        if (info->si_code <= 0) raise(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    const int before = errno;
    struct tare_mapped_file *m = info->si_code == BUS_ADRERR ? tare_mapped_file_find(info->si_addr) : NULL;
    if (m) {
        const uintptr_t page = tare_page_size(), from = (uintptr_t)info->si_addr / page * page;
        const size_t size = tare_whole_pages(m->size) - (from - atomic_load(&m->start));
        if (mmap((void *)from, size, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
            MAP_FAILED) {
            tare_mapped_file_lose(m);
            errno = before;
            return;
        }
    }
    pass_on(number, info, context);
    errno = before;
}

static void install(void) {
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART }, now;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&install_lock);
    if (sigaction(SIGBUS, NULL, &now) == 0 && !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error)) {
        previous = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&install_lock);
}

/* ---- mapping ---- */

static tare_status record(void *data, size_t size, int fd, const char *path) {
    install();
    return tare_mapped_file_add(data, size, fd < MOST_FILES ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1, path,
                                tare_control_reader());
}

static tare_status read_small(void *data, size_t size, int fd, const char *path) {
    size_t done = 0, got = 1;
    while (done < size && got) {
        TARE_TRY(tare_file_read_some(&got, fd, (char *)data + done, size - done, path));
        done += got;
    }
    if (done == size) return TARE_OK;
    return TARE_FAIL(TARE_IO,
                     "cannot read '%s': the file became shorter while it was read (run again with the whole "
                     "file)",
                     path);
}

static tare_status map_open(struct tare_mapping *out, int fd, size_t size, const char *path) {
    const bool small = size <= SMALL;
    void *data = MAP_FAILED;
    tare_status status;
    if (!tare_file_must_fail())
        data = small ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return tare_file_error("cannot map", path);
    status = small ? read_small(data, size, fd, path) : record(data, size, fd, path);
    if (status == TARE_OK && small && mprotect(data, size, PROT_READ) != 0)
        status = tare_file_error("cannot map", path);
    if (status != TARE_OK) {
        munmap(data, size);
        return status;
    }
    *out = (struct tare_mapping){ data, size };
    return TARE_OK;
}

tare_status tare_file_map(struct tare_mapping *out, const char *path) {
    struct stat info;
    tare_status status = TARE_OK;
    int fd = tare_file_must_fail() ? -1 : open(path, O_RDONLY | O_CLOEXEC);

    *out = (struct tare_mapping){ NULL, 0 };
    if (fd < 0) return tare_file_error("cannot open", path);
    if (fstat(fd, &info) != 0) {
        status = tare_file_error("cannot access", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = TARE_FAIL(TARE_IO, "cannot map '%s': %s", path,
                           S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file");
    } else if (info.st_size > 0) {
        status = map_open(out, fd, (size_t)info.st_size, path);
    } else {
        *out = (struct tare_mapping){ nothing, 0 };
    }
    close(fd);
    return status;
}

/* Whole pages within the range: the pages at its ends may be shared with neighbouring data. What was read into memory
 * cannot be read again. */
void tare_file_forget(const void *data, size_t size) {
    const uintptr_t page = tare_page_size();
    uintptr_t first = ((uintptr_t)data + page - 1) / page * page, end = ((uintptr_t)data + size) / page * page;
    if (first < end && tare_mapped_file_find(data)) madvise((void *)first, end - first, MADV_DONTNEED); /* a hint */
}

void tare_file_unmap(struct tare_mapping *mapping) {
    struct tare_mapped_file *m = mapping->size > SMALL ? tare_mapped_file_find(mapping->data) : NULL;
    if (m) tare_mapped_file_remove(m, tare_control_reader());
    if (mapping->size) munmap((void *)mapping->data, mapping->size);
    *mapping = (struct tare_mapping){ NULL, 0 };
}
