/* CaseFoldUTF8 and NormalizeUTF8 of the TensorFlow Text library: Unicode's normalization forms, by utf8proc, which the
 * first use loads. TensorFlow Text has tables of Unicode 16; those of utf8proc 2.8 are of Unicode 14, which lack 73
 * letters and reserved code points. Bytes that are not UTF-8 stay. */
#include "interpreter/ops/string/unicode_form.h"
#include "base/format.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/string/text.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library ---- */

/* Options of utf8proc.h. */
enum { STABLE = 1 << 1, COMPATIBLE = 1 << 2, COMPOSE = 1 << 3, DECOMPOSE = 1 << 4, IGNORE = 1 << 5, FOLD = 1 << 10 };

static struct {
    pthread_once_t once;
    ssize_t (*map)(const uint8_t *text, ssize_t size, uint8_t **mapped, int options);
    char error[256]; /* empty: loaded */
} utf8proc = { .once = PTHREAD_ONCE_INIT };

static void load(void) {
    void *library = dlopen("libutf8proc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library) *(void **)&utf8proc.map = dlsym(library, "utf8proc_map");
    if (utf8proc.map) return;
    const char *why = tare_loader_error();
    snprintf(utf8proc.error, sizeof utf8proc.error, "%s", why ? why : "libutf8proc.so.2 cannot be loaded");
}

tare_status tare_unicode_form_open(void) {
    pthread_once(&utf8proc.once, load);
    if (!*utf8proc.error) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "normalization forms need utf8proc: %s (install the package libutf8proc2)",
                     utf8proc.error);
}

/* ---- the ops ---- */

/* The size of the UTF-8 at `at`; *bad: of the bytes that are not UTF-8. */
static size_t run_of(bool *bad, struct tare_str text, size_t at) {
    const size_t first = at;
    uint32_t code;
    bool next = false;
    for (*bad = false; at < text.size; *bad = next) {
        const size_t size = tare_codepoint_read(&code, &next, TARE_ENCODING_UTF8, (const unsigned char *)text.data + at,
                                                text.size - at);
        if (at > first && next != *bad) break;
        at += size;
    }
    return at - first;
}

static tare_status map_run(struct tare_strbuf *out, const char *text, size_t size, int options) {
    uint8_t *mapped = NULL;
    const ssize_t count = utf8proc.map((const uint8_t *)text, (ssize_t)size, &mapped, options);
    if (count >= 0) tare_strbuf_append(out, (const char *)mapped, (size_t)count);
    free(mapped); /* of utf8proc, not of base/alloc.h */
    return count >= 0 ? TARE_OK : TARE_FAIL(TARE_NO_MEMORY, "a text of %zu bytes cannot be normalized", size);
}

static tare_status map(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    for (size_t at = 0, size; at < text.size; at += size) {
        bool bad;
        size = run_of(&bad, text, at);
        if (bad)
            tare_strbuf_append(out, text.data + at, size);
        else
            TARE_TRY(map_run(out, text.data + at, size, *(const int *)arg));
    }
    return TARE_OK;
}

static tare_status run_fold(struct tare_kernel *kernel) {
    static const int options = STABLE | COMPOSE | COMPATIBLE | FOLD | IGNORE; /* NFKC_Casefold */
    TARE_TRY(tare_unicode_form_open());
    return tare_text_map(kernel, map, &options);
}

static tare_status run_normalize(struct tare_kernel *kernel) {
    static const struct {
        const char *name;
        int options;
    } forms[] = { { "NFC", STABLE | COMPOSE },
                  { "NFD", STABLE | DECOMPOSE },
                  { "NFKC", STABLE | COMPOSE | COMPATIBLE },
                  { "NFKD", STABLE | DECOMPOSE | COMPATIBLE } };
    const char *name = tare_node_string(kernel->node, "normalization_form", "");
    TARE_TRY(tare_unicode_form_open());
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0) return tare_text_map(kernel, map, &forms[i].options);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "unknown normalization form '%s' (expected NFC, NFD, NFKC or NFKD)", name);
}

const struct tare_op tare_ops_unicode_form[] = {
    { .name = "CaseFoldUTF8",
      .inputs = "input: string",
      .outputs = "output: string",
      .infer = tare_infer_same,
      .run = run_fold,
      .flags = TARE_OP_ELEMENTWISE },
    { .name = "NormalizeUTF8",
      .inputs = "input: string",
      .outputs = "output: string",
      .attrs = "normalization_form: string",
      .infer = tare_infer_same,
      .run = run_normalize,
      .flags = TARE_OP_ELEMENTWISE },
    { 0 },
};
