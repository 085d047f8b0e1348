"""The ways in which TensorFlow reads a SavedModel. Each raises what TensorFlow raises."""
from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator

import tensorflow as tf
from absl import flags
from tensorflow.compiler.tf2xla.python import xla as _xla  # noqa: F401 (registers the Xla ops)
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import function_def_to_graph
from tensorflow.python.saved_model import loader_impl
from tensorflow.python.tools import saved_model_cli


def meta_graph(folder: str) -> meta_graph_pb2.MetaGraphDef:
    """The MetaGraph that is served: the one with the tag serve, or the only one."""
    graphs = loader_impl.parse_saved_model(folder).meta_graphs
    return next((graph for graph in graphs if "serve" in graph.meta_info_def.tags), graphs[0])


def has_ops(folder: str, *prefixes: str) -> bool:
    """Whether the graph or a function of the library has an op whose name begins so."""
    definition = meta_graph(folder).graph_def
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return any(node.op.startswith(prefixes) for node in nodes)


def silence() -> None:
    """TensorFlow's warnings are not printed from now on."""
    logger = logging.getLogger("tensorflow")
    logger.handlers, logger.propagate = [logging.NullHandler()], False


@contextlib.contextmanager
def warnings() -> Iterator[list[str]]:
    """Collects TensorFlow's warnings."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())     # type: ignore[method-assign]
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def by_python_loader(folder: str) -> object:
    """A variable whose value the checkpoint lacks is only a warning in TensorFlow: here it is an error."""
    with warnings() as found:
        loaded = tf.saved_model.load(folder)
    missing = [text for text in found if "could not be found in the checkpoint" in text]
    if missing:
        raise ValueError(missing[0])
    return loaded


def by_v1_loader(folder: str) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.load(session, list(meta_graph(folder).meta_info_def.tags), folder)


def by_command_line(folder: str) -> None:
    """`saved_model_cli show --all`, which loads the model and prints its signatures and functions."""
    flags.FLAGS(["saved_model_cli", f"--dir={folder}", "--all"])
    with contextlib.redirect_stdout(io.StringIO()):
        saved_model_cli.show()


def every_function(folder: str) -> None:
    """Builds the graph of each function of the library: names of nodes, inputs, attributes and shapes are checked."""
    definition = meta_graph(folder).graph_def
    library = tf.compat.v1.GraphDef(library=definition.library, versions=definition.versions)
    with tf.Graph().as_default():
        tf.graph_util.import_graph_def(library, name="")
        for function in definition.library.function:
            try:
                function_def_to_graph.function_def_to_graph(function)
            except Exception as error:
                raise ValueError(f"{function.signature.name}: {error}") from error


LOADERS: dict[str, Callable[[str], object]] = {
    "load": by_python_loader,
    "load-v1": by_v1_loader,
    "cli": by_command_line,
    "functions": every_function,
}
