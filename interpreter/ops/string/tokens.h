/* Results of tokenizers: strings with the range of bytes that each is from. */
#ifndef TARE_INTERPRETER_OPS_STRING_TOKENS_H
#define TARE_INTERPRETER_OPS_STRING_TOKENS_H

#include "base/strbuf.h"
#include "interpreter/kernel.h"

/* Tokens collected before the outputs are allocated. */
struct tare_tokens {
    struct tare_token {
        int64_t start, limit; /* byte range in the string */
        size_t first, size;   /* range in `bytes` */
    } * items;
    size_t count, capacity;
    struct tare_strbuf bytes;
};

/* Appends a token without text; text is appended to `bytes`, and to the size of the last token. */
tare_status tare_tokens_begin(struct tare_tokens *tokens, int64_t start, int64_t limit) TARE_WARN_UNUSED;
void tare_tokens_append(struct tare_tokens *tokens, const char *text, size_t size);
/* Writes the texts, starts and limits to three outputs. */
tare_status tare_tokens_write(struct tare_kernel *kernel, const struct tare_tokens *tokens, size_t texts, size_t starts,
                              size_t limits) TARE_WARN_UNUSED;
void tare_tokens_free(struct tare_tokens *tokens);

#endif
