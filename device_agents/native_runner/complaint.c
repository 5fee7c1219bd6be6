/* complaint.c - keeps what the runtime says on standard error, and what it means for the user.
 *
 * The C interface returns a number; the words go to standard error. While a model is loaded and first run, they go to
 * a file in memory instead, and from there to the real standard error: also when the runtime crashes.
 */
#include "runner.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int real = -1, kept = -1;
static char said[64 * 1024];

/* Safe in a signal handler. */
static void pass_on(void)
{
  size_t length = 0;
  ssize_t got;
  if (kept < 0) return;
  while (length < sizeof said - 1 && (got = pread(kept, said + length, sizeof said - 1 - length, (off_t)length)) > 0)
    length += (size_t)got;
  said[length] = 0;
  for (size_t sent = 0; sent < length;) {
    ssize_t part = write(real, said + sent, length - sent);
    if (part <= 0) break;
    sent += (size_t)part;
  }
}

static void crashed(int number)
{
  static const char words[] = "native runner: the runtime crashed while it loaded the model or first ran it\n";
  pass_on();
  if (write(real, words, sizeof words - 1) < 0) _exit(EXIT_INTERNAL);
  signal(number, SIG_DFL);
  raise(number);
}

static void on_fatal_signals(void (*action)(int))
{
  static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], action);
}

void complaint_begin(void)
{
#ifdef SYS_memfd_create
  kept = (int)syscall(SYS_memfd_create, "complaint", 1u);
#endif
  if (kept < 0) return; /* an old kernel: the words go where they always go, and the error names the status only */
  real = dup(STDERR_FILENO);
  if (real < 0 || dup2(kept, STDERR_FILENO) < 0) {
    close(kept); /* nobody listens */
    kept = -1;
    return;
  }
  on_fatal_signals(crashed);
}

const char *complaint_end(void)
{
  said[0] = 0;
  if (kept < 0) return said;
  dup2(real, STDERR_FILENO);
  pass_on();
  close(kept), close(real);
  kept = real = -1;
  on_fatal_signals(SIG_DFL);
  return said;
}

/* What it means */

/* The text between two marks, or NULL. */
static const char *between(const char *text, const char *before, const char *after)
{
  static char found[256];
  const char *start = strstr(text, before), *end = start ? strstr(start + strlen(before), after) : NULL;
  if (!end) return NULL;
  start += strlen(before);
  snprintf(found, sizeof found, "%.*s", (int)(end - start), start);
  return found;
}

static void refuse_unsupported_op(const char *words)
{
  char version[64] = "";
  const char *name = between(words, "unresolved custom op: ", ".");
  const char *flex = strstr(words, "(Flex");
  if (!name && flex) name = between(flex, "(", ") failed");
  if (name)
    fail(EXIT_DATA, "op-unsupported",
         "convert the model with built-in operators only, or use a runtime that has this operator",
         "the runtime lacks the custom operator %s", name);
  static const char *const remedy =
      "use a newer ai-edge-litert, or convert the model for the version that the device has";
  if ((name = between(words, "Didn't find op for builtin opcode '", "'"))) {
    char operator_name[256];
    snprintf(operator_name, sizeof operator_name, "%s", *name ? name : "(unknown)");
    const char *number = between(words, "version '", "'");
    snprintf(version, sizeof version, "%s", number ? number : "?");
    fail(EXIT_DATA, "op-unsupported", remedy, "the runtime lacks the operator %s version %s", operator_name, version);
  }
  if ((name = between(words, "builtin_code out of range: ", ".")))
    fail(EXIT_DATA, "op-unsupported", remedy, "the runtime lacks the operator number %s", name);
}

/* The first line that says ERROR, without its marks; the status where there is none. */
static const char *first_words(const char *words, int status)
{
  static char line[512];
  const char *start = strstr(words, "ERROR: ");
  snprintf(line, sizeof line, "status %d", status);
  if (!start) return line;
  start += strlen("ERROR: ");
  const char *close = *start == '[' ? strstr(start, "] ") : NULL;
  if (close) start = close + 2;
  snprintf(line, sizeof line, "%.*s", (int)strcspn(start, "\n"), start);
  return line;
}

_Noreturn void complain(const struct session *s, const char *words, int status, bool is_running)
{
  enum { MEMORY_FAILURE = 2 };
  const char *complaint = first_words(words, status);
  bool is_preparing = !is_running || strstr(words, "Failed to allocate tensors") != NULL;
  refuse_unsupported_op(words);
  if (status == MEMORY_FAILURE)
    fail(EXIT_DATA, "out-of-memory", "use a smaller model or input, or a device with more memory",
         "there is not enough memory for the model's tensors");
  if (is_preparing && s->flags->is_xnnpack && plain_kernels_work(s))
    fail(EXIT_DATA, "delegate-failed", "run it with --delegate cpu, or convert the model so that XNNPACK accepts it",
         "XNNPACK cannot prepare the model: %s", complaint);
  if (!is_preparing)
    fail(EXIT_DATA, "invoke-failed", "the inputs may not suit the model: give real ones with --inputs",
         "the model does not run: %s", complaint);
  fail(EXIT_DATA, "model-invalid",
       "convert the model again, with fixed input shapes, and try it with the same ai-edge-litert elsewhere",
       "the runtime refuses the model: %s", complaint);
}
