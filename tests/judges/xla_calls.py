"""Makes ops functions of their own that XLA compiles, so that TensorFlow runs models that also have ops which XLA does not support,
such as those of strings."""
from __future__ import annotations

from collections.abc import Iterator

from tensorflow.core.framework import attr_value_pb2, function_pb2, graph_pb2, node_def_pb2, op_def_pb2
from tensorflow.python.framework import op_def_registry

import model_files

XLA_ALONE = ("Xla", "Uniform")      # how the names of ops begin for which only XLA has kernels
OF_OTHER_NUMBERS = ("StatelessRandomNormal", "StatelessTruncatedNormal")     # of which XLA draws others than TensorFlow's kernels
CALL = "output"     # the name of the results of a call


def types(args: Iterator[op_def_pb2.OpDef.ArgDef], node: node_def_pb2.NodeDef) -> list[tuple[str, int, int]]:
    """(name of the argument, position in it, type) of each tensor of a node."""
    found = []
    for arg in args:
        if arg.type_list_attr:
            listed = list(node.attr[arg.type_list_attr].list.type)
        else:
            listed = [arg.type or node.attr[arg.type_attr].type] * (node.attr[arg.number_attr].i if arg.number_attr else 1)
        found += [(arg.name, index, dtype) for index, dtype in enumerate(listed)]
    return found


def function_of(node: node_def_pb2.NodeDef, name: str) -> tuple[function_pb2.FunctionDef, list[tuple[str, int]]]:
    """A function that consists of this op, and the names of its results in the op."""
    op = op_def_registry.get(node.op)
    function = function_pb2.FunctionDef()
    function.signature.name = name
    defaults = {attr.name: attr.default_value for attr in op.attr if attr.HasField("default_value")}     # which files may lack
    body = function.node_def.add(name="op", op=node.op, attr=defaults | dict(node.attr))
    for index, (_, _, dtype) in enumerate(types(op.input_arg, body)):
        function.signature.input_arg.add(name=f"input_{index}", type=dtype)
        body.input.append(f"input_{index}")
    results = types(op.output_arg, body)
    for index, (output, position, dtype) in enumerate(results):
        function.signature.output_arg.add(name=f"output_{index}", type=dtype)
        function.ret[f"output_{index}"] = f"op:{output}:{position}"
    return function, [(output, position) for output, position, _ in results]


def call(node: node_def_pb2.NodeDef, function: function_pb2.FunctionDef) -> None:
    """Turns the op into a call of its function."""
    node.op = "StatefulPartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = function.signature.name
    for key, args in (("Tin", function.signature.input_arg), ("Tout", function.signature.output_arg)):
        node.attr[key].CopyFrom(attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[arg.type for arg in args])))
    node.attr["_XlaMustCompile"].b = True


def rewrite(graph: graph_pb2.GraphDef, prefixes: tuple[str, ...]) -> None:
    """All such ops of a graph and of the functions in its library."""
    made: list[function_pb2.FunctionDef] = []
    for owner in [graph, *graph.library.function]:
        renamed: dict[str, str] = {}
        nodes = owner.node if owner is graph else owner.node_def
        for node in nodes:
            if node.op.startswith(prefixes):
                function, results = function_of(node, f"compiled_by_xla_{len(made)}")
                renamed |= {f"{node.name}:{output}:{position}": f"{node.name}:{CALL}:{index}" for index, (output, position) in enumerate(results)}
                call(node, function)
                made.append(function)
        if owner is not graph:
            for node in nodes:
                node.input[:] = [renamed.get(name, name) for name in node.input]
            for name in owner.ret:
                owner.ret[name] = renamed.get(owner.ret[name], owner.ret[name])
    graph.library.function.extend(made)


def runnable(folder: str, into: str, prefixes: tuple[str, ...] = XLA_ALONE) -> None:
    """Writes the model of `folder` with calls in place of the ops whose names begin so; its other files become links."""
    model = model_files.parse(folder)
    for graph in model.meta_graphs:
        rewrite(graph.graph_def, prefixes)
    model_files.write(model, folder, into)
