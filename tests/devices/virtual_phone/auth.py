"""Which hosts a phone trusts: RSA keys, and the user who allows a new one."""

from __future__ import annotations

import asyncio
import base64
import struct
from dataclasses import dataclass

#: SHA-1 DigestInfo, as PKCS#1 puts it before the digest. adb's token stands where the digest would.
_DIGEST_INFO = bytes.fromhex("3021300906052b0e03021a05000414")
_KEY_BYTES = 256


@dataclass(frozen=True)
class PublicKey:
    """An RSA key in the form in which adb sends it (mincrypt's structure in base64, a space, a name)."""

    modulus: int
    exponent: int

    @classmethod
    def parse(cls, payload: bytes) -> PublicKey:
        raw = base64.b64decode(payload.rstrip(b"\0").split(b" ")[0])
        (exponent,) = struct.unpack_from("<I", raw, 8 + 2 * _KEY_BYTES)
        return cls(int.from_bytes(raw[8 : 8 + _KEY_BYTES], "little"), exponent)

    def signed(self, token: bytes, signature: bytes) -> bool:
        """Whether `signature` of `token` was made with this key's private half."""
        opened = pow(int.from_bytes(signature, "big"), self.exponent, self.modulus).to_bytes(_KEY_BYTES, "big")
        tail = _DIGEST_INFO + token
        return opened == b"\0\1" + b"\xff" * (_KEY_BYTES - 3 - len(tail)) + b"\0" + tail


class KeyRing:
    """The trusted keys of one phone. Without `required`, everybody is trusted, as on an emulator."""

    def __init__(self, *, required: bool) -> None:
        self.required = required
        #: Seconds until the user taps "allow"; None: nobody looks at the phone.
        self.user_allows_after_s: float | None = None
        self._keys: set[PublicKey] = set()
        self._changed = asyncio.Event()

    def verify(self, token: bytes, signature: bytes) -> bool:
        return any(key.signed(token, signature) for key in self._keys)

    def forget_all(self) -> None:
        self._keys.clear()

    def user_decides(self, *, after_s: float | None) -> None:
        """Changes when the user allows keys, also one that already waits."""
        self.user_allows_after_s = after_s
        self._changed.set()

    async def user_allows(self, public_key: bytes) -> None:
        """Returns when the user has allowed the key, maybe never; from then on it is trusted."""
        while True:
            self._changed.clear()
            after_s = self.user_allows_after_s
            try:
                await asyncio.wait_for(self._changed.wait(), after_s)
            except TimeoutError:
                break
        self._keys.add(PublicKey.parse(public_key))
