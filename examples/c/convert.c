/* Calibrates a SavedModel, quantizes and converts it for the TPU, and prints the first output of both models.
 *
 *     cc convert.c $(pkg-config --cflags --libs tare) -o convert
 *     ./convert MODEL SAMPLES.tfrecord.gz OUT */
#include <stdio.h>
#include <stdlib.h>
#include <tare/tare.h>

/* Every failure has an error text for a person. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != TARE_OK) {                                                                                       \
            fprintf(stderr, "convert: %s\n", tare_error_text());                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char options[] = "tpu_functions { function_alias: \"tpu_func\" } "
                              "external_feature_configs { quantization_options { } }";

static void print_log(void *arg, enum tare_log_level level, const char *text) {
    fprintf((FILE *)arg, "%s%s\n", level == TARE_LOG_WARNING ? "warning: " : "", text);
}

/* The first element of the first output for the first record. */
static float first_output(const tare_model *model, const char *samples) {
    const tare_array *inputs, *outputs;
    tare_reader *reader;
    tare_runner *runner;
    size_t n_inputs, n_outputs;
    float value;
    CHECK(tare_reader_open(&reader, NULL, &samples, 1, NULL));
    CHECK(tare_reader_next(reader, &inputs, &n_inputs));
    CHECK(tare_runner_open(&runner, model, NULL));
    CHECK(tare_runner_run(runner, inputs, n_inputs, &outputs, &n_outputs));
    value = n_outputs && outputs[0].dtype == TARE_DTYPE_FLOAT ? ((const float *)outputs[0].data)[0] : 0;
    tare_runner_close(runner);
    tare_reader_close(reader);
    return value;
}

int main(int argc, char **argv) {
    tare_context *context;
    tare_model *model, *converted;
    tare_calibration *calibration;
    char *report;
    if (argc != 4) return fprintf(stderr, "usage: convert MODEL SAMPLES OUT\n"), 2;
    CHECK(tare_context_open(&context));
    tare_context_on_log(context, TARE_LOG_NOTE, print_log, stderr);
    CHECK(tare_model_open(&model, context, argv[1]));
    CHECK(tare_model_calibrate(&calibration, model, (const char *const *)&argv[2], 1, NULL));
    CHECK(tare_model_convert(&converted, &report, model, options, calibration, 0));
    CHECK(tare_model_write(converted, argv[3], TARE_WRITE_OVERWRITE));
    printf("%s\n", report);
    fprintf(stderr, "%lld records; first output %g, converted %g\n",
            (long long)tare_calibration_record_count(calibration), first_output(model, argv[2]),
            first_output(converted, argv[2]));
    tare_text_free(report);
    tare_model_close(converted);
    tare_calibration_close(calibration);
    tare_model_close(model);
    tare_context_close(context);
    return 0;
}
