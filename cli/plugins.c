/* The libraries given with --plugin: one set per process, like shared libraries in general. */
#include "cli/plugins.h"
#include "interpreter/ops/builtin.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/log.h"
#include "convert/prepared_model.h"
#include "convert/saved_model.h"
#include "interpreter/plugins/plugin.h"

#include <string.h>

static struct tare_plugins *loaded; /* NULL: none */

static tare_status load_all(const struct tare_option_list *paths) {
    if (!paths->count) return TARE_OK;
    if (!loaded) loaded = tare_plugins_new(tare_ops_builtin());
    if (!loaded) return TARE_NO_MEMORY;
    for (size_t i = 0; i < paths->count; i++)
        TARE_TRY(tare_plugins_load(loaded, paths->items[i]));
    return TARE_OK;
}

tare_status tare_command_load_plugins(const void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        if (strcmp(row->name, "plugin") == 0)
            return load_all((const struct tare_option_list *)((const char *)values + walk.offset));
    return TARE_OK;
}

const struct tare_op_registry *tare_command_registry(void) {
    return loaded ? tare_plugins_ops(loaded) : tare_ops_builtin();
}

static void log_loaded(const struct tare_graph_model *model, const char *path, double seconds) {
    const struct tare_log log = tare_command_log(true);
    size_t nodes = model->main->n_nodes;
    for (size_t i = 0; i < model->n_functions; i++)
        nodes += model->functions[i]->n_nodes;
    tare_detail(&log, "loaded %s: %zu nodes, %zu functions, %zu variables, in %.3f s", path, nodes, model->n_functions,
                model->n_variables, seconds);
}

static tare_status load(struct tare_graph_model **out, const char *path, enum tare_module_platform platform) {
    const struct tare_saved_model_options options = { .ops = tare_command_registry(), .platform = platform };
    const double start = tare_clock_seconds();
    TARE_TRY(tare_saved_model_load(out, path, &options));
    log_loaded(*out, path, tare_clock_seconds() - start);
    return TARE_OK;
}

tare_status tare_command_load(struct tare_graph_model **out, const char *path) {
    return load(out, path, TARE_MODULES_FOR_TPU);
}

tare_status tare_command_load_to_run(struct tare_graph_model **out, const char *path) {
    return load(out, path, TARE_MODULES_FOR_CPU);
}

tare_status tare_command_check_values(const struct tare_graph_model *model, bool allow) {
    const struct tare_log log = tare_command_log(true);
    return tare_saved_model_check_values(model, allow, &log);
}

tare_status tare_command_load_prepared(struct tare_graph_model **out, const char *path) {
    const double start = tare_clock_seconds();
    TARE_TRY(tare_load_prepared_with(out, path, tare_command_registry()));
    log_loaded(*out, path, tare_clock_seconds() - start);
    return TARE_OK;
}

void tare_command_free_plugins(void) {
    tare_plugins_free(loaded);
    loaded = NULL;
}
