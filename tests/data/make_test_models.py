"""Make the tiny models in tests/data/models, sound and broken ones; needs only ai-edge-litert.

    python tests/data/make_test_models.py [DIRECTORY]

| file | what it is |
|---|---|
| tiny_add.tflite | y = x + 1 .. 64; float [1, 64]; XNNPACK takes it whole |
| two_inputs.tflite | sum = left [2, 3] + right [1, 3] |
| dynamic_batch.tflite | as tiny_add, but the batch is declared free (-1) |
| partial.tflite | ADD, CUMSUM, ADD, MUL: XNNPACK leaves CUMSUM, so there are two partitions |
| islands.tflite | CUMSUM, CUMSUM: nothing for XNNPACK to take |
| int8_add.tflite | quantised: y = x + x; int8 [1, 64] |
| no_inputs.tflite | a constant plus itself: a model without inputs |
| string_input.tflite | passes a string through |
| huge.tflite | wants 4 TiB of activations |
| custom_op.tflite | wants the custom operator `DevbenchNoSuchOp` |
| new_op_version.tflite | wants ADD in version 99, as a newer converter might write |
| xnnpack_refuses.tflite | declares a result of 20 dimensions: the plain kernel corrects it, XNNPACK fails |
| unfed.tflite | adds a tensor that nothing fills: it loads, and fails when it runs |
| no_scale.tflite | int8_add without its quantisation: the runtime aborts |
| far_buffer.tflite | says that its constant lies far outside the file: the runtime would crash |
| odd_zero_point.tflite | int8_add with a zero point that no int8 has: XNNPACK fails, the plain kernels do not |
| uneven_add.tflite | two_inputs with inputs that cannot be added |
| truncated.tflite | the first 60 % of tiny_add |
| empty.tflite | nothing |
| not_a_model.tflite | a web server's error page |
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import flatbuffers  # type: ignore[import-untyped]  # the package has no stubs
import numpy as np
from ai_edge_litert import schema_py_generated as schema

Op = schema.BuiltinOperator
FLOAT, INT8, STRING = schema.TensorType.FLOAT32, schema.TensorType.INT8, schema.TensorType.STRING


class Graph:
    """A model under construction: tensors and operators are added, then `save` writes the file."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "devbench test model"
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.name = "main"
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs = [self.graph]

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        kind: int = FLOAT,
        constant: np.ndarray[Any, Any] | None = None,
    ) -> int:
        """The index of a new tensor; with `constant` its content stands in the file."""
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, list(shape), kind, 0
        if kind == INT8:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [0.05], [3]
        if constant is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(constant.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            made.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def op(self, code: int, inputs: list[int], output: int, *, version: int = 1, custom: str = "") -> None:
        """Append an operator; ADD, MUL and CUMSUM get the options that they need."""
        kind = schema.OperatorCodeT()
        kind.builtinCode, kind.deprecatedBuiltinCode, kind.version = code, min(code, 127), version
        kind.customCode = custom or None
        self.model.operatorCodes.append(kind)
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = len(self.model.operatorCodes) - 1, inputs, [output]
        options = {Op.ADD: "AddOptions", Op.MUL: "MulOptions", Op.CUMSUM: "CumsumOptions"}.get(code)
        if options:
            made.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            made.builtinOptions = getattr(schema, options + "T")()
        self.graph.operators.append(made)

    def save(self, file: Path, inputs: list[int], outputs: list[int]) -> None:
        """Write the model with these inputs and outputs."""
        self.graph.inputs, self.graph.outputs = inputs, outputs
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        file.write_bytes(builder.Output())


def ramp(count: int = 64) -> np.ndarray[Any, Any]:
    """1, 2, 3 … as float32."""
    return np.arange(1, count + 1, dtype=np.float32)


def one_op(file: Path, *, code: int = Op.ADD, version: int = 1, custom: str = "", free_batch: bool = False) -> None:
    """The one-operator model in its variants."""
    graph = Graph()
    x, c, y = (
        graph.tensor("x", (1, 64)),
        graph.tensor("c", (1, 64), constant=ramp()),
        graph.tensor("y", (1, 64)),
    )
    if free_batch:
        for index in (x, y):
            graph.graph.tensors[index].shapeSignature = [-1, 64]
    graph.op(code, [x, c], y, version=version, custom=custom)
    graph.save(file, [x], [y])


def two_inputs(file: Path, *, columns: int = 3) -> None:
    """Two inputs of different shape."""
    graph = Graph()
    left, right, total = (graph.tensor(n, s) for n, s in (("left", (2, columns)), ("right", (1, 3)), ("sum", (2, 3))))
    graph.op(Op.ADD, [left, right], total)
    graph.save(file, [left, right], [total])


def partial(file: Path, codes: list[int]) -> None:
    """A chain of operators over a [1, 64] tensor."""
    graph = Graph()
    constant = graph.tensor("c", (1, 64), constant=ramp())
    axis = graph.tensor("axis", (), schema.TensorType.INT32, np.array(1, np.int32))
    first = last = graph.tensor("x", (1, 64))
    for step, code in enumerate(codes):
        made = graph.tensor(f"y{step}", (1, 64))
        graph.op(code, [last, axis if code == Op.CUMSUM else constant], made)
        last = made
    graph.save(file, [first], [last])


def odd_inputs(folder: Path) -> None:
    """Models with an int8 input, with no input, with a string, with a wrong result, with too much data."""
    graph = Graph()
    x, y = graph.tensor("x", (1, 64), INT8), graph.tensor("y", (1, 64), INT8)
    graph.op(Op.ADD, [x, x], y, version=2)
    graph.save(folder / "int8_add.tflite", [x], [y])
    graph = Graph()
    c, y = graph.tensor("c", (1, 64), constant=ramp()), graph.tensor("y", (1, 64))
    graph.op(Op.ADD, [c, c], y)
    graph.save(folder / "no_inputs.tflite", [], [y])
    graph = Graph()
    text = graph.tensor("text", (1,), STRING)
    graph.save(folder / "string_input.tflite", [text], [text])
    graph = Graph()
    x, y = graph.tensor("x", (1, 64)), graph.tensor("y", (1,) * 20)
    graph.op(Op.ADD, [x, x], y)
    graph.save(folder / "xnnpack_refuses.tflite", [x], [y])
    graph = Graph()
    x, y = graph.tensor("x", (1024, 1024, 1024, 512)), graph.tensor("y", (1024, 1024, 1024, 512))
    graph.op(Op.ADD, [x, x], y)
    graph.save(folder / "huge.tflite", [x], [y])


def fatal(folder: Path) -> None:
    """Models that load, or seem to, and then fail in the runtime's hands."""
    graph = Graph()
    x, nothing, y = graph.tensor("x", (1, 64)), graph.tensor("nothing", (1, 64)), graph.tensor("y", (1, 64))
    graph.op(Op.ADD, [x, nothing], y)
    graph.save(folder / "unfed.tflite", [x], [y])
    graph = Graph()
    x, y = graph.tensor("x", (1, 64), INT8), graph.tensor("y", (1, 64), INT8)
    for index in (x, y):
        graph.graph.tensors[index].quantization = None
    graph.op(Op.ADD, [x, x], y, version=2)
    graph.save(folder / "no_scale.tflite", [x], [y])
    graph = Graph()
    x, c, y = graph.tensor("x", (1, 64)), graph.tensor("c", (1, 64), constant=ramp()), graph.tensor("y", (1, 64))
    graph.op(Op.ADD, [x, c], y)
    buffer = graph.model.buffers[1]
    buffer.data, buffer.offset, buffer.size = None, 2**63, 2**63
    graph.save(folder / "far_buffer.tflite", [x], [y])


def mutated(folder: Path) -> None:
    """Sound models with one number changed: a zero point that no int8 has, and inputs that cannot be added."""
    graph = Graph()
    x, y = graph.tensor("x", (1, 64), INT8), graph.tensor("y", (1, 64), INT8)
    graph.graph.tensors[y].quantization.zeroPoint = [15363]
    graph.op(Op.ADD, [x, x], y, version=2)
    graph.save(folder / "odd_zero_point.tflite", [x], [y])
    two_inputs(folder / "uneven_add.tflite", columns=10813443)


def main(arguments: list[str]) -> None:
    """Write every model into the given folder, or into `models` beside this script."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "models"
    folder.mkdir(parents=True, exist_ok=True)
    one_op(folder / "tiny_add.tflite")
    one_op(folder / "dynamic_batch.tflite", free_batch=True)
    one_op(folder / "custom_op.tflite", code=Op.CUSTOM, custom="DevbenchNoSuchOp")
    one_op(folder / "new_op_version.tflite", version=99)
    two_inputs(folder / "two_inputs.tflite")
    partial(folder / "partial.tflite", [Op.ADD, Op.CUMSUM, Op.ADD, Op.MUL])
    partial(folder / "islands.tflite", [Op.CUMSUM, Op.CUMSUM])
    odd_inputs(folder)
    fatal(folder)
    mutated(folder)
    sound = (folder / "tiny_add.tflite").read_bytes()
    (folder / "truncated.tflite").write_bytes(sound[: len(sound) * 6 // 10])
    (folder / "empty.tflite").write_bytes(b"")
    page = "<!DOCTYPE html><html><body><h1>404 Not Found</h1>No such model here.</body></html>\n"
    (folder / "not_a_model.tflite").write_text(page)


if __name__ == "__main__":
    main(sys.argv[1:])
