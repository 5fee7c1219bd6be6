/* hold.c - holds a setting for the length of a command.
 *
 * Writes, reads back, and puts the old value back in reverse order on every way out but SIGKILL. A file that shows a
 * choice ("always [madvise] never") counts as holding the word in brackets.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct hold {
  char path[PATH_MAX];
  const char *asked;
  char was[VALUE_SIZE], seen[VALUE_SIZE];
  int error;
  bool read, changed;
} holds[HOLDS_MAX];
static int hold_count;

static int write_value(const char *path, const char *value)
{
  int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return errno;
  size_t length = strlen(value);
  ssize_t wrote = write(fd, value, length);
  int error = wrote < 0 ? errno : (size_t)wrote < length ? EIO : 0;
  if (close(fd) != 0 && !error) error = errno;
  return error;
}

static int read_value(const char *path, char *value, size_t size)
{
  int error = file_read(path, value, size);
  char *open_bracket = strchr(value, '['), *close_bracket = open_bracket ? strchr(open_bracket, ']') : NULL;
  if (error || !close_bracket || strchr(value, '\n')) return error;
  *close_bracket = 0;
  memmove(value, open_bracket + 1, (size_t)(close_bracket - open_bracket));
  return 0;
}

static void apply(struct hold *hold)
{
  hold->error = read_value(hold->path, hold->was, sizeof hold->was);
  if (hold->error) return;
  hold->read = true;
  hold->changed = true; /* from here on there is something to put back, even when the write fails half-way */
  hold->error = write_value(hold->path, hold->asked);
  int error = read_value(hold->path, hold->seen, sizeof hold->seen);
  if (!hold->error) hold->error = error;
}

void holds_apply(const struct options *options)
{
  for (int i = 0; i < options->hold_count; i++) {
    struct hold *hold = &holds[hold_count++];
    const char *equals = strchr(options->hold[i], '=');
    size_t length = (size_t)(equals - options->hold[i]);
    if (length >= sizeof hold->path) die(EXIT_USAGE, "--hold %s: the path is too long", options->hold[i]);
    memcpy(hold->path, options->hold[i], length);
    hold->asked = equals + 1;
    apply(hold);
    char what[PATH_MAX + 8];
    snprintf(what, sizeof what, "hold %s", hold->path);
    if (hold->error) out_warn(what, errno_name(hold->error));
    else if (strcmp(hold->seen, hold->asked) != 0) out_warn(what, "reads back differently");
  }
}

bool holds_restore(void)
{
  bool restored = true;
  for (int i = hold_count; i-- > 0;) {
    struct hold *hold = &holds[i];
    static char now[VALUE_SIZE];
    if (!hold->changed) continue;
    int error = read_value(hold->path, now, sizeof now);
    if (error || strcmp(now, hold->was) != 0) {
      error = write_value(hold->path, hold->was);
      if (!error) error = read_value(hold->path, now, sizeof now);
    }
    hold->changed = error || strcmp(now, hold->was) != 0;
    if (!hold->changed) continue;
    restored = false;
    fprintf(stderr, "devbench-agent: %s could not be put back to %s\n", hold->path, hold->was);
  }
  return restored;
}

void holds_write(struct text *t, const char *key)
{
  json_open(t, key, '[');
  for (int i = 0; i < hold_count; i++) {
    json_open(t, NULL, '{');
    json_string(t, "path", holds[i].path);
    json_string(t, "was", holds[i].read ? holds[i].was : NULL);
    json_string(t, "asked", holds[i].asked);
    json_string(t, "seen", holds[i].read ? holds[i].seen : NULL);
    json_string(t, "error", holds[i].error ? errno_name(holds[i].error) : NULL);
    json_close(t, '}');
  }
  json_close(t, ']');
}
