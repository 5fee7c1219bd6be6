/* text.c - builds one line of JSON in a fixed buffer.
 *
 * Commas write themselves: a value that does not follow an opening bracket or a colon is the next one of its row.
 * Bytes that are not UTF-8 become \u00XX, so that every line is valid JSON whatever a kernel file held.
 */
#include "agent.h"

#include <stdio.h>
#include <string.h>

void text_clear(struct text *t) { t->length = 0; }

void text_bytes(struct text *t, const void *bytes, size_t length)
{
  if (length > sizeof t->at - t->length) die(EXIT_SYSTEM, "a record is longer than %zu bytes", sizeof t->at);
  memcpy(t->at + t->length, bytes, length);
  t->length += length;
}

void text_add(struct text *t, const char *string) { text_bytes(t, string, strlen(string)); }

/* The length of the UTF-8 character at p, or 0 when these bytes are none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
  size_t length;
  uint32_t code;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (p[0] < 0x80) return 1;
  if (p[0] >= 0xc2 && p[0] < 0xe0) length = 2, code = p[0] & 0x1fu;
  else if (p[0] >= 0xe0 && p[0] < 0xf0) length = 3, code = p[0] & 0x0fu;
  else if (p[0] >= 0xf0 && p[0] < 0xf5) length = 4, code = p[0] & 0x07u;
  else return 0;
  if (length > left) return 0;
  for (size_t i = 1; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (p[i] & 0x3fu);
  }
  bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

static void quote(struct text *t, const void *value, size_t length)
{
  const unsigned char *p = value;
  text_add(t, "\"");
  for (size_t i = 0; i < length;) {
    size_t step = utf8_length(p + i, length - i);
    if (step == 0 || p[i] < 0x20 || p[i] == 0x7f) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", p[i]);
      text_add(t, escape);
      step = 1;
    } else {
      if (p[i] == '"' || p[i] == '\\') text_add(t, "\\");
      text_bytes(t, p + i, step);
    }
    i += step;
  }
  text_add(t, "\"");
}

static void begin(struct text *t, const char *key)
{
  char last = t->length ? t->at[t->length - 1] : '{';
  if (last != '{' && last != '[' && last != ':') text_add(t, ",");
  if (!key) return;
  quote(t, key, strlen(key));
  text_add(t, ":");
}

void json_open(struct text *t, const char *key, char bracket)
{
  if (t->length) begin(t, key);
  text_bytes(t, &bracket, 1);
}

void json_close(struct text *t, char bracket) { text_bytes(t, &bracket, 1); }

void json_int(struct text *t, const char *key, int64_t value)
{
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  begin(t, key);
  text_add(t, digits);
}

void json_share(struct text *t, const char *key, double value)
{
  char digits[40];
  snprintf(digits, sizeof digits, "%.6f", value);
  begin(t, key);
  text_add(t, digits);
}

void json_bool(struct text *t, const char *key, bool value)
{
  begin(t, key);
  text_add(t, value ? "true" : "false");
}

void json_null(struct text *t, const char *key)
{
  begin(t, key);
  text_add(t, "null");
}

void json_bytes(struct text *t, const char *key, const void *value, size_t length)
{
  begin(t, key);
  quote(t, value, length);
}

void json_string(struct text *t, const char *key, const char *value)
{
  if (value) json_bytes(t, key, value, strlen(value));
  else json_null(t, key);
}
