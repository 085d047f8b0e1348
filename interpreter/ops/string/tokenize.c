/* Tokenizers of the TensorFlow Text library, which models use as custom ops. */
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/string/tokens.h"

/* The Unicode property White_Space. */
static bool is_white_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Number of bytes of the character that starts with `lead`, as far as that byte determines it. */
static size_t character_size(unsigned char lead) {
    return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Character i starts a token if its split logit exceeds its merge logit, if no token has started yet, or (force) if
 * it follows whitespace; otherwise it is appended to the current token. Whitespace belongs to no token. */
static tare_status split_by_logits(struct tare_tokens *tokens, struct tare_str text, const float *logits, int64_t most,
                                   bool force) {
    size_t begun = tokens->count;
    bool after_blank = false;
    int64_t i = 0;
    for (size_t at = 0, size; at < text.size; at += size, i++) {
        uint32_t code;
        bool bad, blank;
        size = character_size((unsigned char)text.data[at]);
        if (size > text.size - at) size = text.size - at;
        if (i >= most)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Number of logits, %lld, is insufficient for text \"%.*s\"",
                             (long long)most, (int)(text.size < 80 ? text.size : 80), text.data);
        tare_codepoint_read(&code, &bad, TARE_ENCODING_UTF8, (const unsigned char *)text.data + at, size);
        blank = is_white_space(code);
        if (!blank) {
            if (logits[2 * i] > logits[2 * i + 1] || tokens->count == begun || (after_blank && force)) {
                TARE_TRY(tare_tokens_begin(tokens, (int64_t)at, 0));
            }
            tare_tokens_append(tokens, text.data + at, size);
            tokens->items[tokens->count - 1].limit = (int64_t)(at + size);
        }
        after_blank = blank;
    }
    return tare_strbuf_status(&tokens->bytes);
}

static tare_status infer_from_logits(struct tare_infer *infer) {
    const struct tare_shape *strings = &infer->inputs[0], *logits = &infer->inputs[1];
    int64_t rows;
    TARE_TRY(tare_operand_vector(infer, 0, "strings", &rows));
    TARE_TRY(tare_operand_rank(infer, 1, "logits", 3));
    TARE_TRY(tare_operand_rank(infer, 2, "force_split_at_break_character", 0));
    if (strings->rank == 1 && logits->rank == 3 &&
        ((rows >= 0 && logits->dims[0] >= 0 && rows != logits->dims[0]) ||
         (logits->dims[2] >= 0 && logits->dims[2] != 2)))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expecting logits to have %lld rows, got %lld, of pairs",
                         (long long)rows, (long long)logits->dims[0]);
    for (int i = 0; i < 4; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    if (rows >= 0) infer->outputs[1].dims[0] = rows + 1;
    return TARE_OK;
}

static tare_status run_from_logits(struct tare_kernel *kernel) {
    const struct tare_tensor *strings = &kernel->inputs[0], *logits = &kernel->inputs[1];
    bool force = tare_tensor_get_i64(&kernel->inputs[2], 0) != 0;
    struct tare_tokens tokens = { 0 };
    struct tare_shape *shapes;
    tare_status status = TARE_OK;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT64, &shapes[1]));
    TARE_DATA(int64_t, &kernel->outputs[1])[0] = 0;
    for (int64_t i = 0; status == TARE_OK && i < strings->elements; i++) {
        int64_t most = logits->shape.dims[1];
        status = split_by_logits(&tokens, tare_text_at(strings, i), TARE_CONST_DATA(float, logits) + 2 * most * i, most,
                                 force);
        TARE_DATA(int64_t, &kernel->outputs[1])[i + 1] = (int64_t)tokens.count;
    }
    if (status == TARE_OK) status = tare_tokens_write(kernel, &tokens, 0, 2, 3);
    tare_tokens_free(&tokens);
    return status;
}

const struct tare_op tare_ops_tokenize[] = {
    { .name = "TokenizerFromLogits",
      .inputs = "strings: string, logits: float, force_split_at_break_character: bool",
      .outputs = "output_values: string, row_splits: int64, start_values: int64, limit_values: int64",
      .infer = infer_from_logits,
      .run = run_from_logits },
    { 0 },
};
