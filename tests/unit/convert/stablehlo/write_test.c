/* Writing StableHLO modules: what is read, written and read again has the same text. */
#include "support/round_trip.h"

#include "base/alloc.h"
#include "base/file.h"
#include "convert/stablehlo/exported.h"
#include "convert/stablehlo/write.h"
#include "support/mini_model.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__every_golden_module__is_read_again_with_the_same_text),
        cmocka_unit_test(write__op_that_the_version_lacks__is_refused_with_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
