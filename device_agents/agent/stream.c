/* stream.c - cuts a program's output into protocol lines, byte for byte.
 *
 * A line that ended in a newline is sent under a capital letter. A piece that did not (the line is longer than
 * LINE_LIMIT and goes on, or the output ended without a newline) is sent under the small letter. So the output is the
 * texts in order, with a newline after each capital one.
 */
#include "agent.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void stream_open(struct stream *stream, int fd, char letter)
{
  stream->fd = fd;
  stream->letter = letter;
  stream->start = stream->end = 0;
}

/* The length of the next piece, and whether a newline follows it; false when more must be read first. */
static bool next_piece(const struct stream *stream, size_t *length, bool *ended)
{
  const char *start = stream->buffer + stream->start;
  size_t held = stream->end - stream->start, look = held < LINE_LIMIT + 1 ? held : LINE_LIMIT + 1;
  const char *newline = memchr(start, '\n', look);
  *ended = newline != NULL;
  *length = newline ? (size_t)(newline - start) : look;
  if (newline) return true;
  if (look == LINE_LIMIT + 1) return *length = LINE_LIMIT, true;
  return stream->fd < 0 && look > 0;
}

/* Only read when nothing waits, so that every line carries the time at which it came. */
bool stream_wants(const struct stream *stream)
{
  size_t length;
  bool ended;
  return stream->fd >= 0 && !next_piece(stream, &length, &ended);
}

bool stream_done(const struct stream *stream) { return stream->fd < 0 && stream->start == stream->end; }

/* False when there was nothing to read. */
bool stream_read(struct stream *stream)
{
  if (!stream_wants(stream)) return false;
  memmove(stream->buffer, stream->buffer + stream->start, stream->end - stream->start);
  stream->end -= stream->start;
  stream->start = 0;
  ssize_t got = read(stream->fd, stream->buffer + stream->end, sizeof stream->buffer - stream->end);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got > 0) {
    stream->read_ns = monotonic_ns();
    stream->end += (size_t)got;
  } else {
    close_fd(&stream->fd);
  }
  stream_send(stream);
  return true;
}

void stream_send(struct stream *stream)
{
  size_t length;
  bool ended;
  while (out_room() > OUT_RESERVE && next_piece(stream, &length, &ended)) {
    char letter = ended ? stream->letter : (char)(stream->letter - 'A' + 'a');
    out_text_line(letter, stream->read_ns, stream->buffer + stream->start, length);
    stream->start += length + (ended ? 1 : 0);
  }
}
