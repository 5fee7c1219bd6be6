// One request, answered: facts and files, or a model measured.

import Foundation

struct Trial {
    let request: Request
    /// Asks the main thread how the phone is.
    let look: () -> State

    func answer() -> Answer {
        let before = look()
        var answer = Answer(
            nonce: request.nonce, mode: request.mode, app: Phone.app(), device: Phone.device(),
            state_before: before, state_after: before)
        do {
            try perform(&answer)
        } catch let trouble as Trouble {
            answer.error = trouble
        } catch {
            answer.error = Trouble(kind: "internal", message: "\(error)", remedy: "see the trial's log")
        }
        answer.state_after = look()
        return answer
    }

    private func perform(_ answer: inout Answer) throws {
        guard request.schema == requestSchema, request.version == schemaVersion else {
            throw Trouble(
                kind: "bad-request", message: "\(request.schema) version \(request.version) is not what this app reads",
                remedy: "build the app of this devbench anew")
        }
        switch request.mode {
        case "check":
            answer.files = Documents.models(verify: request.verify ?? false)
        case "prune":
            answer.removed = Documents.prune(olderThanDays: try needed(request.max_age_days, "max_age_days"))
        case "run":
            try measure(&answer)
        default:
            throw Trouble(kind: "bad-request", message: "no mode \(request.mode)", remedy: "update the app")
        }
    }

    private func measure(_ answer: inout Answer) throws {
        let url = try Documents.file(try needed(request.model, "model"))
        let delegate = try needed(request.delegate, "delegate")
        let threads = try needed(request.threads, "threads")
        let (maxMs, seed) = (try needed(request.max_ms, "max_ms"), try needed(request.input_seed, "input_seed"))
        answer.model_sha256 = try Phone.sha256(of: url)
        Documents.touch(url)
        let memoryBefore = Phone.footprint()

        let began = clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
        let model = try Model(path: url.path, delegate: delegate, threads: threads)
        answer.init_us = Double(clock_gettime_nsec_np(CLOCK_UPTIME_RAW) - began) / 1000
        answer.delegate = delegate
        answer.threads = threads
        try model.fillInputs(seed: seed)

        let warmupRuns = try needed(request.warmup_runs, "warmup_runs")
        let warmupMs = try needed(request.warmup_min_ms, "warmup_min_ms")
        answer.warmup_us = try repeated(model, runs: warmupRuns, minMs: warmupMs, maxMs: maxMs).latencies
        let runs = try needed(request.runs, "runs")
        let steady = try repeated(model, runs: runs, minMs: try needed(request.min_ms, "min_ms"), maxMs: maxMs)
        answer.samples_us = steady.latencies
        answer.count = steady.latencies.count
        answer.stopped_by = steady.isCapped ? "cap" : "count"
        let memoryAfter = Phone.footprint()
        answer.memory = Memory(
            before_bytes: memoryBefore?.now, after_bytes: memoryAfter?.now, peak_bytes: memoryAfter?.peak)
    }

    /// At least so many inferences and at least so long, but no longer than the cap. Nothing is allocated in between.
    private func repeated(
        _ model: Model, runs: Int, minMs: Int, maxMs: Int
    ) throws -> (latencies: [Double], isCapped: Bool) {
        var latencies: [Double] = []
        latencies.reserveCapacity(200_000)
        let began = clock_gettime_nsec_np(CLOCK_UPTIME_RAW)
        while latencies.count < 200_000 {
            let passedMs = Double(clock_gettime_nsec_np(CLOCK_UPTIME_RAW) - began) / 1e6
            if latencies.count >= runs && passedMs >= Double(minMs) { return (latencies, false) }
            if passedMs >= Double(maxMs) { return (latencies, true) }
            latencies.append(try model.invoke())
        }
        return (latencies, true)
    }

    private func needed<Value>(_ value: Value?, _ name: String) throws -> Value {
        guard let value else {
            throw Trouble(kind: "bad-request", message: "the request has no \(name)", remedy: "update devbench or the app")
        }
        return value
    }
}
