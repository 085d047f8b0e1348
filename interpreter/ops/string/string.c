/* Element-wise string ops: StringLower, StringUpper, StringStrip, StringLength, Substr, StringJoin. */
#include "base/ascii.h"
#include "interpreter/ops/string/case_mapping.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

static tare_status map_unicode_case(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const char *end = text.size ? memchr(text.data, '\0', text.size) : NULL; /* TensorFlow passes a C string to ICU */
    if (end) text.size = (size_t)(end - text.data);
    tare_case_map(out, text, *(const bool *)arg);
    return TARE_OK;
}

static tare_status map_ascii_case(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    bool upper = *(const bool *)arg;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool turn = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
        tare_strbuf_putc(out, turn ? (char)(c ^ 0x20) : c);
    }
    return TARE_OK;
}

static tare_status run_case(struct tare_kernel *kernel) {
    const char *encoding = tare_node_string(kernel->node, "encoding", "");
    bool upper = strcmp(kernel->node->op, "StringUpper") == 0;
    if (!encoding[0]) return tare_text_map(kernel, map_ascii_case, &upper);
    if (!tare_same_letters(encoding, "utf-8"))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "only utf-8 or '' (no encoding) is supported, received %s", encoding);
    return tare_text_map(kernel, map_unicode_case, &upper);
}

static tare_status map_strip(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    size_t first = 0, last = text.size;
    (void)arg;
    while (first < last && tare_is_space(text.data[first]))
        first++;
    while (last > first && tare_is_space(text.data[last - 1]))
        last--;
    tare_strbuf_append(out, text.data + first, last - first);
    return TARE_OK;
}

static tare_status run_strip(struct tare_kernel *kernel) {
    return tare_text_map(kernel, map_strip, NULL);
}

static bool counts_characters(const struct tare_node *node) {
    return strcmp(tare_node_string(node, "unit", "BYTE"), "UTF8_CHAR") == 0;
}

/* A character starts at a byte that is not a continuation byte. */
static bool begins_character(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

static tare_status run_length(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    bool characters = counts_characters(kernel->node);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &in->shape));
    for (int64_t i = 0; i < in->elements; i++) {
        struct tare_str text = tare_text_at(in, i);
        size_t count = text.size;
        if (characters) {
            count = 0;
            for (size_t k = 0; k < text.size; k++)
                count += begins_character(text.data[k]);
        }
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)count;
    }
    return TARE_OK;
}

/* ---- Substr ---- */

static tare_status infer_substr(struct tare_infer *infer) {
    struct tare_shape both;
    if (!tare_shape_compatible(&infer->inputs[1], &infer->inputs[2]))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "pos and len should have the same shape");
    TARE_TRY(tare_shape_merge(&both, &infer->inputs[1], &infer->inputs[2]));
    return tare_shape_broadcast(&infer->outputs[0], &infer->inputs[0], &both);
}

/* Advances *at by `count` characters; returns false if the text ends first (*at is then the end). */
static bool skip_forward(struct tare_str text, int64_t count, size_t *at) {
    for (; count > 0 && *at < text.size; count--)
        do
            ++*at;
        while (*at < text.size && !begins_character(text.data[*at]));
    return count <= 0;
}

static bool skip_back(struct tare_str text, int64_t count, size_t *at) {
    for (; count > 0 && *at > 0; count--)
        do
            --*at;
        while (*at > 0 && !begins_character(text.data[*at]));
    return count <= 0;
}

/* Finds the bytes of the substring; returns false if it starts outside the text. A negative position counts from the
 * end. */
static bool find_part(struct tare_str text, int64_t pos, int64_t len, bool characters, size_t *first, size_t *last) {
    if (!characters) {
        int64_t at = pos < 0 ? pos + (int64_t)text.size : pos;
        if (at < 0 || at > (int64_t)text.size) return false;
        *first = (size_t)at;
        *last = len < 0 || len > (int64_t)text.size - at ? text.size : (size_t)(at + len);
        return true;
    }
    if (pos >= 0) {
        *first = 0;
        if (!skip_forward(text, pos, first)) return false;
        *last = *first;
        skip_forward(text, len, last);
        return true;
    }
    *last = text.size;
    if (pos == INT64_MIN) return false;
    if (len < 0) len = 0;
    if (!skip_back(text, -pos > len ? -pos - len : 0, last)) return false;
    *first = *last;
    return skip_back(text, -pos > len ? len : -pos, first);
}

static tare_status run_substr(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0], *pos = &kernel->inputs[1], *len = &kernel->inputs[2];
    int64_t out_strides[TARE_MAX_RANK], in_strides[TARE_MAX_RANK], pos_strides[TARE_MAX_RANK];
    bool characters = counts_characters(kernel->node);
    const struct tare_shape *shape;
    TARE_TRY(tare_operand_output(kernel, 0));
    shape = &kernel->outputs[0].shape;
    tare_move_strides(out_strides, shape);
    tare_move_strides(in_strides, &in->shape);
    tare_move_strides(pos_strides, &pos->shape);
    for (int64_t i = 0; i < kernel->outputs[0].elements; i++) {
        int64_t source = 0, which = 0;
        size_t first, last;
        struct tare_str text;
        for (int d = 0; d < shape->rank; d++) {
            int64_t at = i / out_strides[d] % shape->dims[d];
            int a = d - shape->rank + in->shape.rank, b = d - shape->rank + pos->shape.rank;
            if (a >= 0 && in->shape.dims[a] != 1) source += at * in_strides[a];
            if (b >= 0 && pos->shape.dims[b] != 1) which += at * pos_strides[b];
        }
        text = tare_text_at(in, source);
        if (!find_part(text, tare_tensor_get_i64(pos, which), tare_tensor_get_i64(len, which), characters, &first,
                       &last))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "pos %lld out of range for string b'%.*s' at index %lld",
                             (long long)tare_tensor_get_i64(pos, which), (int)(text.size < 80 ? text.size : 80),
                             text.data, (long long)i);
        TARE_TRY(tare_tensor_set_string(&kernel->outputs[0], i, text.data + first, last - first));
    }
    return TARE_OK;
}

/* ---- joining ---- */

/* The inputs are scalars or have one common shape. */
static tare_status infer_join(struct tare_infer *infer) {
    struct tare_shape all = tare_shape_scalar();
    bool unknown = false, found = false;
    for (size_t i = 0; i < infer->n_inputs; i++) {
        struct tare_shape merged;
        char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
        if (infer->inputs[i].rank == TARE_UNKNOWN_RANK) unknown = true;
        if (infer->inputs[i].rank <= 0) continue;
        if (!found) all = infer->inputs[i];
        if (found && tare_shape_merge(&merged, &all, &infer->inputs[i]) != TARE_OK)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s", tare_shape_text(a, &all),
                             tare_shape_text(b, &infer->inputs[i]));
        if (found) all = merged;
        found = true;
    }
    infer->outputs[0] = !found && unknown ? tare_shape_unknown() : all;
    return TARE_OK;
}

static tare_status run_join(struct tare_kernel *kernel) {
    const char *separator = tare_node_string(kernel->node, "separator", "");
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_strbuf buf = { 0 };
    struct tare_shape *shapes;
    tare_status status;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    for (int64_t i = 0; i < out->elements; i++) {
        for (size_t k = 0; k < kernel->n_inputs; k++) {
            struct tare_str text = tare_text_at(&kernel->inputs[k], kernel->inputs[k].shape.rank ? i : 0);
            if (k) tare_strbuf_puts(&buf, separator);
            tare_strbuf_append(&buf, text.data, text.size);
        }
        status = tare_text_store(out, i, &buf);
        if (status != TARE_OK) {
            tare_strbuf_free(&buf);
            return status;
        }
    }
    tare_strbuf_free(&buf);
    return TARE_OK;
}

const struct tare_op tare_ops_string[] = {
    { .name = "StringJoin", .infer = infer_join, .run = run_join },
    { .name = "StringLength", .infer = tare_infer_same, .run = run_length },
    { .name = "StringLower", .infer = tare_infer_same, .run = run_case },
    { .name = "StringStrip", .infer = tare_infer_same, .run = run_strip },
    { .name = "StringUpper", .infer = tare_infer_same, .run = run_case },
    { .name = "Substr", .infer = infer_substr, .run = run_substr },
    { 0 },
};
