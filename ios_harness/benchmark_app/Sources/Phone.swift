// What the phone is and how it is: heat, battery, memory, hashes.

import CryptoKit
import Foundation
import TensorFlowLiteC
import UIKit

enum Phone {
    static func app() -> AppFacts {
        let info = Bundle.main.infoDictionary ?? [:]
        return AppFacts(
            version: info["CFBundleShortVersionString"] as? String ?? "unknown",
            build: info["CFBundleVersion"] as? String ?? "unknown",
            executable_sha256: Bundle.main.executableURL.flatMap { try? sha256(of: $0) },
            runtime: "TensorFlowLiteC",
            runtime_version: String(cString: TfLiteVersion())
        )
    }

    static func device() -> DeviceFacts {
        DeviceFacts(
            product: text("hw.machine") ?? "unknown",
            os_version: UIDevice.current.systemVersion,
            cores: ProcessInfo.processInfo.processorCount,
            performance_cores: number("hw.perflevel0.logicalcpu"),
            efficiency_cores: number("hw.perflevel1.logicalcpu"),
            memory_bytes: ProcessInfo.processInfo.physicalMemory
        )
    }

    /// Must be called on the main thread: the battery belongs to UIKit.
    static func state() -> State {
        let device = UIDevice.current
        device.isBatteryMonitoringEnabled = true
        let isTold = device.batteryState != .unknown && device.batteryLevel >= 0
        return State(
            thermal_state: ProcessInfo.processInfo.thermalState.rawValue,
            low_power_mode: ProcessInfo.processInfo.isLowPowerModeEnabled,
            battery_percent: isTold ? Double(device.batteryLevel) * 100 : nil,
            charging: isTold ? device.batteryState == .charging || device.batteryState == .full : nil
        )
    }

    /// The physical footprint, which is what jetsam judges by, and its peak.
    static func footprint() -> (now: UInt64, peak: UInt64)? {
        var info = task_vm_info_data_t()
        var count = mach_msg_type_number_t(MemoryLayout<task_vm_info_data_t>.size / MemoryLayout<natural_t>.size)
        let status = withUnsafeMutablePointer(to: &info) { pointer in
            pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) { words in
                task_info(mach_task_self_, task_flavor_t(TASK_VM_INFO), words, &count)
            }
        }
        guard status == KERN_SUCCESS else { return nil }
        return (UInt64(info.phys_footprint), UInt64(max(0, info.ledger_phys_footprint_peak)))
    }

    static func sha256(of url: URL) throws -> String {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        var hasher = SHA256()
        while let chunk = try file.read(upToCount: 1 << 20), !chunk.isEmpty {
            hasher.update(data: chunk)
        }
        return hasher.finalize().map { String(format: "%02x", $0) }.joined()
    }

    private static func text(_ name: String) -> String? {
        var size = 0
        guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 0 else { return nil }
        var bytes = [CChar](repeating: 0, count: size)
        guard sysctlbyname(name, &bytes, &size, nil, 0) == 0 else { return nil }
        return String(cString: bytes)
    }

    private static func number(_ name: String) -> Int? {
        var value: Int32 = 0
        var size = MemoryLayout<Int32>.size
        return sysctlbyname(name, &value, &size, nil, 0) == 0 ? Int(value) : nil
    }
}
