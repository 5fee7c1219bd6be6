/* say.c - prints the lines of the protocol, and the last one when something is wrong. */
#include "runner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void send(const char *bytes, size_t length)
{
  while (length) {
    ssize_t sent = write(STDOUT_FILENO, bytes, length);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) _exit(EXIT_OUTPUT);
    bytes += sent, length -= (size_t)sent;
  }
}

struct text *event(const char *name)
{
  static struct text line;
  text_clear(&line);
  json_open(&line, NULL, '{');
  json_string(&line, "event", name);
  return &line;
}

void say(struct text *line)
{
  text_add(line, "}\n");
  send(line->at, line->length);
}

static _Noreturn void end(int status, const char *kind, const char *remedy, const char *message)
{
  complaint_end();
  struct text *line = event("error");
  json_string(line, "kind", kind);
  json_string(line, "message", message);
  json_string(line, "remedy", remedy);
  say(line);
  _exit(status);
}

_Noreturn void fail(int status, const char *kind, const char *remedy, const char *format, ...)
{
  static char message[16 * 1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  end(status, kind, remedy, message);
}

/* What the agent's files call when something is wrong that nobody expected. */
_Noreturn void die(int status, const char *format, ...)
{
  static char message[1024];
  va_list arguments;
  (void)status;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  end(EXIT_INTERNAL, "internal", "report it, with the command line and the model", message);
}
