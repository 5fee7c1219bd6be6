// One model in the runtime: made with a delegate, filled with seeded inputs, invoked and timed.

import Foundation
import TensorFlowLiteC
import TensorFlowLiteCCoreML
import TensorFlowLiteCMetal

final class Model {
    typealias Delegate = UnsafeMutablePointer<TfLiteDelegate>

    private let model: OpaquePointer
    private let interpreter: OpaquePointer
    private let dropDelegate: () -> Void

    init(path: String, delegate name: String, threads: Int) throws {
        guard let model = TfLiteModelCreateFromFile(path) else {
            throw Trouble(kind: "model", message: "the runtime cannot read the model", remedy: "see whether it is a .tflite file")
        }
        guard let options = TfLiteInterpreterOptionsCreate() else {
            throw Trouble(kind: "internal", message: "no interpreter options", remedy: "see the log")
        }
        defer { TfLiteInterpreterOptionsDelete(options) }
        TfLiteInterpreterOptionsSetNumThreads(options, Int32(threads))
        let (delegate, drop) = try Model.make(name, threads: threads)
        if let delegate {
            TfLiteInterpreterOptionsAddDelegate(options, delegate)
        }
        guard let interpreter = TfLiteInterpreterCreate(model, options) else {
            drop()
            TfLiteModelDelete(model)
            throw Trouble(
                kind: "delegate", message: "the runtime made no interpreter with \(name)",
                remedy: "try another delegate; the console of this trial says more")
        }
        guard TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk else {
            TfLiteInterpreterDelete(interpreter)
            drop()
            TfLiteModelDelete(model)
            throw Trouble(
                kind: "model", message: "tensors could not be allocated with \(name)",
                remedy: "models with dynamic shapes need another delegate")
        }
        self.model = model
        self.interpreter = interpreter
        self.dropDelegate = drop
    }

    deinit {
        TfLiteInterpreterDelete(interpreter)
        dropDelegate()
        TfLiteModelDelete(model)
    }

    /// How long one inference took, in microseconds.
    func invoke() throws -> Double {
        let began = clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
        let status = TfLiteInterpreterInvoke(interpreter)
        let ended = clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
        guard status == kTfLiteOk else {
            throw Trouble(kind: "invoke", message: "an inference failed", remedy: "try another delegate; see the log")
        }
        return Double(ended - began) / 1000
    }

    /// Numbers from a seed: the same in every trial. Floats lie in [0, 1), whole numbers are bytes.
    func fillInputs(seed: UInt64) throws {
        var random = SplitMix64(state: seed)
        for index in 0..<TfLiteInterpreterGetInputTensorCount(interpreter) {
            guard let tensor = TfLiteInterpreterGetInputTensor(interpreter, index) else { continue }
            let size = TfLiteTensorByteSize(tensor)
            var bytes = [UInt8](repeating: 0, count: size)
            switch TfLiteTensorType(tensor) {
            case kTfLiteFloat32:
                bytes.withUnsafeMutableBytes { raw in
                    let floats = raw.bindMemory(to: Float32.self)
                    for place in floats.indices { floats[place] = random.nextUnit() }
                }
            case kTfLiteInt8, kTfLiteUInt8:
                for place in bytes.indices { bytes[place] = UInt8(truncatingIfNeeded: random.next()) }
            case kTfLiteString:
                throw Trouble(kind: "inputs", message: "input \(index) is text", remedy: "such models are not supported")
            default:
                break  // zeros: indices, flags and halves are valid so, whatever the model means by them
            }
            guard TfLiteTensorCopyFromBuffer(tensor, bytes, size) == kTfLiteOk else {
                throw Trouble(kind: "inputs", message: "input \(index) could not be filled", remedy: "see the log")
            }
        }
    }

    private static func make(_ name: String, threads: Int) throws -> (Delegate?, () -> Void) {
        switch name {
        case "cpu":
            return (nil, {})
        case "xnnpack":
            var options = TfLiteXNNPackDelegateOptionsDefault()
            options.num_threads = Int32(threads)
            guard let made = TfLiteXNNPackDelegateCreate(&options) else { throw notMade(name) }
            return (made, { TfLiteXNNPackDelegateDelete(made) })
        case "gpu":
            var options = TFLGpuDelegateOptions()
            options.allow_precision_loss = true
            options.enable_quantization = true
            options.wait_type = TFLGpuDelegateWaitTypePassive
            guard let made = TFLGpuDelegateCreate(&options) else { throw notMade(name) }
            return (made, { TFLGpuDelegateDelete(made) })
        case "coreml":
            var options = TfLiteCoreMlDelegateOptions()
            options.enabled_devices = TfLiteCoreMlDelegateAllDevices
            options.coreml_version = 0
            options.max_delegated_partitions = 0
            options.min_nodes_per_partition = 2
            guard let made = TfLiteCoreMlDelegateCreate(&options) else { throw notMade(name) }
            return (made, { TfLiteCoreMlDelegateDelete(made) })
        default:
            throw Trouble(kind: "bad-request", message: "no delegate \(name)", remedy: "use cpu, xnnpack, gpu or coreml")
        }
    }

    private static func notMade(_ name: String) -> Trouble {
        Trouble(kind: "delegate", message: "\(name) could not be made on this phone", remedy: "use another delegate")
    }
}

struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func nextUnit() -> Float32 { Float32(next() >> 40) / Float32(1 << 24) }
}
