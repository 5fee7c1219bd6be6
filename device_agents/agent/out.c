/* out.c - sends protocol lines to the host and never blocks on it.
 *
 * Lines wait in a fixed ring until standard output takes them. A host that stops reading fills the ring; then the
 * child's pipes are no longer read (it waits as it would at any full pipe) and samples are counted as missed, but the
 * loop goes on watching standard input and the deadline. How a write is kept from blocking depends on what standard
 * output is: a socket has MSG_DONTWAIT; a pipe that polls writable takes 4096 bytes (PIPE_BUF) at once; a terminal is
 * opened anew, so that O_NONBLOCK does not leak into the shell that shares it.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
  int fd;
  bool is_socket, gone;
  int64_t lines;
  size_t head, length;
  char ring[1024 * 1024];
} out;

void out_open(void)
{
  struct stat about;
  out.fd = STDOUT_FILENO;
  if (fstat(STDOUT_FILENO, &about) != 0) die(EXIT_SYSTEM, "standard output is closed");
  out.is_socket = S_ISSOCK(about.st_mode);
  if (isatty(STDOUT_FILENO)) {
    int fresh = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fresh >= 0) out.fd = fresh;
  }
}

int out_fd(void) { return out.fd; }
int64_t out_lines(void) { return out.lines; }
bool out_pending(void) { return out.length > 0 && !out.gone; }
bool out_gone(void) { return out.gone; }
size_t out_room(void) { return out.gone ? sizeof out.ring : sizeof out.ring - out.length; }

static void put(const void *bytes, size_t length)
{
  size_t tail = (out.head + out.length) % sizeof out.ring;
  size_t first = sizeof out.ring - tail < length ? sizeof out.ring - tail : length;
  memcpy(out.ring + tail, bytes, first);
  memcpy(out.ring, (const char *)bytes + first, length - first);
  out.length += length;
}

void out_line(char letter, const void *bytes, size_t length)
{
  char start[2] = {letter, ' '};
  out.lines++;
  if (out.gone) return;
  if (length + 3 > out_room()) die(EXIT_SYSTEM, "no room for a line of %zu bytes", length);
  put(start, 2);
  put(bytes, length);
  put("\n", 1);
}

void out_text_line(char letter, int64_t t_ns, const void *bytes, size_t length)
{
  char start[32];
  int used = snprintf(start, sizeof start, "%c %lld ", letter, (long long)t_ns);
  out.lines++;
  if (out.gone) return;
  if (length + (size_t)used + 1 > out_room()) die(EXIT_SYSTEM, "no room for a line of %zu bytes", length);
  put(start, (size_t)used);
  put(bytes, length);
  put("\n", 1);
}

void out_record(char letter, const struct text *t) { out_line(letter, t->at, t->length); }

void out_warn(const char *what, const char *reason)
{
  static struct text line;
  text_clear(&line);
  json_open(&line, NULL, '{');
  json_int(&line, "t_ns", monotonic_ns());
  json_string(&line, "what", what);
  json_string(&line, "reason", reason);
  json_close(&line, '}');
  out_record('W', &line);
}

static ssize_t write_some(const char *bytes, size_t length)
{
  struct pollfd ready = {.fd = out.fd, .events = POLLOUT};
  if (length > 4096) length = 4096;
  if (poll(&ready, 1, 0) <= 0) return errno = EAGAIN, -1;
  if (ready.revents & POLLERR) return errno = EPIPE, -1;
  if (!(ready.revents & POLLOUT)) return errno = ready.revents & POLLHUP ? EPIPE : EAGAIN, -1;
  return out.is_socket ? send(out.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) : write(out.fd, bytes, length);
}

bool out_flush(void)
{
  bool moved = false;
  while (out_pending()) {
    size_t run = sizeof out.ring - out.head < out.length ? sizeof out.ring - out.head : out.length;
    ssize_t wrote = write_some(out.ring + out.head, run);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      out.gone = errno != EAGAIN;
      return moved;
    }
    out.head = (out.head + (size_t)wrote) % sizeof out.ring;
    out.length -= (size_t)wrote;
    moved = moved || wrote > 0;
  }
  return moved;
}
