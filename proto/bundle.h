/* TensorBundle checkpoints: PREFIX.index (a sorted table of entries) and PREFIX.data-NNNNN-of-NNNNN (raw tensors). */
#ifndef TARE_PROTO_BUNDLE_H
#define TARE_PROTO_BUNDLE_H

#include "tensor/tensor.h"

struct tare_bundle;

/* Opens PREFIX; data files are mapped when first needed. TARE_UNSUPPORTED for a big-endian checkpoint. */
tare_status tare_bundle_open(struct tare_bundle **out, const char *prefix) TARE_WARN_UNUSED;
/* Tensors that were read stay valid. NULL is fine. */
void tare_bundle_close(struct tare_bundle *bundle);
/* Tensors in it, and their bytes. */
size_t tare_bundle_count(const struct tare_bundle *bundle);
size_t tare_bundle_bytes(const struct tare_bundle *bundle);
/* Key of entry i in ascending order. */
const char *tare_bundle_key(const struct tare_bundle *bundle, size_t i);
/* False for a NULL bundle. */
bool tare_bundle_has(const struct tare_bundle *bundle, const char *key);
/* Reads a tensor and checks its checksum. Numeric tensors are views of the mapped file where alignment allows; strings
 * are copied. Sliced tensors are put together. Errors name key, file and byte. */
tare_status tare_bundle_read(struct tare_tensor *out, struct tare_bundle *bundle, const char *key) TARE_WARN_UNUSED;

struct tare_bundle_writer;
tare_status tare_bundle_writer_open(struct tare_bundle_writer **out, const char *prefix) TARE_WARN_UNUSED;
/* Appends a tensor to the data file; keys in any order, each once. */
tare_status tare_bundle_writer_add(struct tare_bundle_writer *writer, const char *key, const struct tare_tensor *tensor)
    TARE_WARN_UNUSED;
/* Writes the index and ends the writer, also on failure. */
tare_status tare_bundle_writer_close(struct tare_bundle_writer *writer) TARE_WARN_UNUSED;
void tare_bundle_writer_abort(struct tare_bundle_writer *writer);

#endif
