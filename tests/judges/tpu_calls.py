"""Turns a model that was converted for the TPU into one that a CPU runs: the functions that the TPU would compile are compiled
by XLA for the CPU. Run it with XLA_FLAGS=--xla_allow_excess_precision=false, so that bfloat16 rounds where the graph says."""
from __future__ import annotations

from collections.abc import Iterable

from tensorflow.core.framework import node_def_pb2

import model_files

# The attributes that only the rewrite for the TPU reads.
PREFIXES = ("_tpu_", "_xla", "_replication_info", "_pivot_for_cluster")
MARKERS = {"TPUReplicateMetadata", "TPUCompilationResult", "TPUOrdinalSelector"}
COPIES = {"TPUReplicatedInput": "outputs", "TPUReplicatedOutput": "outputs"}    # op: name of its output, which Identity calls "output"


def rewrite(nodes: Iterable[node_def_pb2.NodeDef]) -> int:
    """Replaces the TPU's ops among the nodes of a graph or function; returns the number of TPU calls."""
    calls = 0
    for node in nodes:
        for name in [name for name in node.attr if name.startswith(PREFIXES)]:
            del node.attr[name]
        node.device = "" if "TPU" in node.device else node.device
        data = [name for name in node.input if not name.startswith("^")]
        control = [name for name in node.input if name.startswith("^")]
        if node.op in MARKERS:
            become(node, "NoOp", control)
        elif node.op in COPIES:
            dtype = node.attr["T"].type
            become(node, "Identity", data + control)
            node.attr["T"].type = dtype
        elif node.op == "TPUPartitionedCall":
            call = {name: node.attr[name] for name in ("f", "Tin", "Tout")}
            kept = node_def_pb2.NodeDef(attr=call)
            become(node, "StatefulPartitionedCall", data[:-1] + control)     # without the ordinal of the device
            node.MergeFrom(kept)
            node.attr["_XlaMustCompile"].b = True
            calls += 1
    return calls


def become(node: node_def_pb2.NodeDef, op: str, inputs: list[str]) -> None:
    node.op = op
    del node.input[:]
    node.input.extend(inputs)
    node.attr.clear()


def runnable(folder: str, into: str) -> int:
    """Writes the model of `folder` for the CPU; its other files become links. Returns the number of TPU calls."""
    model = model_files.parse(folder)
    calls = 0
    for graph in model.meta_graphs:
        for function in graph.graph_def.library.function:
            copies = {node.name for node in function.node_def if node.op in COPIES}
            calls += rewrite(function.node_def)

            def renamed(name: str) -> str:
                node, _, rest = name.partition(":")
                return f"{node}:output:0" if node in copies and rest else name

            for node in function.node_def:
                node.input[:] = [renamed(name) for name in node.input]
            for name in function.ret:
                function.ret[name] = renamed(function.ret[name])
        calls += rewrite(graph.graph_def.node)
    model_files.write(model, folder, into)
    return calls
