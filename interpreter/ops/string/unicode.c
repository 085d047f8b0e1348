/* UnicodeDecode, UnicodeEncode and UnicodeTranscode: strings as sequences of code points. */
#include "base/alloc.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* How ill-formed input is handled. */
struct policy {
    enum tare_encoding input, output;
    bool strict, ignore, replace_control;
    bool control_is_bad; /* a control character to replace is an error where errors are strict */
    uint32_t replacement;
};

static tare_status read_policy(struct policy *policy, const struct tare_node *node) {
    const char *errors = tare_node_string(node, "errors", "replace");
    const char *input = tare_node_string(node, "input_encoding", "UTF-8");
    const char *output = tare_node_string(node, "output_encoding", "UTF-8");
    int64_t replacement = tare_node_int(node, "replacement_char", TARE_CODEPOINT_REPLACEMENT);
    if (replacement < 0 || replacement > 0x10FFFF)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "replacement_char out of unicode codepoint range");
    policy->control_is_bad = false;
    policy->replacement = (uint32_t)replacement;
    policy->strict = strcmp(errors, "strict") == 0;
    policy->ignore = strcmp(errors, "ignore") == 0;
    policy->replace_control = tare_node_bool(node, "replace_control_characters", false);
    TARE_TRY(tare_encoding_find(&policy->input, input));
    return tare_encoding_find(&policy->output, output);
}

/* Calls fn for each retained code point with the byte offset at which it starts. */
static tare_status each_codepoint(const struct policy *policy, struct tare_str text,
                                  bool (*fn)(void *arg, uint32_t code, size_t start), void *arg) {
    enum tare_encoding encoding = policy->input;
    const unsigned char *bytes = (const unsigned char *)text.data;
    size_t start = 0, at = tare_encoding_start(&encoding, bytes, text.size);
    while (at < text.size) {
        uint32_t code;
        bool bad;
        at += tare_codepoint_read(&code, &bad, encoding, bytes + at, text.size - at);
        const bool control = policy->replace_control && code <= 0x1F;
        if ((bad || (control && policy->control_is_bad)) && policy->strict)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid formatting on input string");
        if (bad || control) code = policy->ignore ? UINT32_MAX : policy->replacement;
        if (code != UINT32_MAX && !fn(arg, code, start)) return TARE_NO_MEMORY;
        start = at;
    }
    return TARE_OK;
}

struct decoded {
    struct place {
        uint32_t code;
        size_t start;
    } * items;
    size_t count, capacity;
};

static bool add_decoded(void *arg, uint32_t code, size_t start) {
    struct decoded *decoded = arg;
    if (!TARE_GROW(decoded->items, decoded->count, decoded->capacity)) return false;
    decoded->items[decoded->count++] = (struct place){ code, start };
    return true;
}

static tare_status infer_decode(struct tare_infer *infer) {
    int64_t elements;
    bool known = tare_shape_is_known(&infer->inputs[0]);
    if (known) TARE_TRY(tare_shape_elements(&elements, &infer->inputs[0]));
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    if (known) infer->outputs[0].dims[0] = elements + 1;
    return TARE_OK;
}

static tare_status write_decoded(struct tare_kernel *kernel, const struct decoded *decoded) {
    struct tare_shape shape = tare_operand_vector_shape((int64_t)decoded->count);
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT32, &shape));
    if (kernel->n_outputs > 2) TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &shape));
    for (size_t i = 0; i < decoded->count; i++) {
        TARE_DATA(int32_t, &kernel->outputs[1])[i] = (int32_t)decoded->items[i].code;
        if (kernel->n_outputs > 2) TARE_DATA(int64_t, &kernel->outputs[2])[i] = (int64_t)decoded->items[i].start;
    }
    return TARE_OK;
}

static tare_status run_decode(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct decoded decoded = { 0 };
    struct tare_shape splits = tare_operand_vector_shape(in->elements + 1);
    struct policy policy;
    tare_status status = TARE_OK;
    TARE_TRY(read_policy(&policy, kernel->node));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "Tsplits", TARE_DT_INT64), &splits));
    tare_text_set_index(&kernel->outputs[0], 0, 0);
    for (int64_t i = 0; status == TARE_OK && i < in->elements; i++) {
        status = each_codepoint(&policy, tare_text_at(in, i), add_decoded, &decoded);
        tare_text_set_index(&kernel->outputs[0], i + 1, (int64_t)decoded.count);
    }
    if (status == TARE_OK) status = write_decoded(kernel, &decoded);
    tare_free(decoded.items);
    return status;
}

static tare_status infer_encode(struct tare_infer *infer) {
    int64_t length;
    TARE_TRY(tare_operand_rank(infer, 0, "input_values", 1));
    TARE_TRY(tare_operand_vector(infer, 1, "input_splits", &length));
    if (length == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "input_splits should have at least one element");
    infer->outputs[0] = tare_operand_vector_shape(length < 0 ? -1 : length - 1);
    return TARE_OK;
}

static bool is_character(uint32_t code) {
    return code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static tare_status run_encode(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[0], *splits = &kernel->inputs[1];
    struct tare_strbuf buf = { 0 };
    struct tare_shape *shapes;
    struct policy policy;
    tare_status status = TARE_OK;
    TARE_TRY(read_policy(&policy, kernel->node));
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_text_check_splits(splits, values->elements));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    for (int64_t i = 0; status == TARE_OK && i < kernel->outputs[0].elements; i++) {
        const int64_t end = tare_tensor_get_i64(splits, i + 1);
        for (int64_t k = tare_tensor_get_i64(splits, i); k < end; k++) {
            uint32_t code = (uint32_t)TARE_CONST_DATA(int32_t, values)[k];
            if (!is_character(code)) {
                if (policy.ignore) continue;
                if (policy.strict) {
                    tare_strbuf_free(&buf);
                    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                     "Code point is out of range for Unicode, or is a surrogate.");
                }
                code = policy.replacement;
            }
            tare_codepoint_write(&buf, policy.output, code);
        }
        status = tare_text_store(&kernel->outputs[0], i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

struct transcoding {
    struct tare_strbuf *out;
    enum tare_encoding encoding;
};

static bool add_transcoded(void *arg, uint32_t code, size_t start) {
    struct transcoding *transcoding = arg;
    (void)start;
    tare_codepoint_write(transcoding->out, transcoding->encoding, code);
    return true;
}

static tare_status map_transcode(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const struct policy *policy = arg;
    struct transcoding transcoding = { out, policy->output };
    return each_codepoint(policy, text, add_transcoded, &transcoding);
}

static tare_status run_transcode(struct tare_kernel *kernel) {
    struct policy policy;
    TARE_TRY(read_policy(&policy, kernel->node));
    policy.control_is_bad = true;
    return tare_text_map(kernel, map_transcode, &policy);
}

const struct tare_op tare_ops_unicode[] = {
    { .name = "UnicodeDecode", .infer = infer_decode, .run = run_decode },
    { .name = "UnicodeDecodeWithOffsets", .infer = infer_decode, .run = run_decode },
    { .name = "UnicodeEncode", .infer = infer_encode, .run = run_encode },
    { .name = "UnicodeTranscode", .infer = tare_infer_same, .run = run_transcode },
    { 0 },
};
