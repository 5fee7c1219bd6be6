/* litert.c - opens libLiteRt.so and says why it cannot.
 *
 * The library is that of the ai-edge-litert wheel. Its interface is declared in runner.h after the sources of the
 * release named there; session.c and profile.c check what they can of the layouts, so that another release is refused
 * rather than misread.
 */
#include "runner.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct litert litert;
static char library_sha256[65];

enum {
  OPTION_ACCELERATORS = 24, /* which to register: the CPU, and no search for others */
  OPTION_LOG_SEVERITY = 25,
  ANY_INTEGER = 2,
  ACCELERATOR_CPU = 1,
  SEVERITY_ERROR = 3,
};

static const char *const NEWER =
    "use a system image with a newer libc and libstdc++ (Debian 12, Ubuntu 22.04 and later have them), or measure with "
    "a static benchmark_model";

/* The highest of the versions such as GLIBC_2.34 that a library names; the loader complains of the first only. */
static void highest_version(const char *path, const char *prefix, char *found, size_t size)
{
  FILE *file = fopen(path, "rb");
  size_t length = strlen(prefix);
  int most[3] = {-1, 0, 0};
  char word[64];
  size_t used = 0;
  for (int c = file ? getc(file) : EOF; c != EOF; c = getc(file)) {
    if (c && used < sizeof word - 1) word[used++] = (char)c;
    if (c) continue;
    word[used] = 0;
    int now[3] = {0, 0, 0};
    if (used < sizeof word - 1 && strncmp(word, prefix, length) == 0 &&
        sscanf(word + length, "%d.%d.%d", &now[0], &now[1], &now[2]) >= 1) {
      int order = 0;
      for (int i = 0; i < 3 && !order; i++) order = now[i] - most[i];
      if (order > 0) memcpy(most, now, sizeof most), snprintf(found, size, "%s", word);
    }
    used = 0;
  }
  if (file) fclose(file);
}

/* "...: version `GLIBC_2.34' not found (required by ...)" */
static void refuse_old_libc(const char *path, const char *why)
{
  char needed[64];
  const char *family = "an older libstdc++";
  const char *quote = strstr(why, "version `"), *end = quote ? strstr(quote, "' not found") : NULL;
  if (!end) return;
  const char *name = quote + strlen("version `");
  snprintf(needed, sizeof needed, "%.*s", (int)(end - name), name);
  if (strncmp(needed, "GLIBC_", 6) == 0) highest_version(path, "GLIBC_", needed, sizeof needed), family = "";
  if (strncmp(needed, "GLIBCXX_", 8) == 0) highest_version(path, "GLIBCXX_", needed, sizeof needed);
  if (*family)
    fail(EXIT_RUNTIME, "libc-too-old", NEWER, "libLiteRt.so needs %s, and this system has %s", needed, family);
  fail(EXIT_RUNTIME, "libc-too-old", NEWER, "libLiteRt.so needs %s, and this system has glibc %s", needed,
       gnu_get_libc_version());
}

/* "libstdc++.so.6: cannot open shared object file: No such file or directory" */
static void refuse_missing_library(const char *path, const char *why)
{
  const char *end = strstr(why, ": cannot open shared object file");
  if (!end) return;
  int length = (int)(end - why);
  bool is_itself = (size_t)length == strlen(path) && strncmp(why, path, (size_t)length) == 0;
  if (is_itself && strstr(end, "No such file") && access(path, F_OK) == 0)
    fail(EXIT_RUNTIME, "runtime-missing", "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION " for this CPU",
         "%s is built for another CPU", path);
  if (is_itself)
    fail(EXIT_RUNTIME, "runtime-missing", "push libLiteRt.so again, or check --runtime", "cannot open %s: %s", path,
         strrchr(why, ':') + 2);
  fail(EXIT_RUNTIME, "library-missing", "install it on the device; libstdc++6 and libgcc-s1 are Debian's packages",
       "libLiteRt.so needs %.*s, which this system does not have", length, why);
}

static void load(const char *path)
{
  char absolute[4096];
  /* A name without a slash would be looked for where the system keeps its libraries. */
  if (snprintf(absolute, sizeof absolute, "%s%s", strchr(path, '/') ? "" : "./", path) >= (int)sizeof absolute)
    fail(EXIT_RUNTIME, "runtime-missing", "use a shorter path", "the path of the runtime is too long");
  void *library = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    refuse_old_libc(absolute, why);
    refuse_missing_library(absolute, why);
    fail(EXIT_RUNTIME, "runtime-missing", "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION " for this CPU",
         "LiteRT cannot be loaded: %s", why);
  }
#define LITERT_FIND(type, name, arguments)                                                                            \
  {                                                                                                                   \
    void *found = dlsym(library, "LiteRt" #name);                                                                     \
    if (!found)                                                                                                       \
      fail(EXIT_RUNTIME, "runtime-missing", "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION,               \
           "%s has no function LiteRt" #name, path);                                                                  \
    memcpy(&litert.name, &found, sizeof found);                                                                       \
  }
  LITERT(LITERT_FIND)
}

void litert_open(const struct flags *flags)
{
  uint64_t bytes;
  static const struct environment_option options[] = {
      {OPTION_ACCELERATORS, {ANY_INTEGER, ACCELERATOR_CPU}},
      {OPTION_LOG_SEVERITY, {ANY_INTEGER, SEVERITY_ERROR}},
  };
  load(flags->runtime);
  sha256_file(flags->runtime, library_sha256, &bytes);
  int status = litert.CreateEnvironment(2, options, &litert.environment);
  if (status)
    fail(EXIT_RUNTIME, "runtime-missing", "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION,
         "LiteRT cannot be started: status %d", status);
}

void litert_write(const struct flags *flags, struct text *t)
{
  char own_sha256[65];
  uint64_t bytes;
  int error = sha256_file("/proc/self/exe", own_sha256, &bytes);
  const char *name = strrchr(flags->runtime, '/');
  json_string(t, "runner", RUNNER_VERSION);
  json_string(t, "runner_sha256", error ? NULL : own_sha256);
  flags_write(flags, t);
  json_null(t, "python");
  json_null(t, "numpy");
  json_string(t, "libc", gnu_get_libc_version());
  json_string(t, "runtime", "ai-edge-litert");
  json_null(t, "runtime_version"); /* the library does not say; its hash does */
  json_string(t, "library", name ? name + 1 : flags->runtime);
  json_string(t, "library_sha256", library_sha256);
  json_int(t, "pid", getpid());
  json_string(t, "clock", "CLOCK_MONOTONIC");
}
