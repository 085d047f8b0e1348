#!/usr/bin/env python3
"""Small models of which earlier versions of tare made files that TensorFlow refuses, as TensorFlow and Keras write them.

usage: saved_models.py [NAME…]      (TensorFlow 2.21, Keras 3)

Writes tests/golden/saved_models/NAME, and prints what TensorFlow computes for an input of ones.
"""
import os
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved_models")
WIDTH = 8
ROWS = tf.TensorSpec([None, WIDTH], name="x")


VALUES = np.linspace(-1, 1, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)


def weights():
    return tf.Variable(VALUES)


def save(path, module, function, **options):
    tf.saved_model.save(module, path, function, tf.saved_model.SaveOptions(**options))


def module_of(body, spec=ROWS):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = weights()

        @tf.function(input_signature=[spec])
        def f(self, x):
            return body(self, x)

    return Module()


def keras3_export(path):
    """Each variable is saved twice, and functions capture the copy that the restore function does not assign."""
    import keras
    keras.utils.set_random_seed(1)
    x = keras.Input((WIDTH,), name="x")
    model = keras.Model(x, keras.layers.Dense(4, bias_initializer="ones")(x))
    model.export(path, verbose=False)


def strings(path):
    """Only a part can run on a TPU."""
    module = module_of(lambda self, x: {"y": tf.nn.relu(tf.strings.to_number(x) @ self.w)},
                       tf.TensorSpec([None, WIDTH], tf.string, name="x"))
    save(path, module, module.f)


def function_of_a_lambda(path):
    module = tf.Module()
    module.w = weights()
    module.f = tf.function(lambda x: {"y": x @ module.w}, input_signature=[ROWS])
    save(path, module, module.f, function_aliases={"tpu_func": module.f})


def colocated(path):
    """Reference variables: their reads are colocated with them."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, WIDTH], "x")
        w = v1.get_variable("w", initializer=VALUES, use_resource=False)
        b = v1.get_variable("b", initializer=VALUES[0], use_resource=False)
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b), "y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, {"y": y})


def custom_gradient(path):
    """The gradient function of silu captures values inside the function that calls it."""
    module = module_of(lambda self, x: {"y": tf.nn.silu(x @ self.w) @ self.w})
    save(path, module, module.f)


def reversed_gradient(path):
    """Gradients that are not those of what is computed: of a reversal, and of a function whose gradient captures its argument. The
    scale is trained, too, and no function uses the last variable."""
    @tf.custom_gradient
    def reverse(x):
        return tf.identity(x), lambda dy: -3.0 * dy

    @tf.custom_gradient
    def weighted(x):
        return tf.identity(x), lambda dy: dy * tf.exp(x)

    module = module_of(lambda self, x: {"y": self.scale * reverse(weighted(x) @ self.w) @ self.w})
    module.scale = tf.Variable(0.5)
    module.unused = tf.Variable([1.0, 2.0])
    save(path, module, module.f, experimental_custom_gradients=True)


def implementations(path):
    """As the recurrent layers of Keras: the runtime chooses among the functions of one name in the whole process."""
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = weights()
            self.cpu = tf.function(lambda x: x @ self.w, input_signature=[ROWS], experimental_attributes={
                "api_implements": "dense_5f1c", "api_preferred_device": "CPU"})

        @tf.function(input_signature=[ROWS])
        def f(self, x):
            return {"y": self.cpu(x)}

    module = Module()
    save(path, module, module.f)


def implements_an_op(path):
    """TensorFlow refuses the name on a function that reads a variable; passes move the read of the weight into it."""
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = weights()

        @tf.function(experimental_implements="my.op")
        def product(self, x, w):
            return x @ w

        @tf.function(input_signature=[ROWS])
        def f(self, x):
            return {"y": self.product(x, self.w.read_value())}

    module = Module()
    save(path, module, module.f)


def traced_before_saving(path):
    """The aliases name a trace that is not saved."""
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = weights()

        @tf.function(input_signature=[ROWS])
        def g(self, x):
            return x @ self.w

        @tf.function(input_signature=[ROWS])
        def f(self, x):
            return {"y": self.g(x)}

    module = Module()
    module.g(tf.ones([1, WIDTH]))
    save(path, module, module.f, function_aliases={"tpu_func": module.g})


def stored_tables(path):
    """Tables whose keys and values are in the checkpoint: they are saved and restored by functions of their own."""
    def body(module, x):
        numbers = module.numbers.lookup(tf.cast(x[:, 0], tf.int64))
        return {"y": x @ module.w + numbers[:, tf.newaxis], "of_texts": module.texts.lookup(tf.strings.as_string(tf.cast(numbers, tf.int32)))}

    module = module_of(body)
    module.numbers = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-1, deleted_key=-2,
                                                             initial_num_buckets=4)
    module.numbers.insert(tf.constant([1, 2], tf.int64), tf.constant([5.0, 7.0]))
    module.texts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    module.texts.insert(tf.constant(["5"]), tf.constant([55], tf.int64))
    save(path, module, module.f)


def looked_up_strings(path):
    """The size of the table, a scalar, is an input of the part for the TPU."""
    module = module_of(lambda self, x: {"y": tf.reduce_mean(tf.gather(self.w, self.table.lookup(x)), 1) @ self.w},
                       tf.TensorSpec([None, WIDTH], tf.string, name="x"))
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["1", "2", "3"], tf.range(3, dtype=tf.int64)), num_oov_buckets=2)
    save(path, module, module.f)


def looked_up_words(path):
    """The words of a text are looked up one by one: their number is not that of the texts."""
    module = tf.Module()
    module.w = weights()
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.range(2, dtype=tf.int64)), WIDTH - 2)

    def serve(x):
        words = tf.ragged.map_flat_values(lambda word: tf.gather(module.w, module.table.lookup(word)), tf.strings.split(x))
        return {"y": tf.nn.relu(tf.reduce_sum(words, 1) @ module.w)}

    module.f = tf.function(serve, input_signature=[tf.TensorSpec([None], tf.string, name="x")])
    save(path, module, module.f)


def compiled(path):
    """XLA compiles the inner function, and has no kernel of the hybrid UniformQuantized ops."""
    module = module_of(lambda self, x: {"y": self.product(x)})
    module.product = tf.function(lambda x: x @ module.w, input_signature=[ROWS], jit_compile=True)
    save(path, module, module.f)


def segments(path):
    """One input of the part for the TPU has as many rows as there are segments, the other as the request."""
    def body(module, x):
        return {"y": tf.math.segment_mean(x, tf.cast(x[:, 0], tf.int32)) @ module.w, "z": x @ module.w}

    module = module_of(body)
    save(path, module, module.f)


def jpeg_files(path):
    """Only the network can run on a TPU; it is also the function that the alias names."""
    def body(module, x):
        image = tf.map_fn(lambda file: tf.image.resize(tf.cast(tf.io.decode_jpeg(file, 1), tf.float32) / 255.0, [WIDTH, WIDTH]), x,
                          fn_output_signature=tf.TensorSpec([WIDTH, WIDTH, 1]))
        return {"y": module.network(image)}

    module = module_of(body, tf.TensorSpec([None], tf.string, name="x"))
    module.network = tf.function(lambda image: tf.nn.relu(image[..., 0] @ module.w) @ module.w,
                                 input_signature=[tf.TensorSpec([None, WIDTH, WIDTH, 1], name="image")])
    save(path, module, module.f, function_aliases={"tpu_func": module.network})


def mixed_bfloat16(path):
    """Computes in bfloat16 already."""
    import keras
    keras.utils.set_random_seed(1)
    x = keras.Input((WIDTH,), name="x")
    y = keras.layers.Dense(4, activation="relu", dtype="mixed_bfloat16")(x)
    keras.Model(x, keras.layers.Dense(2, dtype="float32")(y)).export(path, verbose=False)


def keras_float8(path):
    """Products of numbers that were rounded to float8."""
    import keras
    keras.utils.set_random_seed(1)
    x = keras.Input((WIDTH,), name="x")
    policy = keras.dtype_policies.QuantizedFloat8DTypePolicy("float8", "float32", amax_history_length=4)
    model = keras.Model(x, keras.layers.Dense(4, activation="relu", dtype=policy)(x))
    model.export(path, verbose=False)


def row_splits(path):
    """Rows of a weight, made dense by splits, which are one more than the rows, and which the dense part takes as well."""
    def body(module, x, splits):
        rows = tf.RaggedTensor.from_row_splits(tf.gather(module.w, tf.cast(x[:, 0], tf.int32)), splits, validate=False)
        lengths = tf.cast(splits[1:] - splits[:-1], tf.float32)
        return {"y": tf.nn.relu(tf.reduce_sum(rows.to_tensor(), 1) @ module.w) @ module.w / lengths[:, tf.newaxis]}

    module = module_of(lambda self, x: x)
    module.f = tf.function(lambda x, splits: body(module, x, splits), input_signature=[ROWS, tf.TensorSpec([None], tf.int64, name="splits")])
    save(path, module, module.f)


def tokenizers(path):
    """Tokenizers of TensorFlow Text, which is not installed: ops of TensorFlow take their places while the model is written."""
    module = tf.Module()
    module.w = weights()
    module.network = tf.function(lambda x: tf.nn.relu(x @ module.w), input_signature=[ROWS])
    texts = tf.TensorSpec([None], tf.string, name="text")

    def pieces(text):
        ids = tf.raw_ops.StringSplitV2(input=text, sep=tf.constant("model", name="model")).indices
        return {"y": module.network(tf.gather(module.w, ids[:, 0]))}

    def sentences(text):
        ids = tf.raw_ops.StringToHashBucketFast(input=text, num_buckets=WIDTH, name="tokenize")
        return {"y": module.network(tf.gather(module.w, ids))}

    module.pieces = tf.function(pieces, input_signature=[texts])
    module.sentences = tf.function(sentences, input_signature=[texts])
    tf.saved_model.save(module, path, {"serving_default": module.pieces, "sentences": module.sentences},
                        tf.saved_model.SaveOptions(function_aliases={"tpu_func": module.network}))
    from tensorflow.core.protobuf import saved_model_pb2
    file = os.path.join(path, "saved_model.pb")
    with open(file, "rb") as opened:
        model = saved_model_pb2.SavedModel.FromString(opened.read())
    names = {"StringSplitV2": ("FastWordpieceTokenizeWithOffsets", "indices", "output_ids"),
             "StringToHashBucketFast": ("SentencepieceTokenizeOp", "output", "output_values")}
    for function in model.meta_graphs[0].graph_def.library.function:
        renamed = {}
        for node in function.node_def:
            if node.op in names:
                node.op, old, new = names[node.op]
                renamed[f"{node.name}:{old}:0"] = f"{node.name}:{new}:0"
                node.attr.clear()
        for node in function.node_def:
            node.input[:] = [renamed.get(name, name) for name in node.input]
    with open(file, "wb") as opened:
        opened.write(model.SerializeToString())


def keras_on_jax(path):
    """The function returns the moving averages that it was given, and they are assigned to their variables: only with
    KERAS_BACKEND=jax."""
    import keras
    keras.utils.set_random_seed(1)
    x = keras.Input((WIDTH,), name="x")
    keras.Model(x, keras.layers.BatchNormalization()(keras.layers.Dense(4)(x))).export(path, verbose=False)


def keras_on_jax_seed(path):
    """A layer that advances its seed at inference, too, though it draws nothing: only with KERAS_BACKEND=jax."""
    import keras
    keras.utils.set_random_seed(1)
    x = keras.Input((WIDTH,), name="x")
    y = keras.layers.SimpleRNN(3, dropout=0.2)(keras.layers.Reshape((2, WIDTH // 2))(x))
    keras.Model(x, keras.layers.Dense(2)(y)).export(path, verbose=False)


def jax_gradient(path):
    """A function of JAX with its gradient, which is a module of its own: only with KERAS_BACKEND=jax."""
    import jax.numpy as jnp
    from jax.experimental import jax2tf

    class Module(tf.Module):
        def __init__(self):
            self.w = weights()
            convert = jax2tf.convert(lambda w, x: jnp.tanh(x @ w), with_gradient=True, polymorphic_shapes=[None, f"b, {WIDTH}"])
            self.serve = tf.function(lambda x: {"y": convert(self.w, x)}, input_signature=[ROWS], autograph=False)
    module = Module()
    save(path, module, module.serve, experimental_custom_gradients=True)


MODELS = [keras3_export, strings, function_of_a_lambda, colocated, custom_gradient, reversed_gradient, implementations,
          implements_an_op, traced_before_saving, stored_tables, looked_up_strings, looked_up_words, segments, compiled,
          jpeg_files, mixed_bfloat16, keras_float8, row_splits, tokenizers] + (
    [keras_on_jax, keras_on_jax_seed, jax_gradient] if os.environ.get("KERAS_BACKEND") == "jax" else [])

if __name__ == "__main__":
    for write in MODELS:
        if sys.argv[1:] and write.__name__ not in sys.argv[1:]:
            continue
        folder = os.path.join(FOLDER, write.__name__)
        shutil.rmtree(folder, ignore_errors=True)
        write(folder)
        for name in ("fingerprint.pb", "assets", "debug"):
            path = os.path.join(folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
        if write is tokenizers:     # TensorFlow cannot load it without TensorFlow Text
            continue
        function = tf.saved_model.load(folder).signatures["serving_default"]
        ones = tf.fill([1, WIDTH], "1") if write in (strings, looked_up_strings) else tf.ones([1, WIDTH])
        if write is looked_up_words:
            ones = tf.constant(["a b"])
        if write is jpeg_files:
            ones = tf.io.encode_jpeg(tf.fill([WIDTH, WIDTH, 1], tf.constant(255, tf.uint8)))[tf.newaxis]
        more = {"splits": tf.constant([0, 1], tf.int64)} if write is row_splits else {}
        print(write.__name__, {k: v.numpy().tolist() for k, v in function(x=ones, **more).items()})
