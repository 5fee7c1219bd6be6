// What devbench asks and what the app answers: one JSON file each, described in README.md.

import Foundation

let requestSchema = "devbench.ios.request"
let resultSchema = "devbench.ios.result"
let schemaVersion = 1

struct Request: Decodable {
    let schema: String
    let version: Int
    let mode: String
    let nonce: String

    // mode "check"
    let verify: Bool?

    // mode "prune"
    let max_age_days: Double?

    // mode "run"; there are no defaults: what is missing is an error
    let model: String?
    let delegate: String?
    let threads: Int?
    let warmup_runs: Int?
    let warmup_min_ms: Int?
    let runs: Int?
    let min_ms: Int?
    let max_ms: Int?
    let input_seed: UInt64?
    let deadline_s: Double?
}

/// What the app could not do, in the words that devbench passes on.
struct Trouble: Error, Encodable {
    let kind: String
    let message: String
    let remedy: String
}

struct AppFacts: Encodable {
    let version: String
    let build: String
    let executable_sha256: String?
    let runtime: String
    let runtime_version: String
}

struct DeviceFacts: Encodable {
    let product: String
    let os_version: String
    let cores: Int
    let performance_cores: Int?
    let efficiency_cores: Int?
    let memory_bytes: UInt64
}

struct State: Encodable {
    let thermal_state: Int
    let low_power_mode: Bool
    let battery_percent: Double?
    let charging: Bool?
}

struct Memory: Encodable {
    let before_bytes: UInt64?
    let after_bytes: UInt64?
    let peak_bytes: UInt64?
}

struct Answer: Encodable {
    let schema = resultSchema
    let version = schemaVersion
    let nonce: String
    let mode: String
    let app: AppFacts
    let device: DeviceFacts
    var state_before: State
    var state_after: State
    var error: Trouble?

    var files: [String: Int]?
    var removed: Int?

    var model_sha256: String?
    var delegate: String?
    var threads: Int?
    var init_us: Double?
    var warmup_us: [Double]?
    var samples_us: [Double]?
    var count: Int?
    var stopped_by: String?
    var memory: Memory?
}
