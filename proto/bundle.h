/* TensorBundle checkpoints: PREFIX.index (a sorted table of entries) and PREFIX.data-NNNNN-of-NNNNN (raw tensors). */
#ifndef TARE_PROTO_BUNDLE_H
#define TARE_PROTO_BUNDLE_H

#include "base/tensor/tensor.h"

struct tare_bundle;

/* Opens PREFIX; data files are mapped when first needed. TARE_UNSUPPORTED for a big-endian checkpoint. */
tare_status tare_bundle_open(struct tare_bundle **out, const char *prefix) TARE_WARN_UNUSED;
/* Tensors that were read stay valid. No-op if NULL. */
void tare_bundle_close(struct tare_bundle *bundle);
/* Number of tensors (a partitioned one counts once), and their size in bytes. */
size_t tare_bundle_count(const struct tare_bundle *bundle);
size_t tare_bundle_bytes(const struct tare_bundle *bundle);
/* Key of tensor i in ascending order. */
const char *tare_bundle_key(const struct tare_bundle *bundle, size_t i);
/* The first key that does not precede `key`; NULL: there is none. */
const char *tare_bundle_first(const struct tare_bundle *bundle, const char *key);
/* The index entry of a tensor, unchecked. */
struct tare_bundle_entry {
    int dtype;
    struct tare_shape shape; /* of unknown rank if the index has no valid shape */
    int32_t shard;
    int64_t offset, size; /* of the bytes in the shard; 0 for a partitioned tensor */
    uint32_t crc32c;      /* not masked */
    size_t slices;        /* 0: in one piece */
};
bool tare_bundle_find(struct tare_bundle_entry *out, const struct tare_bundle *bundle, const char *key);
/* False for a NULL bundle. */
bool tare_bundle_has(const struct tare_bundle *bundle, const char *key);
/* Like find, and checks that shape, size and data file agree, without reading the tensor: tare_bundle_read can then
 * only find a checksum mismatch. */
tare_status tare_bundle_check(struct tare_bundle_entry *out, struct tare_bundle *bundle,
                              const char *key) TARE_WARN_UNUSED;
/* Like check, for a slice in the syntax of RestoreV2 ("100 20 0,50:-"; NULL or "": the whole tensor); out->shape is
 * that of the slice. */
tare_status tare_bundle_check_slice(struct tare_bundle_entry *out, struct tare_bundle *bundle, const char *key,
                                    const char *slice) TARE_WARN_UNUSED;
/* Reads a tensor and verifies its checksum. Numeric tensors are views of the mapped file if alignment allows; strings
 * are copied. Partitioned tensors are assembled. Errors name key, file and byte. One thread at a time per bundle. */
tare_status tare_bundle_read(struct tare_tensor *out, struct tare_bundle *bundle, const char *key) TARE_WARN_UNUSED;
/* Like read, for a slice: a view if it is stored as this slice, otherwise assembled from the slices it overlaps.
 * TARE_SHAPE if the shape of the tensor differs from that in `slice`. */
tare_status tare_bundle_read_slice(struct tare_tensor *out, struct tare_bundle *bundle, const char *key,
                                   const char *slice) TARE_WARN_UNUSED;

/* True if the tensor is a view of a checkpoint's mapped file: its pages may be released with tare_file_forget. */
bool tare_bundle_is_view(const struct tare_tensor *tensor);

struct tare_bundle_writer;
/* Starts a checkpoint; its files appear when the writer is closed. */
tare_status tare_bundle_writer_open(struct tare_bundle_writer **out, const char *prefix) TARE_WARN_UNUSED;
/* The same with `shards` data files, 1 … 99999. */
tare_status tare_bundle_writer_open_shards(struct tare_bundle_writer **out, const char *prefix,
                                           int shards) TARE_WARN_UNUSED;
/* Selects the data file of tensors added from now on (initially 0). */
void tare_bundle_writer_use_shard(struct tare_bundle_writer *writer, int shard);
/* Appends a tensor to the data file; keys in any order, each once. TARE_UNSUPPORTED for resources and variants. After a
 * failure the writer can only be aborted. */
tare_status tare_bundle_writer_add(struct tare_bundle_writer *writer, const char *key,
                                   const struct tare_tensor *tensor) TARE_WARN_UNUSED;
/* Completes the files and frees the writer; on failure no files are left. */
tare_status tare_bundle_writer_close(struct tare_bundle_writer *writer) TARE_WARN_UNUSED;
void tare_bundle_writer_abort(struct tare_bundle_writer *writer);

#endif
