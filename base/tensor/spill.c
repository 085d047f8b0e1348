/* Tensors in unnamed files. */
#include "base/tensor/spill.h"
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct spilled {
    void *data;
    size_t size;
};

static void release(void *arg) {
    struct spilled *spilled = arg;
    munmap(spilled->data, spilled->size);
    tare_free(spilled);
}

static bool write_all(int fd, const char *data, size_t size) {
    while (size) {
        const ssize_t count = write(fd, data, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        data += count;
        size -= (size_t)count;
    }
    return true;
}

void tare_tensor_spill(struct tare_tensor *tensor) {
    struct spilled *spilled = tare_calloc(1, sizeof *spilled);
    struct tare_tensor mapped;
    const int fd = spilled ? tare_file_open_unnamed() : -1;
    if (fd >= 0) {
        spilled->size = tare_tensor_bytes(tensor);
        spilled->data = write_all(fd, tensor->data, spilled->size)
                            ? mmap(NULL, spilled->size, PROT_READ, MAP_SHARED, fd, 0)
                            : MAP_FAILED;
        close(fd);
    }
    if (fd < 0 || spilled->data == MAP_FAILED) {
        tare_free(spilled);
        return;
    }
    if (tare_tensor_wrap(&mapped, tensor->dtype, &tensor->shape, spilled->data, release, spilled) != TARE_OK) {
        tare_error_clear();
        release(spilled);
        return;
    }
    tare_tensor_reset(tensor);
    *tensor = mapped;
}

bool tare_tensor_is_spilled(const struct tare_tensor *tensor) {
    return tare_tensor_is_view_of(tensor, release);
}
