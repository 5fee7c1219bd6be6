/* seed.c - makes inputs from a seed, the same bytes as numpy does in litert_runner.py.
 *
 * There an input comes from numpy.random.default_rng([seed, position]): a SeedSequence, then PCG64 (XSL-RR), then the
 * ways in which numpy turns its words into floats and bounded integers. Floats are uniform in [-1, 1), quantised
 * integers uniform over their type, booleans either, other integers 0 or 1. All our machines are little-endian.
 */
#include "runner.h"

#include <string.h>

struct wide {
  uint64_t high, low;
};
struct rng {
  struct wide state, increment;
  uint32_t half; /* the upper half of the last word, given next */
  bool has_half;
  uint32_t rest; /* a word of which the lower pieces were given */
  int rest_count;
};

/* SeedSequence */

static uint32_t hashed(uint32_t value, uint32_t *constant)
{
  value ^= *constant;
  *constant *= 0x931e8875u;
  value *= *constant;
  return value ^ value >> 16;
}

static uint32_t mixed(uint32_t x, uint32_t y)
{
  uint32_t value = 0xca01f9ddu * x - 0x4973f715u * y;
  return value ^ value >> 16;
}

static void pool_fill(uint32_t pool[4], const uint32_t *entropy, size_t count)
{
  uint32_t constant = 0x43b0d7e5u;
  for (size_t i = 0; i < 4; i++) pool[i] = hashed(i < count ? entropy[i] : 0, &constant);
  for (size_t from = 0; from < 4; from++)
    for (size_t to = 0; to < 4; to++)
      if (from != to) pool[to] = mixed(pool[to], hashed(pool[from], &constant));
}

static size_t words_of(uint64_t value, uint32_t *words)
{
  words[0] = (uint32_t)value;
  words[1] = (uint32_t)(value >> 32);
  return words[1] ? 2 : 1;
}

/* PCG64, without a 128-bit type: 32-bit ARM has none */

static struct wide sum(struct wide a, struct wide b)
{
  struct wide total = {a.high + b.high, a.low + b.low};
  total.high += total.low < a.low;
  return total;
}

static struct wide product(struct wide a, struct wide b)
{
  uint64_t a0 = (uint32_t)a.low, a1 = a.low >> 32, b0 = (uint32_t)b.low, b1 = b.low >> 32;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), cross = a0 * b1 + (uint32_t)middle;
  struct wide found = {a1 * b1 + (middle >> 32) + (cross >> 32), cross << 32 | (uint32_t)low};
  found.high += a.high * b.low + a.low * b.high;
  return found;
}

static void step(struct rng *rng)
{
  static const struct wide multiplier = {0x2360ed051fc65da4u, 0x4385df649fccf645u};
  rng->state = sum(product(rng->state, multiplier), rng->increment);
}

static uint64_t next64(struct rng *rng)
{
  step(rng);
  uint64_t value = rng->state.high ^ rng->state.low;
  unsigned turn = (unsigned)(rng->state.high >> 58);
  return value >> turn | value << (-turn & 63);
}

static uint32_t next32(struct rng *rng)
{
  rng->has_half = !rng->has_half;
  if (!rng->has_half) return rng->half;
  uint64_t value = next64(rng);
  rng->half = (uint32_t)(value >> 32);
  return (uint32_t)value;
}

static void rng_start(struct rng *rng, uint64_t seed, uint64_t position)
{
  uint32_t entropy[4], pool[4], constant = 0x8b51f9ddu;
  uint64_t word[4];
  size_t count = words_of(seed, entropy);
  count += words_of(position, entropy + count);
  pool_fill(pool, entropy, count);
  for (size_t i = 0; i < 8; i++) {
    uint32_t value = pool[i % 4] ^ constant;
    constant *= 0x58f38dedu;
    value *= constant;
    value ^= value >> 16;
    word[i / 2] = i % 2 ? word[i / 2] | (uint64_t)value << 32 : value;
  }
  *rng = (struct rng){.increment = {word[2] << 1 | word[3] >> 63, word[3] << 1 | 1}};
  step(rng);
  rng->state = sum(rng->state, (struct wide){word[0], word[1]});
  step(rng);
}

/* From words to values */

/* Pieces of 8 or 16 bits, cut from one word after the other. */
static uint32_t piece(struct rng *rng, int bits)
{
  if (rng->rest_count == 0) {
    rng->rest = next32(rng);
    rng->rest_count = 32 / bits - 1;
  } else {
    rng->rest >>= bits;
    rng->rest_count--;
  }
  return rng->rest & (0xffffffffu >> (32 - bits));
}

/* Over the whole type, shifted by its least value where it has a sign. */
static uint64_t any_integer(struct rng *rng, size_t bytes, bool has_sign)
{
  uint64_t value = bytes == 8 ? next64(rng) : bytes == 4 ? next32(rng) : piece(rng, (int)(8 * bytes));
  return has_sign ? value ^ (uint64_t)1 << (8 * bytes - 1) : value;
}

/* 0 or 1: the uppermost bit of the piece that numpy's bounded draw takes. */
static uint64_t bit(struct rng *rng, size_t bytes, bool is_bool)
{
  if (bytes >= 4 || is_bool) return next32(rng) >> 31;
  return piece(rng, (int)(8 * bytes)) >> (8 * bytes - 1);
}

static float uniform(struct rng *rng)
{
  return (float)(next32(rng) >> 8) * (1.0f / 16777216.0f) * 2.0f - 1.0f;
}

/* Round to nearest, ties to even; the magnitude is at most 1, and no less than 2^-24 unless zero. */
static uint16_t half_of(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude == 0) return (uint16_t)sign;
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  int exponent = (int)(magnitude >> 23) - 127 + 15;
  int shift = exponent > 0 ? 13 : 14 - exponent;
  if (shift > 24) return (uint16_t)sign;
  uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
  kept += rest > tie || (rest == tie && (kept & 1));
  return (uint16_t)(sign | (exponent > 0 ? kept + (((uint32_t)exponent - 1) << 10) : kept));
}

static void put_float(struct rng *rng, unsigned dtype, unsigned char *to)
{
  float value = uniform(rng);
  double wide = (double)value;
  uint16_t half = half_of(value);
  if (dtype == F32) memcpy(to, &value, sizeof value);
  else if (dtype == F64) memcpy(to, &wide, sizeof wide);
  else memcpy(to, &half, sizeof half);
}

void seed_fill(const struct tensor *tensor, int64_t seed, size_t position, unsigned char *to)
{
  struct rng rng;
  unsigned dtype = tensor->dtype;
  size_t bytes = dtype_bytes(dtype);
  bool is_float = dtype == F32 || dtype == F16 || dtype == F64;
  bool has_sign = dtype == I8 || dtype == I16 || dtype == I32 || dtype == I64;
  bool is_full = tensor->is_quantised && dtype != BOOL;
  rng_start(&rng, (uint64_t)seed, position);
  for (uint64_t count = elements(tensor); count; count--, to += bytes) {
    if (is_float) {
      put_float(&rng, dtype, to);
      continue;
    }
    uint64_t value = is_full ? any_integer(&rng, bytes, has_sign) : bit(&rng, bytes, dtype == BOOL);
    for (size_t i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
  }
}
