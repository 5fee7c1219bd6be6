"""Make the two bundled models: a MobileNetV2 in float and in int8, from a fixed seed.

This needs TensorFlow, which devbench itself does not. `make models` runs it in a throw-away environment:

    python3.11 -m venv /tmp/devbench-models
    /tmp/devbench-models/bin/pip install tensorflow-cpu==2.21.0 ai-edge-litert==2.3.0
    /tmp/devbench-models/bin/python orchestrator/bundled/make_models.py [DIRECTORY]

DIRECTORY is where the files go; without it, the folder of this script. The script checks what it made (see
`verify`) and prints a table with the SHA-256 of each file, as it stands in README.md. Two runs on one machine
give the same bytes. Another CPU may round a float sum differently while the statistics are calibrated, so
there the hashes may differ; the committed files are the ones that count.

The architecture is MobileNetV2 (Sandler et al. 2018) with width 0.35, input 224 x 224 x 3 and 10 classes. The
weights are random, so the outputs mean nothing; latency does not depend on what they mean. It does depend on
activations being ordinary numbers: with untouched batch-norm statistics random weights drive them to zero,
and denormal floats run slowly. So the statistics are measured on made-up images.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

# Before TensorFlow is imported: no GPU, no chatter, one order of summation.
os.environ.update(
    CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", TF_DETERMINISTIC_OPS="1"
)

import numpy as np
import numpy.typing as npt

SEED = 20181
SIDE = 224
CLASSES = 10
WIDTH = 0.35
CALIBRATION_IMAGES = 64
MAX_TOTAL_BYTES = 3_000_000
FLOAT_NAME = "mobilenet_v2_035_f32.tflite"
INT8_NAME = "mobilenet_v2_035_int8.tflite"

Images = npt.NDArray[np.float32]


def images(count: int, seed: int) -> Images:
    """`count` made-up pictures in [-1, 1): half smooth colour fields, half the white noise a runner feeds."""
    rng = np.random.default_rng(seed)
    made = rng.uniform(-1, 1, (count, SIDE, SIDE, 3)).astype(np.float32)
    coarse = 7
    for index in range(0, count, 2):
        field = rng.uniform(-1, 1, (coarse + 1, coarse + 1, 3))
        made[index] = 0.8 * _enlarged(field) + 0.2 * made[index]
    return made


def _enlarged(field: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A coarse grid of colours, interpolated linearly to SIDE x SIDE."""
    at = np.linspace(0, field.shape[0] - 1, SIDE, endpoint=False)
    low = at.astype(int)
    part = (at - low)[:, None, None]
    rows = field[low] * (1 - part) + field[low + 1] * part
    part = part.reshape(1, SIDE, 1)
    return np.asarray(rows[:, low] * (1 - part) + rows[:, low + 1] * part)


def build() -> Any:
    """The Keras model with seeded weights and batch-norm statistics measured on `images`."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # Without a softmax: XNNPACK does not take the int8 one, and the graph should be delegated whole.
    model = keras.applications.MobileNetV2(
        input_shape=(SIDE, SIDE, 3), alpha=WIDTH, weights=None, classes=CLASSES, classifier_activation=None
    )
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0  # the next training pass then stores exactly its own statistics
    model(images(CALIBRATION_IMAGES, SEED), training=True)
    return model


def convert(model: Any, *, int8: bool) -> bytes:
    """The .tflite bytes with a fixed batch of one; with `int8` every tensor is int8, input and output too."""
    import tensorflow as tf

    serving = tf.function(lambda image: model(image, training=False))
    concrete = serving.get_concrete_function(tf.TensorSpec((1, SIDE, SIDE, 3), tf.float32, name="image"))
    # No second argument: with the model given, TF 2.21 leaves the weights out of the file and says nothing.
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    if int8:
        samples = images(CALIBRATION_IMAGES, SEED + 1)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample[None]] for sample in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.int8
        converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def _scores(file: Path, inputs: Images) -> npt.NDArray[np.float64]:
    """The model's answers as real numbers, and on the way a check that XNNPACK takes the whole graph."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(file), num_threads=1)
    interpreter.allocate_tensors()
    source, target = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    answers = []
    for sample in inputs:
        value: npt.NDArray[Any] = sample[None]
        if source["dtype"] is np.int8:
            scale, zero = source["quantization"]
            value = np.clip(np.round(value / scale) + zero, -128, 127).astype(np.int8)
        interpreter.set_tensor(source["index"], value)
        interpreter.invoke()
        answer = interpreter.get_tensor(target["index"])[0].astype(np.float64)
        if target["dtype"] is np.int8:
            scale, zero = target["quantization"]
            answer = (answer - zero) * scale
        answers.append(answer)
    ops = interpreter._get_ops_details()
    delegates = [op for op in ops if op["op_name"] == "DELEGATE"]
    taken = {int(t) for op in delegates for t in op["outputs"]}
    _require(len(delegates) == 1 and target["index"] in taken, f"{file.name}: XNNPACK left part of the graph")
    return np.asarray(answers)


def verify(float_file: Path, int8_file: Path) -> float:
    """Check sizes, delegation and finite, differing, agreeing outputs; returns the mean cosine of the two."""
    total = float_file.stat().st_size + int8_file.stat().st_size
    _require(total < MAX_TOTAL_BYTES, f"the files have {total} bytes together, more than {MAX_TOTAL_BYTES}")
    fresh = images(16, SEED + 2)
    exact, rounded = _scores(float_file, fresh), _scores(int8_file, fresh)
    _require(bool(np.isfinite(exact).all()), "the float model gives NaN or infinity")
    _require(
        float(exact.std(axis=0).mean() / exact.std()) > 0.1,
        "the float model gives every image the same scores",
    )
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
    cosine = float(((exact * rounded).sum(axis=1) / norms).mean())
    _require(cosine > 0.95, f"int8 is too far from float: mean cosine {cosine:.4f}")
    return cosine


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        sys.exit(f"make_models: {complaint}")


def main(arguments: list[str]) -> None:
    """Make both files, verify them, print their hashes."""
    _require(len(arguments) <= 1, "usage: make_models.py [DIRECTORY]")
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    model = build()
    files = [folder / FLOAT_NAME, folder / INT8_NAME]
    for file, int8 in zip(files, (False, True), strict=True):
        file.write_bytes(convert(model, int8=int8))
    cosine = verify(*files)
    for file in files:
        content = file.read_bytes()
        print(f"| `{file.name}` | {len(content)} | `{hashlib.sha256(content).hexdigest()}` |")
    print(f"mean cosine of int8 and float scores on 16 fresh images: {cosine:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
