// The files in the app's container: models by their hash, requests and results by their nonce.

import Foundation

enum Documents {
    static let folder = FileManager.default.urls(for: .documentDirectory, in: .userDomainMask)[0]
    private static let filePrefix = "devbench-file-"

    static func request(_ nonce: String) -> URL { folder.appendingPathComponent("devbench-request-\(nonce).json") }
    static func result(_ nonce: String) -> URL { folder.appendingPathComponent("devbench-result-\(nonce).json") }

    /// A path of a request, which starts at the container: `Documents/devbench-file-…`.
    static func file(_ path: String) throws -> URL {
        let name = (path as NSString).lastPathComponent
        guard path == "Documents/\(name)", name.hasPrefix(filePrefix) else {
            throw Trouble(kind: "bad-request", message: "\(path) is no file of devbench", remedy: "update devbench or the app")
        }
        return folder.appendingPathComponent(name)
    }

    /// Requests and results of earlier launches; devicectl cannot remove files, so the app does.
    static func sweep(except nonce: String) {
        for url in contents() where isMessage(url) && !url.lastPathComponent.contains(nonce) {
            try? FileManager.default.removeItem(at: url)
        }
    }

    /// The models by hash with their sizes. With `verify`, one whose content is not what its name says is removed: it
    /// was torn on the way, and devicectl would not replace it.
    static func models(verify: Bool) -> [String: Int] {
        var found: [String: Int] = [:]
        for url in contents() where url.lastPathComponent.hasPrefix(filePrefix) {
            let digest = String(url.lastPathComponent.dropFirst(filePrefix.count))
            if verify, (try? Phone.sha256(of: url)) != digest {
                try? FileManager.default.removeItem(at: url)
                continue
            }
            found[digest] = (try? url.resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0
        }
        return found
    }

    /// Remove models that nobody used for so long; gives how many went.
    static func prune(olderThanDays days: Double) -> Int {
        let limit = Date().addingTimeInterval(-days * 86_400)
        var removed = 0
        for url in contents() where url.lastPathComponent.hasPrefix(filePrefix) {
            let date = try? url.resourceValues(forKeys: [.contentModificationDateKey]).contentModificationDate
            if let date, date < limit, (try? FileManager.default.removeItem(at: url)) != nil {
                removed += 1
            }
        }
        return removed
    }

    /// Mark a model as used now.
    static func touch(_ url: URL) {
        try? FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: url.path)
    }

    private static func isMessage(_ url: URL) -> Bool {
        let name = url.lastPathComponent
        return name.hasPrefix("devbench-request-") || name.hasPrefix("devbench-result-")
    }

    private static func contents() -> [URL] {
        let keys: [URLResourceKey] = [.fileSizeKey, .contentModificationDateKey]
        return (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: keys)) ?? []
    }
}
