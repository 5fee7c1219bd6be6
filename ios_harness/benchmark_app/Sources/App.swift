// devbench's benchmark app: launched for one request, writes one result, and ends. No finger is needed.
//
// devicectl launches it as `BUNDLE request NONCE`; without these words (somebody tapped it) it only says what it is.
// Its lines on standard output begin with "devbench: "; the runtime's own words go to standard error. devicectl shows both.

import UIKit

@main
final class App: UIResponder, UIApplicationDelegate {
    var window: UIWindow?
    private var hasBegun = false

    func application(
        _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool {
        setvbuf(stdout, nil, _IOLBF, 0)
        application.isIdleTimerDisabled = true
        let label = UILabel()
        label.text = "devbench measures. Leave this app in front, and the phone unlocked."
        label.numberOfLines = 0
        label.textAlignment = .center
        let controller = UIViewController()
        controller.view = label
        label.backgroundColor = .systemBackground
        window = UIWindow(frame: UIScreen.main.bounds)
        window?.rootViewController = controller
        window?.makeKeyAndVisible()
        return true
    }

    /// Only in front does iOS give an app its full share, so nothing begins before.
    func applicationDidBecomeActive(_ application: UIApplication) {
        let words = CommandLine.arguments
        guard !hasBegun, let place = words.firstIndex(of: "request"), place + 1 < words.count else { return }
        hasBegun = true
        let nonce = words[place + 1]
        let thread = Thread { serve(nonce) }
        thread.qualityOfService = .userInteractive
        thread.stackSize = 8 << 20
        thread.start()
    }

    /// An app that lost the front measures something else: it ends, and devbench sees that there is no result.
    func applicationDidEnterBackground(_ application: UIApplication) {
        if hasBegun {
            print("devbench: left the front")
            exit(4)
        }
    }
}

private func serve(_ nonce: String) {
    print("devbench: started \(nonce) pid \(getpid())")
    Documents.sweep(except: nonce)
    do {
        let request = try JSONDecoder().decode(Request.self, from: Data(contentsOf: Documents.request(nonce)))
        guard request.nonce == nonce else {
            print("devbench: the request is another launch's")
            exit(2)
        }
        endAfter(request.deadline_s ?? 120)
        let answer = Trial(request: request, look: { DispatchQueue.main.sync { Phone.state() } }).answer()
        try JSONEncoder().encode(answer).write(to: Documents.result(nonce), options: .atomic)
        print("devbench: done \(nonce)")
        exit(0)
    } catch {
        print("devbench: \(error)")
        exit(2)
    }
}

/// Whatever becomes of Mac and host, the phone is not left burning.
private func endAfter(_ seconds: Double) {
    DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
        print("devbench: the deadline has passed")
        exit(3)
    }
}
