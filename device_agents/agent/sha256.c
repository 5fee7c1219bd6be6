/* sha256.c - SHA-256 (FIPS 180-4) of bytes and of files; the native runner is built with it too. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static void compress(struct sha256 *h, const unsigned char *block)
{
  uint32_t w[64], s[8];
  for (size_t i = 0; i < 16; i++)
    w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 | (uint32_t)block[i * 4 + 2] << 8 |
           block[i * 4 + 3];
  for (size_t i = 16; i < 64; i++) {
    uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  memcpy(s, h->state, sizeof s);
  for (size_t i = 0; i < 64; i++) {
    uint32_t sum1 = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t sum0 = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t one = s[7] + sum1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
    uint32_t two = sum0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += one;
    s[0] = one + two;
  }
  for (size_t i = 0; i < 8; i++) h->state[i] += s[i];
}

void sha256_start(struct sha256 *h)
{
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(h->state, first, sizeof first);
  h->bytes = 0;
}

void sha256_add(struct sha256 *h, const void *content, size_t length)
{
  const unsigned char *data = content;
  size_t held = h->bytes % 64;
  h->bytes += length;
  if (held) {
    size_t take = 64 - held < length ? 64 - held : length;
    memcpy(h->block + held, data, take);
    data += take, length -= take;
    if (held + take < 64) return;
    compress(h, h->block);
  }
  for (; length >= 64; data += 64, length -= 64) compress(h, data);
  memcpy(h->block, data, length);
}

void sha256_finish(struct sha256 *h, char hex[65])
{
  uint64_t bits = h->bytes * 8;
  unsigned char one = 0x80, zero = 0, size[8];
  sha256_add(h, &one, 1);
  while (h->bytes % 64 != 56) sha256_add(h, &zero, 1);
  for (unsigned i = 0; i < 8; i++) size[i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_add(h, size, 8);
  for (size_t i = 0; i < 8; i++) snprintf(hex + i * 8, 9, "%08x", h->state[i]);
}

int sha256_file(const char *path, char hex[65], uint64_t *bytes)
{
  static unsigned char buffer[64 * 1024];
  static struct sha256 h;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  sha256_start(&h);
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    int error = got < 0 ? errno : 0;
    if (got <= 0) close(fd);
    if (error) return error;
    if (got == 0) break;
    sha256_add(&h, buffer, (size_t)got);
  }
  *bytes = h.bytes;
  sha256_finish(&h, hex);
  return 0;
}
