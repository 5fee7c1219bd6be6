"""The native runner's inputs: the bytes that numpy makes of a seed, for every type that is measured."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_agents import litert_runner
from tests.runner_process import MODELS, Runner

schema: Any = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="needs the extra `local`")
SHAPE = [3, 7]
TYPES = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
}


def copying_model(file: Path, dtype: str, *, scales: list[float]) -> None:
    """A model whose output is its input: one RESHAPE to the same shape."""
    import flatbuffers

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel((MODELS / "string_input.tflite").read_bytes(), 0))
    graph = model.subgraphs[0]
    tensors = [schema.TensorT(), schema.TensorT()]
    for tensor, name in zip(tensors, (b"x", b"y"), strict=True):
        tensor.name, tensor.shape, tensor.type = name, SHAPE, getattr(schema.TensorType, dtype)
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = scales or None, [0] if scales else None
    code, reshape, options = schema.OperatorCodeT(), schema.OperatorT(), schema.ReshapeOptionsT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.RESHAPE
    options.newShape = SHAPE
    reshape.inputs, reshape.outputs = [0], [1]
    reshape.builtinOptions, reshape.builtinOptionsType = options, schema.BuiltinOptions.ReshapeOptions
    graph.tensors, graph.inputs, graph.outputs, graph.operators = tensors, [0], [1], [reshape]
    model.operatorCodes = [code]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    file.write_bytes(bytes(builder.Output()))


@pytest.mark.parametrize("scales", [[], [0.5]], ids=["plain", "quantised"])
@pytest.mark.parametrize("dtype", TYPES)
def test_seeded_inputs_are_numpys(native: Runner, tmp_path: Path, dtype: str, scales: list[float]) -> None:
    """The seed sequence, PCG64 and the drawing of each type, seeds beyond 32 bits included."""
    copying_model(tmp_path / "copy.tflite", dtype, scales=scales)
    detail = {"shape": SHAPE, "dtype": TYPES[dtype], "quantization_parameters": {"scales": scales}}
    for seed in (0, 12345678901):
        expected = litert_runner._seeded(detail, [seed, 0])
        ran = native.measured(tmp_path / "copy.tflite", delegate="cpu", seed=str(seed), runs="1")
        assert ran.one("end")["output_sha256"] == hashlib.sha256(expected.tobytes()).hexdigest()


@pytest.mark.parametrize("dtype", ["COMPLEX64", "INT4", "RESOURCE"])
def test_other_types_are_refused_by_name(native: Runner, tmp_path: Path, dtype: str) -> None:
    """Rather than fed with anything."""
    copying_model(tmp_path / "copy.tflite", dtype, scales=[])
    assert native.run(tmp_path / "copy.tflite").error == (
        65,
        "inputs-unsupported",
        f"input 'x' is of type {dtype.lower()}",
    )
