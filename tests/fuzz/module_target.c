/* StableHLO modules: read, summarized, printed, and imported as a model. */
#include "convert/stablehlo/artifact.h"
#include "convert/stablehlo/emit/export.h"
#include "convert/stablehlo/expand.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/summary.h"
#include "fuzz/target.h"
#include "interpreter/ops/builtin.h"

#include <stdlib.h>

static tare_status discard(void *arg, const char *text, size_t size) {
    (void)text;
    *(size_t *)arg += size;
    return TARE_OK;
}

static void print(const struct tare_shlo_module *module) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_summary summary;
    size_t printed = 0;
    const struct tare_shlo_print_options options = { .write = discard, .arg = &printed };
    if (tare_shlo_summarize(&summary, &arena, module) != TARE_OK || tare_shlo_print(module, &options) != TARE_OK)
        tare_error_clear();
    tare_arena_free(&arena);
}

static bool import(const char *path) {
    struct tare_graph_model *model;
    bool imported;
    if (tare_shlo_artifact_load(&model, path, tare_ops_builtin()) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    imported = tare_shlo_expand(model) == TARE_OK && !model->module_error;
    tare_error_clear();
    tare_model_free(model);
    return imported;
}

enum fuzz_depth fuzz_module(const uint8_t *data, size_t size) {
    struct tare_shlo_module *module;
    enum fuzz_depth depth = FUZZ_REFUSED;
    if (tare_shlo_read(&module, data, size) == TARE_OK) {
        print(module);
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
