/* Writing StableHLO modules: what is read, written and read again has the same text, and memory may run out. */
#include "support/round_trip.h"

#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "convert/stablehlo/emit/export.h"
#include "convert/stablehlo/exported.h"
#include "convert/stablehlo/write.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const char folder[] = TARE_SOURCE_DIR "/tests/golden/stablehlo";

/* NULL for those that are damaged on purpose. */
static struct tare_shlo_module *read_golden(char **data, const char *name) {
    struct tare_shlo_exported exported = { 0 };
    struct tare_shlo_module *module;
    char path[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mini_ok(tare_file_read(data, &size, path));
    const bool wrapped = tare_shlo_exported_find(&exported, (const uint8_t *)*data, size);
    const uint8_t *file = wrapped ? exported.module : (const uint8_t *)*data;
    if (tare_shlo_read(&module, file, wrapped ? exported.size : size) != TARE_OK) tare_error_clear();
    return module;
}

static bool has_suffix(const char *name, const char *suffix) {
    const size_t size = strlen(name), length = strlen(suffix);
    return size > length && strcmp(name + size - length, suffix) == 0;
}

static void write__every_golden_module__is_read_again_with_the_same_text(void **state) {
    DIR *files = opendir(folder);
    size_t count = 0, refused_count = 0;
    (void)state;
    assert_non_null(files);
    for (const struct dirent *file; (file = readdir(files));) {
        char *data;
        bool refused;
        if (!has_suffix(file->d_name, ".mlirbc") && !has_suffix(file->d_name, ".jaxexport")) continue;
        struct tare_shlo_module *module = read_golden(&data, file->d_name);
        if (module) {
            if (!round_trip_is_equal(&refused, module, file->d_name) && !refused) fail_msg("%s differs", file->d_name);
            refused_count += refused;
            count++;
        }
        tare_shlo_free(module);
        tare_free(data);
    }
    closedir(files);
    print_message("%zu modules, %zu not written\n", count, refused_count);
    assert_true(count > 20 && refused_count * 5 < count);
}

static void write__op_that_the_version_lacks__is_refused_with_its_name(void **state) {
    char *data;
    struct tare_shlo_module *module = read_golden(&data, "network.mlirbc");
    struct tare_strbuf file = { 0 };
    (void)state;
    assert_int_equal(tare_shlo_write(&file, module, TARE_VHLO_VERSION(0, 8, 0)), TARE_UNSUPPORTED);
    if (!strstr(tare_error_text(), "op vhlo.") || !strstr(tare_error_text(), ": not in VHLO 0.8.0"))
        fail_msg("text: %s", tare_error_text());
    tare_error_clear();
    tare_strbuf_free(&file);
    tare_shlo_free(module);
    tare_free(data);
}

/* A graph with more nodes than a block of an arena has room for, so that its table is an allocation of its own. */
static struct tare_graph_model *make_chain(void) {
    static struct tare_signature signature = {
        .key = "serving_default", .method_name = "tensorflow/serving/predict", .n_inputs = 1, .n_outputs = 1
    };
    static struct tare_binding input = { .key = "x", .dtype = TARE_DT_FLOAT, .shape = { .rank = 1, .dims = { 4 } } },
                               output = { .key = "y", .dtype = TARE_DT_FLOAT, .shape = { .rank = 1, .dims = { 4 } } };
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge value = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    input.edge = value;
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "relu_%d", i);
        value = mini_node(model->main, "Relu", name, 1, value);
    }
    output.edge = value;
    signature.inputs = &input;
    signature.outputs = &output;
    model->signatures = &signature;
    model->n_signatures = 1;
    return model;
}

static tare_status export_chain(int64_t failing, int64_t *allocations) {
    const struct tare_shlo_export_options options = { .batch = 1, .vhlo_version = TARE_SHLO_EXPORT_VERSION };
    struct tare_shlo_exported_summary summary = { 0 };
    struct tare_graph_model *model = make_chain();
    struct tare_control control = { 0 }; /* as in a command: a file is moved to its place if no allocation failed */
    tare_control_set(&control);
    tare_alloc_fail_at(failing);
    const tare_status status = tare_shlo_export_model(&summary, model, temp_path("chain.mlirbc"), &options);
    *allocations = tare_alloc_count();
    tare_alloc_fail_at(0);
    tare_control_set(NULL);
    tare_model_free(model);
    return status;
}

/* Each of the first allocations, and some of the others: an error, or the same file where it only saved time. */
static void export__without_memory__is_an_error(void **state) {
    enum { SAMPLES = 50 };
    const char *path = temp_path("chain.mlirbc");
    char *expected, *got;
    size_t size, got_size;
    int64_t allocations, unused, errors = 0;
    (void)state;
    mini_ok(export_chain(0, &allocations));
    mini_ok(tare_file_read(&expected, &size, path));
    for (int64_t n = 1; n <= allocations; n += n < 100 ? 1 : allocations / SAMPLES + 1) {
        if (export_chain(n, &unused) != TARE_OK) {
            errors++;
            continue;
        }
        mini_ok(tare_file_read(&got, &got_size, path));
        if (got_size != size || memcmp(got, expected, size) != 0)
            fail_msg("allocation %lld: another file", (long long)n);
        tare_free(got);
    }
    assert_true(errors >= 99);
    tare_error_clear();
    tare_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__every_golden_module__is_read_again_with_the_same_text),
        cmocka_unit_test(export__without_memory__is_an_error),
        cmocka_unit_test(write__op_that_the_version_lacks__is_refused_with_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
