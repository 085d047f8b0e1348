/* StableHLO modules: read, summarized, printed, written, read again with the same text, and imported as a model. */
#include "convert/stablehlo/artifact.h"
#include "convert/stablehlo/emit/export.h"
#include "convert/stablehlo/expand.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/summary.h"
#include "convert/stablehlo/write.h"
#include "fuzz/target.h"
#include "interpreter/ops/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tare_status append(void *arg, const char *text, size_t size) {
    tare_strbuf_append(arg, text, size);
    return TARE_OK;
}

/* Empty text: it cannot be printed. */
static void print(struct tare_strbuf *text, const struct tare_shlo_module *module) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_summary summary;
    const struct tare_shlo_print_options options = { .max_elements = 1024, .write = append, .arg = text };
    if (tare_shlo_summarize(&summary, &arena, module) != TARE_OK || tare_shlo_print(module, &options) != TARE_OK) {
        tare_error_clear();
        tare_strbuf_free(text);
    }
    tare_arena_free(&arena);
}

/* What is written has the text of what was read. */
static void write_again(const struct tare_shlo_module *module, const struct tare_strbuf *text) {
    struct tare_strbuf file = { 0 }, other = { 0 };
    struct tare_shlo_module *again = NULL;
    if (tare_shlo_write(&file, module, module->version) == TARE_OK) {
        if (tare_shlo_read(&again, (const uint8_t *)file.data, file.size) != TARE_OK) {
            printf("what was written is not read: %s\n", tare_error_text());
            abort();
        }
        print(&other, again);
        if (strcmp(tare_strbuf_text(text), tare_strbuf_text(&other)) != 0) {
            size_t same = 0;
            while (text->data && other.data && text->data[same] == other.data[same])
                same++;
            printf("written and read again: '%.60s' became '%.60s'\n", text->data ? text->data + same : "",
                   other.data ? other.data + same : "");
            abort();
        }
    }
    tare_error_clear();
    tare_shlo_free(again);
    tare_strbuf_free(&file);
    tare_strbuf_free(&other);
}

static bool import(const char *path) {
    struct tare_graph_model *model;
    bool imported;
    if (tare_shlo_artifact_load(&model, path, tare_ops_builtin()) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    imported = tare_shlo_expand(model, TARE_MODULES_FOR_TPU) == TARE_OK && !model->module_error;
    tare_error_clear();
    tare_model_free(model);
    return imported;
}

enum fuzz_depth fuzz_module(const uint8_t *data, size_t size) {
    struct tare_shlo_module *module;
    enum fuzz_depth depth = FUZZ_REFUSED;
    if (tare_shlo_read(&module, data, size) == TARE_OK) {
        struct tare_strbuf text = { 0 };
        print(&text, module);
        write_again(module, &text);
        tare_strbuf_free(&text);
        tare_shlo_free(module);
        depth = FUZZ_READ;
    }
    tare_error_clear();
    return import(fuzz_file("module", data, size)) ? FUZZ_USED : depth;
}

/* A module that was exported can be imported. */
enum fuzz_depth fuzz_export(const uint8_t *data, size_t size) {
    static const struct tare_shlo_export_options options = { .batch = 1, .vhlo_version = TARE_SHLO_EXPORT_VERSION };
    struct tare_shlo_exported_summary summary;
    const char *given = fuzz_file("module", data, size), *again = fuzz_path("exported");
    const tare_status status = tare_shlo_export(&summary, given, again, &options);
    tare_error_clear();
    if (status != TARE_OK) return FUZZ_REFUSED;
    if (!import(again)) abort();
    return FUZZ_USED;
}
