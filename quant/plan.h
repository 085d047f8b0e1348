/* A plan: how a model is quantized. There is one struct for it, struct tare_quant_plan, and one table of options, which
 * fills it from every source:
 *
 *   command line            the rows of tare_plan_rows, in quantize, convert and compare (without those that a
 *                           comparison varies); batch runs these commands
 *   libtare, Python         the same rows, as "name=value" text and as keyword arguments
 *   recipe                  its lines "name=value" are the same options; its rules are settings of single layers, the
 *                           rows of tare_quant_setting_rows (quant/recipe.h)
 *   a method of compare     "weight_only:bits=4:block=32+gptq": the same settings (eval/variant.h)
 *   QuantizationOptions     override the plan of the command (convert/options.h)
 *   --auto, a target        set algorithm, passes and rules of a plan (workflow/plan_search.h)
 *
 * tare_quant_plan_open resolves the texts of a filled plan. tare_pipeline_quantize (convert/pipeline.h) then builds the
 * quantized model; every command that makes one calls it. tare_quant_plan_put writes a plan as options of a command,
 * and tare_quant_plan_write as a recipe: both have everything that is not the default, so that they build the same
 * model.
 *
 * A new option is a member and a row here, and the code that uses it. */
#ifndef TARE_QUANT_PLAN_H
#define TARE_QUANT_PLAN_H

#include "base/arena.h"
#include "base/option.h"
#include "calib/algorithm.h"
#include "calib/qparams.h"
#include "quant/method.h"

struct tare_quant_recipe;       /* quant/recipe.h */
struct tare_quant_pass;         /* quant/pass.h */
struct tare_quant_weight_store; /* quant/weight_store.h */
struct tare_tensor;
struct tare_strbuf;

/* Names of methods with their settings, of struct tare_quant_setting: PRESET(name, method, settings). */
#define TARE_QUANT_PRESETS(PRESET)                                                                                     \
    PRESET("int8", tare_method_static, .bits = 8)                                                                      \
    PRESET("w8a8", tare_method_static, .bits = 8)                                                                      \
    PRESET("w8a16", tare_method_static, .bits = 8, .activation_bits = 16)                                              \
    PRESET("w4a8", tare_method_static, .bits = 4)                                                                      \
    PRESET("int8_dynamic", tare_method_dynamic, .bits = 8)                                                             \
    PRESET("int8_weight_only", tare_method_weight_only, .bits = 8)                                                     \
    PRESET("int4", tare_method_weight_only, .bits = 4, .block = 64)                                                    \
    PRESET("fp8", tare_method_static, .format = TARE_FORMAT_E4M3)                                                      \
    PRESET("fp8_dynamic", tare_method_dynamic, .format = TARE_FORMAT_E4M3)                                             \
    PRESET("fp8_weight_only", tare_method_weight_only, .format = TARE_FORMAT_E4M3)
#define TARE_QUANT_PRESET_WORD(name, ...) name,
/* Everything that --method takes, as items of an array. */
#define TARE_QUANT_METHOD_WORDS "float", "static", "dynamic", "weight_only", TARE_QUANT_PRESETS(TARE_QUANT_PRESET_WORD)

enum tare_quant_granularity { TARE_PER_CHANNEL, TARE_PER_TENSOR, TARE_PER_BLOCK };
/* For completion, with common sizes of blocks; terminated by NULL. */
extern const char *const tare_quant_granularity_names[];
/* Where none is given: per channel; per tensor in UNIFORM_QUANTIZED, as in TensorFlow, whose compiler does not support
 * more scales in products of matrices, biases and activations. */
enum tare_quant_granularity tare_quant_default_granularity(enum tare_quant_op_set op_set);

/* How one layer is quantized. */
struct tare_quant_setting {
    const struct tare_quant_method *method; /* NULL: it stays float */
    int bits;                               /* of weights: 8 (also 0) or 4 */
    enum tare_number_format format;         /* of weights and of activations that are quantized */
    enum tare_quant_granularity granularity;
    int64_t block;       /* rows that share a scale, with TARE_PER_BLOCK: 32, 64, 128 or 256 */
    bool full_range;     /* weights may use -128 (-8) */
    bool symmetric;      /* activations: symmetric ranges */
    int activation_bits; /* 8 or 16, which is symmetric in [-32767, 32767] whatever `symmetric` is; 0: 8, and 16 for
                            static layers of the op set XLA whose output int8 would make too noisy */
    int headroom;        /* of activations of 16 bits (calib/qparams.h); set with them, never given */
    struct tare_algorithm_choice algorithm; /* chooses activation ranges; row NULL: min_max */
    uint64_t given;                         /* bit i: row i of tare_quant_setting_rows was given */
};

/* The rows of a setting, by number. */
enum tare_quant_setting_row {
    TARE_SET_METHOD,
    TARE_SET_BITS,
    TARE_SET_FORMAT,
    TARE_SET_GRANULARITY,
    TARE_SET_FULL_RANGE,
    TARE_SET_SYMMETRIC,
    TARE_SET_ALGORITHM,
    TARE_SET_ACTIVATION_BITS,
};
extern const struct tare_option tare_quant_setting_rows[];

/* How one model is quantized. Texts such as "static" or "percentile:p=99.9" are printed from it, never stored with it.
 */
struct tare_quant_plan {
    struct tare_quant_setting setting; /* of layers that no rule names */
    bool keep_variables;               /* weights stay variables of the checkpoint */
    enum tare_quant_op_set op_set;
    bool depthwise;                /* also quantize DepthwiseConv2dNative, which does not speed it up on a TPU */
    bool two_inputs;               /* quantize products of two activations */
    bool shared_ranges;            /* one range for all iterations of a loop instead of one for each */
    bool integer_adds;             /* static: sums of two activations between static layers are sums of integers */
    int64_t min_elements;          /* smallest weight worth quantizing; 0: the method's own */
    int64_t min_table_elements;    /* the same for tables only; 0: min_elements */
    const char *pass_names;        /* "gptq,bias_correction"; NULL: none */
    const char *recipe_file;       /* NULL: none */
    struct tare_option_list rules; /* lines of a recipe, after those of the file */
    uint64_t given;                /* bit i: row i of tare_plan_rows was given */

    /* Set by tare_quant_plan_open, in its arena. */
    const struct tare_quant_recipe *recipe;      /* rules for individual layers; NULL: none */
    const struct tare_quant_pass *const *passes; /* in order of execution, terminated by NULL; NULL: none */

    /* Of one quantization; not part of what users decide. */
    /* Called with each weight that has been processed and is no longer needed; NULL: no callback. */
    void (*forget)(const struct tare_tensor *weight);
    /* Only layers for which it is true are quantized; NULL: all. */
    bool (*accepts)(void *arg, const struct tare_graph *graph, const struct tare_node *op);
    void *accepts_arg;
    /* Changes the settings of a layer after the recipe; NULL: not called. */
    void (*adjust)(void *arg, const struct tare_graph *graph, const struct tare_node *op,
                   struct tare_quant_setting *setting);
    void *adjust_arg;
    int threads;                             /* 0: one per processor; the result does not depend on it */
    bool quiet;                              /* print no progress */
    struct tare_quant_weight_store *weights; /* integers of earlier quantizations of the same constants; NULL: none */
    bool warns; /* add warnings about ranges and weights to the report; takes some milliseconds a layer */
};

/* The options of a plan, which must be zero before; tare_options_defaults sets those of a caller without a command
 * line. */
extern const struct tare_option tare_plan_rows[];

/* Whether an option was given that says how to quantize: any but keep-variables, which float models have, too. */
bool tare_quant_plan_is_given(const struct tare_quant_plan *plan);

/* Reads the recipe file, compiles the rules and parses the passes. An option that a line of the recipe sets and the
 * command does not gets the value of the recipe. TARE_USAGE and TARE_INVALID_ARGUMENT for settings that exclude each
 * other. Memory is from the arena; texts of the plan are borrowed. */
tare_status tare_quant_plan_open(struct tare_quant_plan *plan, struct tare_arena *arena) TARE_WARN_UNUSED;
/* Whether anything is to be quantized: by a method or by a rule. */
bool tare_quant_plan_quantizes(const struct tare_quant_plan *plan);
/* Whether a method or rule needs activation ranges; whether a method, rule or pass needs a calibration; one with
 * statistics per channel; one with Hessians, which only samples provide. */
bool tare_quant_needs_ranges(const struct tare_quant_plan *plan);
bool tare_quant_plan_needs_calibration(const struct tare_quant_plan *plan);
bool tare_quant_plan_needs_channels(const struct tare_quant_plan *plan);
bool tare_quant_plan_needs_hessians(const struct tare_quant_plan *plan);

/* Appends " --method static --bits 4 --passes gptq …": the method and every other option that is not the default. */
void tare_quant_plan_put(struct tare_strbuf *out, const struct tare_quant_plan *plan);
/* Appends the plan as a recipe: its options, then its rules. */
void tare_quant_plan_write(struct tare_strbuf *out, const struct tare_quant_plan *plan);

/* Sets one part from its name and value: bits=4, granularity=per_block:64, symmetric=true, algorithm=entropy. For
 * TARE_USAGE the message describes the error. */
tare_status tare_quant_setting_read(struct tare_quant_setting *setting, const char *name, const char *text);
/* Reads a method or a preset ("int8", "w8a16"), which also sets bits, granularity and activation bits. */
tare_status tare_quant_method_read(struct tare_quant_setting *setting, const char *text) TARE_WARN_UNUSED;
/* Rejects incompatible settings: TARE_INVALID_ARGUMENT, with TensorFlow's message where it has one. */
tare_status tare_quant_check_setting(const struct tare_quant_setting *setting);
/* Replaces the method by its form in the op set with the setting's format; TARE_INVALID_ARGUMENT when there is none. */
tare_status tare_quant_choose_form(struct tare_quant_setting *setting, enum tare_quant_op_set op_set);
/* "int8", "int4", "fp8_e4m3" or "fp8_e5m2", for weights of `bits` bits. */
const char *tare_number_format_name(enum tare_number_format format, int bits);
/* What the integers and scales of a weight follow from, next to its values: a new setting of weights is one more entry.
 * A fixed number of integers, so that they may be part of a key. */
enum { TARE_WEIGHT_SETTINGS = 5 };
void tare_quant_weight_settings(int64_t out[static TARE_WEIGHT_SETTINGS], const struct tare_quant_setting *setting);
bool tare_quant_same_weight_settings(const struct tare_quant_setting *a, const struct tare_quant_setting *b);
/* "per_channel", "per_tensor" or "per_block"; for a setting with the block, "per_block:64". */
const char *tare_quant_granularity_name(enum tare_quant_granularity granularity);
void tare_quant_granularity_put(struct tare_strbuf *out, const struct tare_quant_setting *setting);

#endif
