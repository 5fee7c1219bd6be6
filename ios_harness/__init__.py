"""The host's iOS part: iPhones behind a Mac that is reached by ssh, and jailbroken ones reached directly.

No Mac and no iPhone was at hand when this was written. What `xcrun devicectl` takes and says is from public scripts
and logs; tests replay those against a stand-in behind a real ssh server.
"""
