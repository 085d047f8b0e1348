/* StringFormat, StringNGrams, EncodeBase64 and DecodeBase64. */
#include "interpreter/ops/string/summary.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* ---- StringFormat ---- */

/* Where the next placeholder begins. An empty one is between each two bytes. */
static const char *find_placeholder(const char *template, const char *placeholder) {
    if (*placeholder) return strstr(template, placeholder);
    return template[0] && template[1] ? template + 1 : NULL;
}

static tare_status run_format(struct tare_kernel *kernel) {
    const char *template = tare_node_string(kernel->node, "template", "%s");
    const char *placeholder = tare_node_string(kernel->node, "placeholder", "%s"), *found;
    const int64_t summarize = tare_node_int(kernel->node, "summarize", 3);
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_strbuf buf = { 0 };
    size_t used = 0, length = strlen(placeholder);
    tare_status status;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &scalar));
    for (; (found = find_placeholder(template, placeholder)); template = found + length) {
        tare_strbuf_append(&buf, template, (size_t)(found - template));
        if (used < kernel->n_inputs) tare_summarize_edges(&buf, &kernel->inputs[used], summarize);
        used++;
    }
    tare_strbuf_puts(&buf, template);
    status = used == kernel->n_inputs ? tare_text_store(&kernel->outputs[0], 0, &buf)
                                      : TARE_FAIL(TARE_INVALID_ARGUMENT,
                                                  "num placeholders in template and num inputs "
                                                  "must match: %zu vs. %zu",
                                                  used, kernel->n_inputs);
    tare_strbuf_free(&buf);
    return status;
}

/* ---- StringNGrams ---- */

struct ngrams {
    const struct tare_tensor *data;
    const struct tare_attr *widths;
    struct tare_str separator, left, right;
    int64_t pad_width;
    bool keep_short;
};

static struct tare_str text_attr(const struct tare_node *node, const char *name) {
    const char *text = tare_node_string(node, name, "");
    return (struct tare_str){ text, strlen(text) };
}

static int64_t padding_of(const struct ngrams *how, int64_t width) {
    return how->pad_width < 0 || how->pad_width > width - 1 ? width - 1 : how->pad_width;
}

/* If all rows are empty there are no n-grams, not even of padding, as in TensorFlow. */
static int64_t count_ngrams(const struct ngrams *how, int64_t length, int64_t width) {
    if (how->data->elements == 0) return 0;
    int64_t count = length + 2 * padding_of(how, width) - width + 1;
    return count > 0 ? count : 0;
}

/* Piece k of n-gram `gram` of a row whose tokens start at `first`: left padding, tokens, right padding. */
static struct tare_str piece(const struct ngrams *how, int64_t first, int64_t length, int64_t at) {
    if (at < 0) return how->left;
    if (at >= length) return how->right;
    return tare_text_at(how->data, first + at);
}

static tare_status write_grams(struct tare_tensor *out, int64_t *at, const struct ngrams *how, struct tare_strbuf *buf,
                               int64_t first, int64_t length, int64_t width) {
    int64_t padding = padding_of(how, width), count = count_ngrams(how, length, width);
    for (int64_t gram = 0; gram < count; gram++) {
        for (int64_t k = 0; k < width; k++) {
            struct tare_str text = piece(how, first, length, gram + k - padding);
            if (k) tare_strbuf_append(buf, how->separator.data, how->separator.size);
            tare_strbuf_append(buf, text.data, text.size);
        }
        TARE_TRY(tare_text_store(out, (*at)++, buf));
    }
    return TARE_OK;
}

static tare_status infer_ngrams(struct tare_infer *infer) {
    int64_t length;
    TARE_TRY(tare_operand_rank(infer, 0, "data", 1));
    TARE_TRY(tare_operand_vector(infer, 1, "data_splits", &length));
    infer->outputs[0] = tare_operand_vector_shape(-1);
    infer->outputs[1] = tare_operand_vector_shape(length);
    return TARE_OK;
}

static int64_t row_grams(const struct ngrams *how, int64_t length) {
    int64_t count = 0;
    for (size_t w = 0; w < how->widths->count; w++)
        count += count_ngrams(how, length, how->widths->items[w].i);
    return count == 0 && how->keep_short && length > 0 ? 1 : count;
}

static tare_status fill_grams(struct tare_kernel *kernel, const struct ngrams *how, struct tare_strbuf *buf) {
    const struct tare_tensor *splits = &kernel->inputs[1];
    int64_t at = 0;
    for (int64_t row = 0; row + 1 < splits->elements; row++) {
        int64_t first = tare_tensor_get_i64(splits, row), length = tare_tensor_get_i64(splits, row + 1) - first;
        int64_t before = at;
        for (size_t w = 0; w < how->widths->count; w++)
            TARE_TRY(write_grams(&kernel->outputs[0], &at, how, buf, first, length, how->widths->items[w].i));
        if (at == before && how->keep_short && length > 0) {
            if (how->pad_width < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Pad width should be >= 0");
            TARE_TRY(write_grams(&kernel->outputs[0], &at, how, buf, first, length, length + 2 * how->pad_width));
        }
    }
    return TARE_OK;
}

static tare_status run_ngrams(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const struct tare_tensor *splits = &kernel->inputs[1];
    struct ngrams how = { &kernel->inputs[0],
                          tare_node_list(node, "ngram_widths"),
                          text_attr(node, "separator"),
                          text_attr(node, "left_pad"),
                          text_attr(node, "right_pad"),
                          tare_node_int(node, "pad_width", 0),
                          tare_node_bool(node, "preserve_short_sequences", false) };
    struct tare_strbuf buf = { 0 };
    struct tare_shape *shapes;
    int64_t total = 0;
    tare_status status;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (splits->elements) TARE_TRY(tare_text_check_splits(splits, how.data->elements));
    if (how.pad_width > 1 << 20) return TARE_FAIL(TARE_INVALID_ARGUMENT, "pad_width is too large");
    for (size_t w = 0; w < how.widths->count; w++)
        if (how.widths->items[w].i < 1 || how.widths->items[w].i > 1 << 20)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "ngram_widths must contain positive values");
    TARE_TRY(tare_kernel_output(kernel, 1, splits->dtype, &shapes[1]));
    /* TensorFlow's n-grams of no rows: empty ones, as many as there are tokens. */
    if (splits->elements == 0) return tare_kernel_output(kernel, 0, TARE_DT_STRING, &how.data->shape);
    tare_text_set_index(&kernel->outputs[1], 0, 0);
    for (int64_t row = 0; row + 1 < splits->elements; row++) {
        total += row_grams(&how, tare_tensor_get_i64(splits, row + 1) - tare_tensor_get_i64(splits, row));
        tare_text_set_index(&kernel->outputs[1], row + 1, total);
    }
    shapes[0].dims[0] = total;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    status = fill_grams(kernel, &how, &buf);
    tare_strbuf_free(&buf);
    return status;
}

/* ---- base64 with the URL-safe alphabet ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static tare_status encode(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const unsigned char *s = (const unsigned char *)text.data;
    for (size_t i = 0; i < text.size; i += 3) {
        size_t left = text.size - i;
        uint32_t bits = (uint32_t)s[i] << 16 | (left > 1 ? (uint32_t)s[i + 1] << 8 : 0) | (left > 2 ? s[i + 2] : 0);
        for (size_t k = 0; k < 4; k++) {
            if (k <= left)
                tare_strbuf_putc(out, alphabet[bits >> (18 - 6 * k) & 63]);
            else if (*(const bool *)arg)
                tare_strbuf_putc(out, '=');
        }
    }
    return TARE_OK;
}

static tare_status decode(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    size_t size = text.size;
    uint32_t bits = 0;
    int held = 0;
    (void)arg;
    while (size > 0 && text.size - size < 2 && text.data[size - 1] == '=')
        size--;
    if (size != text.size && text.size % 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid padding or length of base64 data");
    if (size % 4 == 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Base64 string length cannot be 1 modulo 4");
    for (size_t i = 0; i < size; i++) {
        const char *found = text.data[i] ? strchr(alphabet, text.data[i]) : NULL;
        if (!found) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid character found in base64.");
        bits = bits << 6 | (uint32_t)(found - alphabet);
        held += 6;
        if (held >= 8) {
            held -= 8;
            tare_strbuf_putc(out, (char)(bits >> held));
        }
    }
    return TARE_OK;
}

static tare_status run_encode(struct tare_kernel *kernel) {
    bool pad = tare_node_bool(kernel->node, "pad", false);
    return tare_text_map(kernel, encode, &pad);
}

static tare_status run_decode(struct tare_kernel *kernel) {
    return tare_text_map(kernel, decode, NULL);
}

const struct tare_op tare_ops_string_format[] = {
    { .name = "DecodeBase64", .infer = tare_infer_same, .run = run_decode },
    { .name = "EncodeBase64", .infer = tare_infer_same, .run = run_encode },
    { .name = "StringFormat", .infer = tare_infer_scalar, .run = run_format },
    { .name = "StringNGrams", .infer = infer_ngrams, .run = run_ngrams },
    { 0 },
};
