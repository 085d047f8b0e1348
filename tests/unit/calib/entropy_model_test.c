/* Algorithm entropy on mobilenet_vww with few samples: sparsely observed tensors must not be clipped without evidence.
 * The images are smooth random fields with the value range of the model's input. */
#include "calib/algorithm.h"
#include "calib/quantization_error.h"
#include "calib/bins.h"
#include "base/alloc.h"
#include "convert/prepared_model.h"
#include "datasets/tfrecord.h"
#include "eval/model_inputs.h"
#include "quant/quantize.h"
#include "workflow/calibrate.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/models.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 96, CHANNELS = 3, WAVES = 6 };

static void draw_image(float *x, uint64_t *seed) {
    double wave[CHANNELS][WAVES][3];
    for (int c = 0; c < CHANNELS; c++)
        for (int w = 0; w < WAVES; w++)
            for (int k = 0; k < 3; k++)
                wave[c][w][k] = draw_unit(seed);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int c = 0; c < CHANNELS; c++) {
                double sum = 0;
                for (int w = 0; w < WAVES; w++)
                    sum += sin(0.3 * wave[c][w][0] * i + 0.3 * wave[c][w][1] * j + 6.3 * wave[c][w][2]);
                *x++ = (float)fmin(1, fmax(0, 0.5 + 0.2 * sum));
            }
}

static const char *write_samples(const char *key, int count) {
    static float x[SIDE * SIDE * CHANNELS];
    const struct tare_shape shape = tare_shape_make(4, (int64_t)1, (int64_t)SIDE, (int64_t)SIDE, (int64_t)CHANNELS);
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("images.tfrecord");
    uint64_t seed = 17;
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int r = 0; r < count; r++) {
        draw_image(x, &seed);
        write_float_sample(writer, key, &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

static double sqnr_of(const char *algorithm, const struct tare_statistics *statistics, const struct tare_bins *bins) {
    struct tare_algorithm_choice choice;
    struct tare_range range;
    mini_ok(tare_algorithm_parse(&choice, algorithm));
    mini_ok(tare_algorithm_range_of_bins(&range, &choice, statistics, bins, &tare_qscheme_activation));
    return tare_range_quality_of(&range, bins, &tare_qscheme_activation).sqnr_db;
}

static void entropy__is_not_worse_than_min_max_on_any_tensor(void **state) {
    const int counts[] = { 8, 32, 128 };
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct tare_calibration *calibration;
        struct tare_graph_model *model;
        const struct tare_signature *signature;
        mini_ok(tare_load_prepared(&model, models_path("mobilenet_vww")));
        mini_ok(tare_pick_signature(&signature, model, NULL));
        const char *path = write_samples(signature->inputs[0].key, counts[i]);
        const struct tare_calibrate_options options = { .data = &path, .n_data = 1 };
        mini_ok(tare_workflow_calibrate(&calibration, model, &options));
        assert_true(calibration->n_tensors > 20);
        for (size_t t = 0; t < calibration->n_tensors; t++) {
            const struct tare_calibration_tensor *tensor = calibration->tensors[t];
            struct tare_bins bins;
            mini_ok(tare_bins_make(&bins, &tensor->statistics));
            const double entropy = sqnr_of("entropy", &tensor->statistics, &bins);
            const double min_max = sqnr_of("min_max", &tensor->statistics, &bins);
            if (entropy < min_max - 1e-6)
                fail_msg("%d records, %s: entropy %.1f dB, min_max %.1f dB", counts[i], tensor->node, entropy, min_max);
            tare_bins_free(&bins);
        }
        tare_calibration_free(calibration);
        tare_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entropy__is_not_worse_than_min_max_on_any_tensor),
    };
    if (!test_data("models/mobilenet_vww")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
