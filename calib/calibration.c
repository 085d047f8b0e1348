/* Adds to a calibration, finds in it and merges two; all lists stay sorted. */
#include "calib/calibration.h"

#include "base/alloc.h"
#include "base/strbuf.h"

#include <stdatomic.h>
#include <string.h>

struct tare_calibration *tare_calibration_new(const uint64_t fingerprint[2], const char *settings, bool channels) {
    struct tare_calibration *calibration = tare_calloc(1, sizeof *calibration);
    if (!calibration) return NULL;
    calibration->fingerprint[0] = fingerprint[0];
    calibration->fingerprint[1] = fingerprint[1];
    calibration->channels = channels;
    calibration->settings = tare_strdup(settings);
    if (!calibration->settings) {
        tare_calibration_free(calibration);
        return NULL;
    }
    return calibration;
}

static void free_tensor(struct tare_calibration_tensor *tensor) {
    if (!tensor) return;
    tare_statistics_reset(&tensor->statistics);
    tare_free(tensor->function);
    tare_free(tensor->node);
    tare_free(tensor);
}

static void free_bad(struct tare_calibration_bad *bad) {
    tare_free(bad->reason);
    tare_free(bad->text);
}

static void free_input(struct tare_calibration_input *input) {
    for (size_t i = 0; i < input->n_bad; i++)
        free_bad(&input->bad[i]);
    tare_free(input->bad);
    tare_free(input->signature);
    tare_free(input->file);
    tare_record_set_free(&input->records);
}

void tare_calibration_free(struct tare_calibration *calibration) {
    if (!calibration || atomic_fetch_sub(&calibration->shares, 1) > 0) return;
    for (size_t i = 0; i < calibration->n_inputs; i++)
        free_input(&calibration->inputs[i]);
    for (size_t i = 0; i < calibration->n_digests; i++) {
        tare_free(calibration->digests[i].signature);
        tare_digest_set_free(&calibration->digests[i].set);
    }
    for (size_t i = 0; i < calibration->n_tensors; i++)
        free_tensor(calibration->tensors[i]);
    for (size_t i = 0; i < calibration->n_functions; i++)
        tare_free(calibration->functions[i].name);
    tare_coverage_free(&calibration->coverage);
    tare_hessians_free(calibration->hessians);
    tare_free(calibration->inputs);
    tare_free(calibration->digests);
    tare_free(calibration->tensors);
    tare_free(calibration->functions);
    tare_free(calibration->settings);
    tare_free(calibration->unfinished);
    tare_free(calibration);
}

struct tare_calibration *tare_calibration_share(const struct tare_calibration *calibration) {
    struct tare_calibration *shared = (struct tare_calibration *)(uintptr_t)calibration;
    atomic_fetch_add(&shared->shares, 1);
    return shared;
}

/* ---- places in the sorted lists ---- */

static int compare_input(const struct tare_calibration *c, size_t at, const char *signature, const char *file) {
    int order = strcmp(c->inputs[at].signature, signature);
    return order != 0 ? order : strcmp(c->inputs[at].file, file);
}

static size_t input_place(const struct tare_calibration *c, const char *signature, const char *file, bool *found) {
    size_t low = 0, high = c->n_inputs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_input(c, middle, signature, file) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = low < c->n_inputs && compare_input(c, low, signature, file) == 0;
    return low;
}

static int compare_tensor(const struct tare_calibration_tensor *tensor, const char *function, const char *node,
                          int output) {
    int order = strcmp(tensor->function, function);
    if (order == 0) order = strcmp(tensor->node, node);
    return order != 0 ? order : (tensor->output > output) - (tensor->output < output);
}

static size_t tensor_place(const struct tare_calibration *c, const char *function, const char *node, int output,
                           bool *found) {
    size_t low = 0, high = c->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_tensor(c->tensors[middle], function, node, output) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = low < c->n_tensors && compare_tensor(c->tensors[low], function, node, output) == 0;
    return low;
}

static size_t function_place(const struct tare_calibration *c, const char *name, bool *found) {
    size_t low = 0, high = c->n_functions;
    const size_t next = c->next_function; /* functions are mostly asked for in their order */
    *found = next < c->n_functions && strcmp(c->functions[next].name, name) == 0;
    if (*found) return next;
    if (next && next == c->n_functions && strcmp(c->functions[next - 1].name, name) < 0) return next;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(c->functions[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = low < c->n_functions && strcmp(c->functions[low].name, name) == 0;
    return low;
}

/* ---- adding ---- */

/* Input indexes from `at` on go up by one. */
static tare_status renumber_from(struct tare_calibration *c, size_t at) {
    if (at == c->n_inputs) return TARE_OK;
    int32_t *map = tare_calloc(c->n_inputs + 1, sizeof *map);
    if (!map) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->n_inputs; i++)
        map[i] = (int32_t)(i < at ? i : i + 1);
    for (size_t i = 0; i < c->n_tensors; i++)
        tare_statistics_renumber(&c->tensors[i]->statistics, map);
    tare_free(map);
    return TARE_OK;
}

tare_status tare_calibration_add_input(struct tare_calibration *c, const char *signature, const char *file,
                                       int32_t *index) {
    bool found;
    size_t at = input_place(c, signature, file, &found);
    if (!found) {
        if (!TARE_GROW(c->inputs, c->n_inputs, c->inputs_capacity)) return TARE_NO_MEMORY;
        struct tare_calibration_input input = { .signature = tare_strdup(signature), .file = tare_strdup(file) };
        tare_status status = !input.signature || !input.file ? TARE_NO_MEMORY : renumber_from(c, at);
        if (status != TARE_OK) {
            tare_free(input.signature);
            tare_free(input.file);
            return status;
        }
        memmove(c->inputs + at + 1, c->inputs + at, (c->n_inputs - at) * sizeof *c->inputs);
        c->inputs[at] = input;
        c->n_inputs++;
    }
    if (index) *index = (int32_t)at;
    return TARE_OK;
}

/* The order of the inputs does not change. */
tare_status tare_calibration_name_inputs(struct tare_calibration *c, const char *name) {
    for (size_t i = 0; i < c->n_inputs; i++) {
        char *copy = tare_strdup(name);
        if (!copy) return TARE_NO_MEMORY;
        tare_free(c->inputs[i].file);
        c->inputs[i].file = copy;
    }
    return TARE_OK;
}

/* There are few signatures: a linear search. */
tare_status tare_calibration_add_digests(struct tare_calibration *c, const char *signature,
                                         struct tare_digest_set **out) {
    size_t at = 0;
    while (at < c->n_digests && strcmp(c->digests[at].signature, signature) < 0)
        at++;
    if (at == c->n_digests || strcmp(c->digests[at].signature, signature) != 0) {
        struct tare_calibration_digests digests = { .signature = tare_strdup(signature) };
        if (!digests.signature) return TARE_NO_MEMORY;
        if (!TARE_GROW(c->digests, c->n_digests, c->digests_capacity)) {
            tare_free(digests.signature);
            return TARE_NO_MEMORY;
        }
        memmove(c->digests + at + 1, c->digests + at, (c->n_digests - at) * sizeof *c->digests);
        c->digests[at] = digests;
        c->n_digests++;
    }
    *out = &c->digests[at].set;
    return TARE_OK;
}

const struct tare_digest_set *tare_calibration_find_digests(const struct tare_calibration *c, const char *signature) {
    for (size_t i = 0; i < c->n_digests; i++)
        if (strcmp(c->digests[i].signature, signature) == 0) return &c->digests[i].set;
    return NULL;
}

tare_status tare_calibration_add_bad(struct tare_calibration *c, int32_t input,
                                     const struct tare_calibration_bad *bad) {
    struct tare_calibration_input *in = &c->inputs[input];
    size_t at = in->n_bad;
    while (at > 0 && in->bad[at - 1].record >= bad->record)
        at--; /* they come in order */
    if (at < in->n_bad && in->bad[at].record == bad->record) return TARE_OK;
    if (!TARE_GROW(in->bad, in->n_bad, in->bad_capacity)) return TARE_NO_MEMORY;
    struct tare_calibration_bad copy = {
        .record = bad->record, .offset = bad->offset, .reason = tare_strdup(bad->reason), .text = tare_strdup(bad->text)
    };
    if (!copy.reason || !copy.text) {
        free_bad(&copy);
        return TARE_NO_MEMORY;
    }
    memmove(in->bad + at + 1, in->bad + at, (in->n_bad - at) * sizeof *in->bad);
    in->bad[at] = copy;
    in->n_bad++;
    return TARE_OK;
}

tare_status tare_calibration_add_tensor(struct tare_calibration *c, const char *function, const char *node, int output,
                                        struct tare_calibration_tensor **out) {
    bool found;
    size_t at = tensor_place(c, function, node, output, &found);
    if (!found) {
        if (!TARE_GROW(c->tensors, c->n_tensors, c->tensors_capacity)) return TARE_NO_MEMORY;
        struct tare_calibration_tensor *tensor = tare_calloc(1, sizeof *tensor);
        if (!tensor) return TARE_NO_MEMORY;
        tensor->function = tare_strdup(function);
        tensor->node = tare_strdup(node);
        tensor->output = output;
        tensor->statistics.per_channel = c->channels;
        if (!tensor->function || !tensor->node) {
            free_tensor(tensor);
            return TARE_NO_MEMORY;
        }
        memmove(c->tensors + at + 1, c->tensors + at, (c->n_tensors - at) * sizeof *c->tensors);
        c->tensors[at] = tensor;
        c->n_tensors++;
    }
    if (out) *out = c->tensors[at];
    return TARE_OK;
}

tare_status tare_calibration_rename_tensor(struct tare_calibration *c, const char *function, const char *node,
                                           int output, const char *name) {
    bool found;
    size_t at = tensor_place(c, function, node, output, &found);
    struct tare_calibration_tensor *tensor = found ? c->tensors[at] : NULL;
    char *copy = tare_strdup(name);
    if (!copy) return TARE_NO_MEMORY;
    if (tensor) {
        memmove(c->tensors + at, c->tensors + at + 1, (c->n_tensors - at - 1) * sizeof *c->tensors);
        c->n_tensors--;
        at = tensor_place(c, function, name, output, &found);
    }
    if (!tensor || *name == '\0' || found) {
        tare_free(copy);
        if (tensor) free_tensor(tensor);
        return tensor && *name != '\0' ? TARE_FAIL(TARE_INTERNAL, "%s was counted already", name) : TARE_OK;
    }
    tare_free(tensor->node);
    tensor->node = copy;
    memmove(c->tensors + at + 1, c->tensors + at, (c->n_tensors - at) * sizeof *c->tensors);
    c->tensors[at] = tensor;
    c->n_tensors++;
    return TARE_OK;
}

tare_status tare_calibration_add_function(struct tare_calibration *c, const char *name,
                                          struct tare_calibration_function **out) {
    bool found;
    size_t at = function_place(c, name, &found);
    if (!found) {
        if (!TARE_GROW(c->functions, c->n_functions, c->functions_capacity)) return TARE_NO_MEMORY;
        struct tare_calibration_function function = { .name = tare_strdup(name) };
        if (!function.name) return TARE_NO_MEMORY;
        memmove(c->functions + at + 1, c->functions + at, (c->n_functions - at) * sizeof *c->functions);
        c->functions[at] = function;
        c->n_functions++;
    }
    if (out) *out = &c->functions[at];
    c->next_function = at + 1;
    return TARE_OK;
}

/* ---- asking ---- */

int32_t tare_calibration_find_input(const struct tare_calibration *c, const char *signature, const char *file) {
    bool found;
    size_t at = input_place(c, signature, file, &found);
    return found ? (int32_t)at : -1;
}

const struct tare_calibration_tensor *tare_calibration_find(const struct tare_calibration *c, const char *function,
                                                            const char *node, int output) {
    bool found;
    size_t at = tensor_place(c, function, node, output, &found);
    return found ? c->tensors[at] : NULL;
}

const struct tare_calibration_tensor *tare_calibration_find_edge(const struct tare_calibration *c,
                                                                 struct tare_edge edge) {
    return tare_calibration_find(c, edge.node->graph->name, edge.node->name, edge.index);
}

/* ---- entries ---- */

/* "node[entry]", from the heap; NULL: no memory. */
static char *entry_name(const char *node, int64_t entry) {
    struct tare_strbuf text = { 0 };
    tare_strbuf_printf(&text, "%s[%lld]", node, (long long)entry);
    char *name = text.failed ? NULL : tare_strdup(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return name;
}

tare_status tare_calibration_add_entry(struct tare_calibration *c, const char *function, const char *node, int output,
                                       int64_t entry, struct tare_calibration_tensor **out) {
    if (entry < 0) return tare_calibration_add_tensor(c, function, node, output, out);
    char *name = entry_name(node, entry);
    const tare_status status = name ? tare_calibration_add_tensor(c, function, name, output, out) : TARE_NO_MEMORY;
    tare_free(name);
    return status;
}

const struct tare_calibration_tensor *tare_calibration_find_entry(const struct tare_calibration *c,
                                                                  struct tare_edge edge, int64_t entry) {
    if (entry < 0) return tare_calibration_find_edge(c, edge);
    char *name = entry_name(edge.node->name, entry);
    const struct tare_calibration_tensor *tensor =
        name ? tare_calibration_find(c, edge.node->graph->name, name, edge.index) : NULL;
    tare_free(name);
    return tensor;
}

int64_t tare_calibration_function_records(const struct tare_calibration *c, const char *name) {
    bool found;
    if (*name == '\0') return tare_calibration_records(c);
    size_t at = function_place(c, name, &found);
    return found ? c->functions[at].records : 0;
}

/* Of all signatures where it is NULL. */
static int64_t count_records(const struct tare_calibration *c, const char *signature) {
    int64_t records = 0;
    for (size_t i = 0; i < c->n_inputs; i++) {
        if (signature && strcmp(c->inputs[i].signature, signature) != 0) continue;
        if (!tare_add_i64(&records, records, tare_record_set_size(&c->inputs[i].records))) return INT64_MAX;
    }
    return records;
}

int64_t tare_calibration_records(const struct tare_calibration *c) {
    return count_records(c, NULL);
}

int64_t tare_calibration_signature_records(const struct tare_calibration *c, const char *signature) {
    return count_records(c, signature);
}

int64_t tare_calibration_bad_records(const struct tare_calibration *c) {
    int64_t records = 0;
    for (size_t i = 0; i < c->n_inputs; i++)
        records += (int64_t)c->inputs[i].n_bad;
    return records;
}

size_t tare_calibration_bytes(const struct tare_calibration *c) {
    size_t bytes = sizeof *c;
    for (size_t i = 0; i < c->n_digests; i++)
        bytes += c->digests[i].set.capacity * sizeof *c->digests[i].set.items;
    for (size_t i = 0; i < c->n_tensors; i++)
        bytes += tare_statistics_bytes(&c->tensors[i]->statistics);
    return bytes;
}

/* ---- merging ---- */

static tare_status check_mergeable(const struct tare_calibration *c, const struct tare_calibration *other) {
    if (c->fingerprint[0] != other->fingerprint[0] || c->fingerprint[1] != other->fingerprint[1])
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "calibrations of different models (fingerprints %016llx%016llx and %016llx%016llx)",
                         (unsigned long long)c->fingerprint[0], (unsigned long long)c->fingerprint[1],
                         (unsigned long long)other->fingerprint[0], (unsigned long long)other->fingerprint[1]);
    if (strcmp(c->settings, other->settings) != 0 || c->channels != other->channels)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "calibrations with different settings ('%s'%s and '%s'%s)", c->settings,
                         c->channels ? " with channels" : "", other->settings, other->channels ? " with channels" : "");
    if (c->unfinished || other->unfinished)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "the state of an interrupted run is not a calibration (resume it first)");
    for (size_t i = 0; i < other->n_inputs; i++) {
        const struct tare_calibration_input *input = &other->inputs[i];
        int32_t at = tare_calibration_find_input(c, input->signature, input->file);
        int64_t common = at < 0 ? -1 : tare_record_set_common(&c->inputs[at].records, &input->records);
        if (common >= 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "record %lld of '%s' is in both (is a shard given twice?)",
                             (long long)common, input->file);
    }
    return TARE_OK;
}

tare_status tare_calibration_merge(struct tare_calibration *c, const struct tare_calibration *other) {
    TARE_TRY(check_mergeable(c, other));
    for (size_t i = 0; i < other->n_inputs; i++) {
        const struct tare_calibration_input *input = &other->inputs[i];
        int32_t at;
        TARE_TRY(tare_calibration_add_input(c, input->signature, input->file, &at));
        TARE_TRY(tare_record_set_merge(&c->inputs[at].records, &input->records));
        for (size_t k = 0; k < input->n_bad; k++)
            TARE_TRY(tare_calibration_add_bad(c, at, &input->bad[k]));
    }
    for (size_t i = 0; i < other->n_digests; i++) {
        struct tare_digest_set *set;
        TARE_TRY(tare_calibration_add_digests(c, other->digests[i].signature, &set));
        TARE_TRY(tare_digest_set_merge(set, &other->digests[i].set));
    }
    int32_t *map = tare_calloc(other->n_inputs + 1, sizeof *map);
    if (!map) return TARE_NO_MEMORY;
    for (size_t i = 0; i < other->n_inputs; i++)
        map[i] = tare_calibration_find_input(c, other->inputs[i].signature, other->inputs[i].file);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < other->n_tensors; i++) {
        const struct tare_calibration_tensor *from = other->tensors[i];
        struct tare_calibration_tensor *to;
        TARE_CHECK(tare_calibration_add_tensor(c, from->function, from->node, from->output, &to));
        TARE_CHECK(tare_statistics_merge(&to->statistics, &from->statistics, map));
    }
    for (size_t i = 0; i < other->n_functions; i++) {
        struct tare_calibration_function *to;
        TARE_CHECK(tare_calibration_add_function(c, other->functions[i].name, &to));
        if (!tare_add_i64(&to->records, to->records, other->functions[i].records)) {
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "function '%s': more records than can be counted", to->name);
            goto done;
        }
    }
    status = tare_coverage_merge(&c->coverage, &other->coverage);
done:
    tare_free(map);
    return status;
}

tare_status tare_calibration_duplicate(struct tare_calibration **out, const struct tare_calibration *calibration) {
    struct tare_calibration *made =
        tare_calibration_new(calibration->fingerprint, calibration->settings, calibration->channels);
    tare_status status;
    *out = NULL;
    if (!made) return TARE_NO_MEMORY;
    status = tare_calibration_merge(made, calibration);
    if (status == TARE_OK) {
        made->hessians = tare_hessians_share(calibration->hessians); /* a merge leaves them out */
        *out = made;
    } else {
        tare_calibration_free(made);
    }
    return status;
}
