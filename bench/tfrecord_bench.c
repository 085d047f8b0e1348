/* Reading and checking uncompressed TFRecords from the page cache, on one core, against memcpy in the same run.
 *
 *   build/bench/tfrecord_bench [FOLDER]      writes a file of 512 MiB there (default /tmp) and removes it
 *
 * Each round opens the file, reads every record with both checksums, and closes it; memcpy copies buffers of the same
 * total between blocks larger than the caches. Both alternate; the best of the rounds counts, in processor time of the
 * thread (user and system), so that other load on the machine counts little. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "datasets/tfrecord.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 7 };

static const size_t TOTAL = (size_t)512 << 20, BLOCK = (size_t)64 << 20;

static tare_status write_file(const char *path, size_t size, const unsigned char *bytes) {
    struct tare_tfrecord_writer *writer;
    TARE_TRY(tare_tfrecord_create(&writer, path));
    for (size_t done = 0; done < TOTAL; done += size) {
        tare_status status = tare_tfrecord_write(writer, bytes + done % 4096, size);
        if (status == TARE_OK) continue;
        tare_tfrecord_abort(writer);
        return status;
    }
    return tare_tfrecord_commit(writer);
}

static tare_status read_file(const char *path, size_t *records) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    tare_status status;
    bool end = false;
    TARE_TRY(tare_tfrecord_open(&reader, path));
    for (*records = 0;; ++*records) {
        status = tare_tfrecord_next(&record, &end, reader);
        if (status != TARE_OK || end) break;
    }
    tare_tfrecord_close(reader);
    return status;
}

static double copy(unsigned char *to, const unsigned char *from) {
    double start = tare_clock_cpu_seconds();
    for (size_t done = 0; done < TOTAL; done += BLOCK) {
        memcpy(to, from, BLOCK);
        __asm__ volatile("" ::"r"(to) : "memory");
    }
    return tare_clock_cpu_seconds() - start;
}

static tare_status measure(const char *path, size_t size, const unsigned char *from, unsigned char *to) {
    double best_read = 1e9, best_copy = 1e9, bytes;
    size_t records = 0;
    TARE_TRY(write_file(path, size, from));
    bytes = (double)tare_file_size(path);
    TARE_TRY(read_file(path, &records)); /* now it is in the page cache */
    for (int round = 0; round < ROUNDS; round++) {
        double used = copy(to, from), start;
        if (used < best_copy) best_copy = used;
        start = tare_clock_cpu_seconds();
        TARE_TRY(read_file(path, &records));
        used = tare_clock_cpu_seconds() - start;
        if (used < best_read) best_read = used;
    }
    printf("records of %8zu bytes: %6.2f GB/s, %9zu records, %5.1f ns each; memcpy %6.2f GB/s; ratio %.2f\n", size,
           bytes / best_read * 1e-9, records, best_read / (double)records * 1e9, (double)TOTAL / best_copy * 1e-9,
           bytes / best_read / ((double)TOTAL / best_copy));
    return TARE_OK;
}

int main(int argc, char **argv) {
    static const size_t sizes[] = { 256, 3200, 12355, 150 << 10, 600 << 10, 16 << 20 };
    unsigned char *from = tare_malloc(BLOCK + 4096), *to = tare_malloc(BLOCK);
    char path[512];
    tare_status status = from && to ? TARE_OK : TARE_NO_MEMORY;
    snprintf(path, sizeof path, "%s/tare-bench-%d.tfrecord", argc > 1 ? argv[1] : "/tmp", (int)getpid());
    for (size_t i = 0; from && i < BLOCK + 4096; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    if (to) memset(to, 0, BLOCK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status == TARE_OK; i++)
        status = measure(path, sizes[i], from, to);
    unlink(path);
    if (status != TARE_OK) fprintf(stderr, "tfrecord_bench: %s\n", tare_error_text());
    tare_free(from);
    tare_free(to);
    return status != TARE_OK;
}
