"""A SavedModel whose outputs are a SparseTensor, RaggedTensors and dense tensors: tests/models/composite_outputs (TensorFlow 2.21).

usage: composite_outputs.py"""
import os
import shutil

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models', 'composite_outputs')


class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 3], name='x')])
    def serve(self, x):
        n = tf.shape(x, tf.int64)[0]
        rows = tf.RaggedTensor.from_row_splits(tf.reshape(x, [-1]), tf.range(n + 1) * 3, validate=False)
        return {'dense': x + 1, 'sparse': tf.sparse.from_dense(x), 'ragged': rows * 2,
                'nested': tf.RaggedTensor.from_row_splits(rows, tf.stack([0, n]), validate=False)}


shutil.rmtree(FOLDER, ignore_errors=True)
model = Model()
tf.saved_model.save(model, FOLDER, signatures=model.serve, options=tf.saved_model.SaveOptions(save_debug_info=False))
for name in ('assets', 'fingerprint.pb'):
    path = os.path.join(FOLDER, name)
    shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
path = os.path.join(FOLDER, 'saved_model.pb')
with open(path, 'rb') as file:
    saved = saved_model_pb2.SavedModel.FromString(file.read())
saved.meta_graphs[0].meta_info_def.ClearField('stripped_op_list')  # two thirds of the file
with open(path, 'wb') as file:
    file.write(saved.SerializeToString(deterministic=True))
