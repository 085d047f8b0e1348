/* Writes and reads all parts of a calibration file (file_parts.h). */
#include "calib/format/file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "calib/format/file_parts.h"
#include "calib/hash.h"

#include <string.h>

static const char magic[8] = { 'T', 'A', 'R', 'E', 'C', 'A', 'L', '\n' };
enum { CHECKSUM_BYTES = 8 };

/* ---- writing ---- */

static void write_records(struct tare_wire_writer *out, const struct tare_record_set *set) {
    int64_t next = 0;
    tare_wire_put_varint(out, set->count);
    for (size_t i = 0; i < set->count; i++) {
        tare_wire_put_varint(out, (uint64_t)(set->runs[i].first - next));
        tare_wire_put_varint(out, (uint64_t)(set->runs[i].end - set->runs[i].first));
        next = set->runs[i].end;
    }
}

static void write_bad(struct tare_wire_writer *out, const struct tare_calibration_input *input) {
    int64_t next = 0;
    tare_wire_put_varint(out, input->n_bad);
    for (size_t i = 0; i < input->n_bad; i++) {
        const struct tare_calibration_bad *bad = &input->bad[i];
        tare_wire_put_varint(out, (uint64_t)(bad->record - next));
        tare_wire_put_varint(out, (uint64_t)bad->offset);
        tare_wire_put_text(out, bad->reason);
        tare_wire_put_text(out, bad->text);
        next = bad->record + 1;
    }
}

static void write_digests(struct tare_wire_writer *out, const struct tare_digest_set *set) {
    tare_wire_put_varint(out, set->count);
    for (size_t i = 0; i < set->count; i++)
        tare_wire_put_u64(out, set->items[i]);
}

static uint64_t checksum_of(const void *data, size_t size) {
    struct tare_hash hash;
    uint64_t result[2];
    tare_hash_begin(&hash);
    tare_hash_add(&hash, data, size);
    tare_hash_end(&hash, result);
    return result[0];
}

static void write_calibration(struct tare_wire_writer *out, const struct tare_calibration *c) {
    tare_wire_put(out, magic, sizeof magic);
    tare_wire_put_varint(out, TARE_CALIBRATION_VERSION);
    tare_wire_put_u64(out, c->fingerprint[0]);
    tare_wire_put_u64(out, c->fingerprint[1]);
    tare_wire_put_varint(out, (uint64_t)c->channels | (uint64_t)(c->unfinished != NULL) << 1);
    tare_wire_put_text(out, c->settings);
    if (c->unfinished) tare_wire_put_text(out, c->unfinished);
    tare_wire_put_varint(out, c->n_inputs);
    for (size_t i = 0; i < c->n_inputs; i++) {
        tare_wire_put_text(out, c->inputs[i].signature);
        tare_wire_put_text(out, c->inputs[i].file);
        write_records(out, &c->inputs[i].records);
        write_bad(out, &c->inputs[i]);
    }
    tare_wire_put_varint(out, c->n_digests);
    for (size_t i = 0; i < c->n_digests; i++) {
        tare_wire_put_text(out, c->digests[i].signature);
        write_digests(out, &c->digests[i].set);
    }
    tare_wire_put_varint(out, c->n_functions);
    for (size_t i = 0; i < c->n_functions; i++) {
        tare_wire_put_text(out, c->functions[i].name);
        tare_wire_put_varint(out, (uint64_t)c->functions[i].records);
    }
    tare_wire_put_varint(out, c->coverage.count);
    for (size_t i = 0; i < c->coverage.count; i++) {
        const struct tare_coverage_side *side = &c->coverage.sides[i];
        tare_wire_put_text(out, side->function);
        tare_wire_put_text(out, side->node);
        tare_wire_put_text(out, side->op);
        tare_wire_put_varint(out, (uint64_t)side->side);
        tare_wire_put_text(out, side->target);
        tare_wire_put_varint(out, (uint64_t)side->records);
    }
    tare_wire_put_varint(out, c->n_tensors);
    for (size_t i = 0; i < c->n_tensors; i++) {
        tare_wire_put_text(out, c->tensors[i]->function);
        tare_wire_put_text(out, c->tensors[i]->node);
        tare_wire_put_varint(out, (uint64_t)c->tensors[i]->output);
        tare_statistics_write(out, &c->tensors[i]->statistics);
    }
}

static tare_status append_to_memory(void *arg, const void *data, size_t size) {
    struct tare_strbuf *bytes = arg;
    tare_strbuf_append(bytes, data, size);
    return tare_strbuf_status(bytes);
}

tare_status tare_calibration_encode(struct tare_strbuf *out, const struct tare_calibration *calibration) {
    struct tare_wire_writer writer;
    tare_wire_begin(&writer, append_to_memory, out);
    write_calibration(&writer, calibration);
    return tare_wire_end_with_checksum(&writer);
}

static tare_status append_to_file(void *arg, const void *data, size_t size) {
    return tare_output_file_write(arg, data, size);
}

/* Ends the file. */
static tare_status save(struct tare_output_file *file, const struct tare_calibration *calibration) {
    struct tare_wire_writer writer;
    tare_wire_begin(&writer, append_to_file, file);
    write_calibration(&writer, calibration);
    tare_status status = tare_wire_end_with_checksum(&writer);
    if (status == TARE_OK) return tare_output_file_commit(file);
    tare_output_file_abort(file);
    return status;
}

tare_status tare_calibration_save(const struct tare_calibration *calibration, const char *path) {
    struct tare_output_file file;
    TARE_TRY(tare_output_file_begin(&file, path));
    return save(&file, calibration);
}

tare_status tare_calibration_save_held(const struct tare_calibration *calibration, const char *path) {
    struct tare_output_file file;
    TARE_TRY(tare_output_file_begin_held(&file, path));
    return save(&file, calibration);
}

/* ---- reading ---- */

static void keep_status(struct tare_wire_reader *in, tare_status status) {
    if (in->status == TARE_OK) in->status = status;
}

static void read_records(struct tare_wire_reader *in, struct tare_record_set *set) {
    size_t runs = tare_wire_count(in, 2);
    int64_t next = 0;
    for (size_t i = 0; i < runs && in->status == TARE_OK; i++) {
        int64_t first, end = next;
        uint64_t gap = tare_wire_varint(in, INT64_MAX), length = tare_wire_varint(in, INT64_MAX);
        bool touches = i > 0 && gap == 0; /* such runs are one */
        if (!tare_add_i64(&first, next, (int64_t)gap) || !tare_add_i64(&end, first, (int64_t)length) || length == 0 ||
            touches)
            tare_wire_fail(in, "bad record range");
        if (in->status == TARE_OK) keep_status(in, tare_record_set_add(set, first, end));
        next = end;
    }
}

static void read_bad(struct tare_wire_reader *in, struct tare_calibration *c, int32_t input) {
    size_t count = tare_wire_count(in, 4);
    int64_t next = 0;
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        struct tare_calibration_bad bad = { 0 };
        uint64_t gap = tare_wire_varint(in, INT64_MAX);
        bad.offset = (int64_t)tare_wire_varint(in, INT64_MAX);
        bad.reason = tare_wire_text(in);
        bad.text = tare_wire_text(in);
        if (!tare_add_i64(&bad.record, next, (int64_t)gap) || bad.record == INT64_MAX)
            tare_wire_fail(in, "bad record number");
        if (in->status == TARE_OK) keep_status(in, tare_calibration_add_bad(c, input, &bad));
        tare_free(bad.reason);
        tare_free(bad.text);
        if (in->status == TARE_OK) next = bad.record + 1;
    }
}

/* Fails unless the item was appended: items are sorted, without duplicates. */
static void expect_last(struct tare_wire_reader *in, size_t before, size_t after, bool is_last) {
    if (in->status == TARE_OK && (after != before + 1 || !is_last)) tare_wire_fail(in, "names out of order");
}

static void read_inputs(struct tare_wire_reader *in, struct tare_calibration *c) {
    size_t count = tare_wire_count(in, 4);
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        int32_t at = 0;
        char *signature = tare_wire_text(in), *file = tare_wire_text(in);
        if (in->status == TARE_OK) keep_status(in, tare_calibration_add_input(c, signature, file, &at));
        expect_last(in, i, c->n_inputs, (size_t)at == i);
        if (in->status == TARE_OK) read_records(in, &c->inputs[i].records);
        if (in->status == TARE_OK) read_bad(in, c, at);
        tare_free(signature);
        tare_free(file);
    }
}

/* Digests are ascending, at most one per record. */
static void read_digest_set(struct tare_wire_reader *in, struct tare_digest_set *set, int64_t records) {
    const size_t count = tare_wire_count(in, sizeof(uint64_t));
    if (count > TARE_DIGESTS_MOST || (int64_t)count > records) tare_wire_fail(in, "bad number of digests");
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        const uint64_t digest = tare_wire_u64(in);
        if (i > 0 && in->status == TARE_OK && digest <= set->items[i - 1]) tare_wire_fail(in, "digests out of order");
        if (in->status == TARE_OK) keep_status(in, tare_digest_set_add(set, digest));
    }
    tare_digest_set_finish(set);
}

static void read_digests(struct tare_wire_reader *in, struct tare_calibration *c) {
    size_t count = tare_wire_count(in, 2);
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        struct tare_digest_set *set = NULL;
        char *signature = tare_wire_text(in);
        if (in->status == TARE_OK) keep_status(in, tare_calibration_add_digests(c, signature, &set));
        expect_last(in, i, c->n_digests, in->status == TARE_OK && set == &c->digests[i].set);
        if (in->status == TARE_OK) read_digest_set(in, set, tare_calibration_signature_records(c, signature));
        tare_free(signature);
    }
}

static void read_functions(struct tare_wire_reader *in, struct tare_calibration *c) {
    size_t count = tare_wire_count(in, 2);
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        struct tare_calibration_function *function = NULL;
        char *name = tare_wire_text(in);
        int64_t records = (int64_t)tare_wire_varint(in, INT64_MAX);
        if (in->status == TARE_OK) keep_status(in, tare_calibration_add_function(c, name, &function));
        expect_last(in, i, c->n_functions, in->status == TARE_OK && function == &c->functions[i]);
        if (in->status == TARE_OK) function->records = records;
        tare_free(name);
    }
}

static void read_coverage(struct tare_wire_reader *in, struct tare_calibration *c) {
    size_t count = tare_wire_count(in, 6);
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        char *function = tare_wire_text(in), *node = tare_wire_text(in), *op = tare_wire_text(in);
        int32_t number = (int32_t)tare_wire_varint(in, INT32_MAX);
        char *target = tare_wire_text(in);
        if (in->status == TARE_OK) keep_status(in, tare_coverage_add(&c->coverage, function, node, op, number, target));
        int64_t records = (int64_t)tare_wire_varint(in, INT64_MAX);
        struct tare_coverage_side *last = in->status == TARE_OK ? &c->coverage.sides[c->coverage.count - 1] : NULL;
        bool is_last =
            last && last->side == number && strcmp(last->node, node) == 0 && strcmp(last->function, function) == 0;
        expect_last(in, i, c->coverage.count, is_last);
        if (in->status == TARE_OK) last->records = records;
        tare_free(function);
        tare_free(node);
        tare_free(op);
        tare_free(target);
    }
}

static void read_tensors(struct tare_wire_reader *in, struct tare_calibration *c) {
    size_t count = tare_wire_count(in, 3);
    for (size_t i = 0; i < count && in->status == TARE_OK; i++) {
        struct tare_calibration_tensor *tensor = NULL;
        char *function = tare_wire_text(in), *node = tare_wire_text(in);
        int output = (int)tare_wire_varint(in, INT32_MAX);
        if (in->status == TARE_OK) keep_status(in, tare_calibration_add_tensor(c, function, node, output, &tensor));
        expect_last(in, i, c->n_tensors, in->status == TARE_OK && tensor == c->tensors[i]);
        if (in->status == TARE_OK) tare_statistics_read(in, &tensor->statistics, c->n_inputs);
        tare_free(function);
        tare_free(node);
    }
}

static tare_status check_frame(const uint8_t *data, size_t size) {
    if (size < sizeof magic || memcmp(data, magic, sizeof magic) != 0)
        return TARE_FAIL(TARE_CORRUPT, "not a calibration file (it does not begin with TARECAL)");
    if (size < sizeof magic + 1 + CHECKSUM_BYTES)
        return TARE_FAIL(TARE_CORRUPT, "calibration file ends at byte %zu", size);
    if (data[sizeof magic] < 1 || data[sizeof magic] > TARE_CALIBRATION_VERSION)
        return TARE_FAIL(TARE_UNSUPPORTED, "calibration file of version %u (expected 1 to %d)", data[sizeof magic],
                         TARE_CALIBRATION_VERSION);
    struct tare_wire_reader end = { .data = data, .size = size, .offset = size - CHECKSUM_BYTES };
    uint64_t stored = tare_wire_u64(&end), expected = checksum_of(data, size - CHECKSUM_BYTES);
    if (stored != expected)
        return TARE_FAIL(TARE_CORRUPT,
                         "damaged or truncated calibration file (checksum %016llx, contents have %016llx)",
                         (unsigned long long)stored, (unsigned long long)expected);
    return TARE_OK;
}

tare_status tare_calibration_decode(struct tare_calibration **out, const void *data, size_t size) {
    *out = NULL;
    TARE_TRY(check_frame(data, size));
    struct tare_wire_reader in = { .data = data, .size = size - CHECKSUM_BYTES, .offset = sizeof magic + 1 };
    uint64_t fingerprint[2] = { tare_wire_u64(&in), 0 };
    fingerprint[1] = tare_wire_u64(&in);
    uint64_t flags = tare_wire_varint(&in, 3);
    char *settings = tare_wire_text(&in), *unfinished = flags & 2 ? tare_wire_text(&in) : NULL;
    struct tare_calibration *c = NULL;
    if (in.status == TARE_OK) {
        c = tare_calibration_new(fingerprint, settings, flags & 1);
        if (!c) in.status = TARE_NO_MEMORY;
    }
    tare_free(settings);
    if (in.status != TARE_OK) {
        tare_free(unfinished);
        return in.status;
    }
    c->unfinished = unfinished;
    read_inputs(&in, c);
    if (((const uint8_t *)data)[sizeof magic] > 1) read_digests(&in, c); /* version 1 has none */
    read_functions(&in, c);
    read_coverage(&in, c);
    read_tensors(&in, c);
    if (in.status == TARE_OK && in.offset != in.size) tare_wire_fail(&in, "more than was announced");
    if (in.status != TARE_OK) {
        tare_calibration_free(c);
        return in.status;
    }
    *out = c;
    return TARE_OK;
}

tare_status tare_calibration_load(struct tare_calibration **out, const char *path) {
    struct tare_mapping mapping = { 0 };
    *out = NULL;
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
        return TARE_FAIL(TARE_CORRUPT, "%s: this is a folder (expected a calibration file of tare calibrate)", path);
    TARE_TRY(tare_file_map(&mapping, path));
    tare_status status = tare_calibration_decode(out, mapping.data, mapping.size);
    tare_file_unmap(&mapping);
    return tare_error_prefix(status, "%s", path);
}

tare_status tare_calibration_check_model(const struct tare_calibration *c, const uint64_t fingerprint[2],
                                         const char *path) {
    if (c->unfinished)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: the state of an interrupted run is not a calibration (resume it first)", path);
    if (c->fingerprint[0] == fingerprint[0] && c->fingerprint[1] == fingerprint[1]) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "%s: this is the calibration of another model, or the model has changed since (fingerprint "
                     "%016llx%016llx, the model has %016llx%016llx)",
                     path, (unsigned long long)c->fingerprint[0], (unsigned long long)c->fingerprint[1],
                     (unsigned long long)fingerprint[0], (unsigned long long)fingerprint[1]);
}
