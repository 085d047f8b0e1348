/* Results of tokenizers (tokens.h). */
#include "interpreter/ops/string/tokens.h"
#include "base/alloc.h"
#include "interpreter/ops/support/operand.h"

tare_status tare_tokens_begin(struct tare_tokens *tokens, int64_t start, int64_t limit) {
    if (!TARE_GROW(tokens->items, tokens->count, tokens->capacity)) return TARE_NO_MEMORY;
    tokens->items[tokens->count++] = (struct tare_token){ start, limit, tokens->bytes.size, 0 };
    return TARE_OK;
}

void tare_tokens_append(struct tare_tokens *tokens, const char *text, size_t size) {
    tare_strbuf_append(&tokens->bytes, text, size);
    tokens->items[tokens->count - 1].size += size;
}

tare_status tare_tokens_write(struct tare_kernel *kernel, const struct tare_tokens *tokens, size_t texts, size_t starts,
                              size_t limits) {
    struct tare_shape shape = tare_operand_vector_shape((int64_t)tokens->count);
    TARE_TRY(tare_strbuf_status(&tokens->bytes));
    TARE_TRY(tare_kernel_output(kernel, texts, TARE_DT_STRING, &shape));
    TARE_TRY(tare_kernel_output(kernel, starts, TARE_DT_INT64, &shape));
    TARE_TRY(tare_kernel_output(kernel, limits, TARE_DT_INT64, &shape));
    for (size_t i = 0; i < tokens->count; i++) {
        const struct tare_token *token = &tokens->items[i];
        TARE_TRY(tare_tensor_set_string(&kernel->outputs[texts], (int64_t)i,
                                        tare_strbuf_text(&tokens->bytes) + token->first, token->size));
        TARE_DATA(int64_t, &kernel->outputs[starts])[i] = token->start;
        TARE_DATA(int64_t, &kernel->outputs[limits])[i] = token->limit;
    }
    return TARE_OK;
}

void tare_tokens_free(struct tare_tokens *tokens) {
    tare_free(tokens->items);
    tare_strbuf_free(&tokens->bytes);
}
