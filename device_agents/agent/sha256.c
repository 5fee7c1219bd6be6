/* sha256.c - SHA-256 (FIPS 180-4) of bytes and of files, by the CPU's own instructions where it has them; the native
 * runner is built with it too. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

static uint32_t big_endian(const unsigned char *at)
{
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* One round; the eight names move on by one from round to round, so that no value has to. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                            \
  do {                                                                                                              \
    uint32_t one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + K[i] + w[(i)];        \
    d += one;                                                                                                       \
    h = one + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));                           \
  } while (0)

static void compress_plainly(uint32_t state[8], const unsigned char *data, size_t blocks)
{
  for (; blocks; blocks--, data += 64) {
    uint32_t w[64];
    for (size_t i = 0; i < 16; i++) w[i] = big_endian(data + 4 * i);
    for (size_t i = 16; i < 64; i++) {
      uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
      uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 64; i += 8) {
      ROUND(a, b, c, d, e, f, g, h, i);
      ROUND(h, a, b, c, d, e, f, g, i + 1);
      ROUND(g, h, a, b, c, d, e, f, i + 2);
      ROUND(f, g, h, a, b, c, d, e, i + 3);
      ROUND(e, f, g, h, a, b, c, d, i + 4);
      ROUND(d, e, f, g, h, a, b, c, i + 5);
      ROUND(c, d, e, f, g, h, a, b, i + 6);
      ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

static bool has_instructions(void)
{
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

__attribute__((target("sha,sse4.1"))) static void compress_by_instructions(uint32_t state[8],
                                                                           const unsigned char *data, size_t blocks)
{
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i low = _mm_loadu_si128((const __m128i *)(const void *)state);
  __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
  __m128i cdab = _mm_shuffle_epi32(low, 0xB1), efgh = _mm_shuffle_epi32(high, 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; blocks; blocks--, data += 64) {
    __m128i before_abef = abef, before_cdgh = cdgh, w[4];
    for (size_t i = 0; i < 4; i++)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i)), swap);
    for (size_t i = 0; i < 16; i++) {
      __m128i now = w[i % 4];
      __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      __m128i tail = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
      w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), tail), w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, before_abef), cdgh = _mm_add_epi32(cdgh, before_cdgh);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#elif defined(__aarch64__)

#include <arm_neon.h>
#include <sys/auxv.h>

#define HAS_SHA2 (1UL << 6) /* HWCAP_SHA2 of the kernel */

static bool has_instructions(void) { return getauxval(AT_HWCAP) & HAS_SHA2; }

__attribute__((target("sha2"))) static void compress_by_instructions(uint32_t state[8], const unsigned char *data,
                                                                     size_t blocks)
{
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks; blocks--, data += 64) {
    uint32x4_t before_abcd = abcd, before_efgh = efgh, w[4];
    for (size_t i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
    for (size_t i = 0; i < 16; i++) {
      uint32x4_t sum = vaddq_u32(w[i % 4], vld1q_u32(K + 4 * i)), was = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, was, sum);
      w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, before_abcd), efgh = vaddq_u32(efgh, before_efgh);
  }
  vst1q_u32(state, abcd), vst1q_u32(state + 4, efgh);
}

#else

static bool has_instructions(void) { return false; }

static void compress_by_instructions(uint32_t state[8], const unsigned char *data, size_t blocks)
{
  compress_plainly(state, data, blocks);
}

#endif

static void compress(struct sha256 *h, const unsigned char *data, size_t blocks)
{
  static int known = -1;
  if (known < 0) known = has_instructions();
  (known ? compress_by_instructions : compress_plainly)(h->state, data, blocks);
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
    compress(h, h->block, 1);
  }
  compress(h, data, length / 64);
  memcpy(h->block, data + length / 64 * 64, length % 64);
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
