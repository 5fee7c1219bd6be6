/* flags.c - turns the command line into struct flags: complete and consistent, or a usage error. */
#include "runner.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { SWITCH, WORD, COUNT, THREADS, SHA256, DELEGATE, COPY };
enum { MEASURED = 1, BESIDE = 2, CHECKED = 4, OPTIONAL = 8 };

/* In alphabetical order, in which missing flags are named. */
static const struct flag {
  const char *name;
  enum kind kind;
  size_t at;
  int forms; /* where it is needed; with OPTIONAL: where it may stand */
} table[] = {
    {"beside", SWITCH, offsetof(struct flags, beside), MEASURED | BESIDE | CHECKED | OPTIONAL},
    {"check", SWITCH, offsetof(struct flags, check), MEASURED | BESIDE | CHECKED | OPTIONAL},
    {"copy", COPY, offsetof(struct flags, copy), MEASURED | BESIDE},
    {"delegate", DELEGATE, offsetof(struct flags, delegate), MEASURED | BESIDE},
    {"expect-sha256", SHA256, offsetof(struct flags, expect_sha256), MEASURED | BESIDE | OPTIONAL},
    {"inputs", WORD, offsetof(struct flags, inputs), MEASURED | BESIDE | OPTIONAL},
    {"max-ms", COUNT, offsetof(struct flags, max_ms), MEASURED | BESIDE},
    {"min-ms", COUNT, offsetof(struct flags, min_ms), MEASURED},
    {"model", WORD, offsetof(struct flags, model), MEASURED | BESIDE},
    {"profile", SWITCH, offsetof(struct flags, profile), MEASURED | OPTIONAL},
    {"runs", COUNT, offsetof(struct flags, runs), MEASURED},
    {"runtime", WORD, offsetof(struct flags, runtime), MEASURED | BESIDE | CHECKED},
    {"seed", COUNT, offsetof(struct flags, seed), MEASURED | BESIDE},
    {"threads", THREADS, offsetof(struct flags, threads), MEASURED | BESIDE},
    {"warmup-min-ms", COUNT, offsetof(struct flags, warmup_min_ms), MEASURED | BESIDE},
    {"warmup-runs", COUNT, offsetof(struct flags, warmup_runs), MEASURED | BESIDE},
};
enum { FLAGS = sizeof table / sizeof *table };

#define USAGE(...) fail(EXIT_USAGE, "usage", "the flags are described in native_runner/main.c", __VA_ARGS__)

static int64_t count_of(const char *name, const char *text)
{
  size_t digits = strspn(text, "0123456789");
  if (text[digits] || digits < 1 || digits > 15) USAGE("argument --%s: '%s' is not a whole number", name, text);
  return strtoll(text, NULL, 10);
}

static int64_t threads_of(const char *text)
{
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end || errno) USAGE("argument --threads: invalid int value: '%s'", text);
  return number;
}

static const char *choice_of(const char *name, const char *text, const char *one, const char *other)
{
  if (strcmp(text, one) != 0 && strcmp(text, other) != 0)
    USAGE("argument --%s: invalid choice: '%s' (choose from '%s', '%s')", name, text, one, other);
  return text;
}

static const char *sha256_of(const char *text)
{
  static char lower[65];
  if (strlen(text) != 64 || strspn(text, "0123456789abcdefABCDEF") != 64)
    USAGE("argument --expect-sha256: '%s' is not a SHA-256 in hexadecimal", text);
  for (int i = 0; i < 65; i++) lower[i] = (char)tolower((unsigned char)text[i]);
  return lower;
}

static void set(struct flags *flags, const struct flag *flag, const char *value)
{
  char *at = (char *)flags + flag->at;
  const char *word = value;
  int64_t number = 0;
  switch (flag->kind) {
  case SWITCH: *(bool *)(void *)at = true; return;
  case COUNT: number = count_of(flag->name, value); break;
  case THREADS: number = threads_of(value); break;
  case SHA256: word = sha256_of(value); break;
  case DELEGATE: word = choice_of("delegate", value, "xnnpack", "cpu"); break;
  case COPY: word = choice_of("copy", value, "copy", "zero-copy"); break;
  case WORD: break;
  }
  if (flag->kind == COUNT || flag->kind == THREADS) memcpy(at, &number, sizeof number);
  else memcpy(at, &word, sizeof word);
}

static void check_presence(const struct flags *flags, const bool *given)
{
  int form = flags->check ? CHECKED : flags->beside ? BESIDE : MEASURED;
  const char *name = flags->check ? "--check" : flags->beside ? "--beside" : "a measurement";
  if (flags->check && flags->beside) USAGE("--check and --beside exclude each other");
  for (int i = 0; i < FLAGS; i++)
    if (!given[i] && (table[i].forms & form) && !(table[i].forms & OPTIONAL)) USAGE("--%s is missing", table[i].name);
  for (int i = 0; i < FLAGS; i++)
    if (given[i] && !(table[i].forms & form)) USAGE("--%s has no meaning with %s", table[i].name, name);
}

static void check_threads(const struct flags *flags)
{
  if (flags->threads < 1 || flags->threads > THREADS_MAX)
    fail(EXIT_USAGE, "threads-invalid", "ask for at least one thread and seldom more than the device has CPUs",
         "--threads %lld is not between 1 and %d", (long long)flags->threads, THREADS_MAX);
  if (flags->threads > 1 && !flags->is_xnnpack)
    fail(EXIT_USAGE, "threads-invalid", "ask for one thread, or measure with litert_runner",
         "--threads %lld: through LiteRT's C interface the plain kernels run on one thread", (long long)flags->threads);
}

static void check_values(const struct flags *flags)
{
  long long runs = flags->runs, most = flags->profile ? PROFILED_RUNS_MAX : RUNS_MAX;
  if (flags->check) return;
  if (!flags->beside && (runs < 1 || runs > most))
    USAGE("--runs %lld is not between 1 and %lld%s", runs, most, flags->profile ? " with --profile" : "");
  if (!flags->beside && flags->min_ms > flags->max_ms)
    USAGE("--min-ms %lld is more than --max-ms %lld", (long long)flags->min_ms, (long long)flags->max_ms);
  if (flags->warmup_min_ms > flags->max_ms)
    USAGE("--warmup-min-ms %lld is more than --max-ms %lld", (long long)flags->warmup_min_ms,
          (long long)flags->max_ms);
  check_threads(flags);
}

void flags_parse(struct flags *flags, char **words)
{
  bool given[FLAGS] = {false};
  for (; *words; words++) {
    const char *word = *words, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    int i = 0;
    while (i < FLAGS && (strncmp(word, "--", 2) != 0 || strlen(table[i].name) + 2 != length ||
                         strncmp(word + 2, table[i].name, length - 2) != 0))
      i++;
    if (i == FLAGS) USAGE("unrecognized arguments: %s", word);
    const char *value = equals ? equals + 1 : NULL;
    if (table[i].kind == SWITCH && value) USAGE("argument --%s: ignored explicit argument '%s'", table[i].name, value);
    if (table[i].kind != SWITCH && !value) {
      if (!words[1] || words[1][0] == '-') USAGE("argument --%s: expected one argument", table[i].name);
      value = *++words;
    }
    set(flags, &table[i], value);
    given[i] = true;
  }
  check_presence(flags, given);
  flags->is_xnnpack = flags->delegate && strcmp(flags->delegate, "xnnpack") == 0;
  flags->is_copy = flags->copy && strcmp(flags->copy, "copy") == 0;
  check_values(flags);
}

void flags_write(const struct flags *flags, struct text *t)
{
  if (flags->check) {
    json_null(t, "flags");
    return;
  }
  json_open(t, "flags", '{');
  for (int i = 0; i < FLAGS; i++) {
    char key[32];
    const char *at = (const char *)flags + table[i].at;
    for (size_t n = 0; n <= strlen(table[i].name); n++) key[n] = table[i].name[n] == '-' ? '_' : table[i].name[n];
    bool is_number = table[i].kind == COUNT || table[i].kind == THREADS;
    if (table[i].kind == SWITCH) json_bool(t, key, *(const bool *)(const void *)at);
    else if (is_number && flags->beside && !(table[i].forms & BESIDE)) json_null(t, key);
    else if (is_number) json_int(t, key, *(const int64_t *)(const void *)at);
    else json_string(t, key, *(const char *const *)(const void *)at);
  }
  json_close(t, '}');
}
