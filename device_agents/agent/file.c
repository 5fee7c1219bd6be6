/* file.c - reads small files, lines and directories without allocating.
 *
 * Facts about the device (what probe says, and the sensors of sample) are read below $DEVBENCH_SYSROOT, which is empty
 * but in tests. Processes are always looked up in the real /proc.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *errno_name(int error)
{
  static const struct {
    int error;
    const char *name;
  } names[] = {
      {EPERM, "EPERM"},     {ENOENT, "ENOENT"},   {ESRCH, "ESRCH"},         {EINTR, "EINTR"},     {EIO, "EIO"},
      {ENXIO, "ENXIO"},     {E2BIG, "E2BIG"},     {ENOEXEC, "ENOEXEC"},     {EBADF, "EBADF"},     {ECHILD, "ECHILD"},
      {EAGAIN, "EAGAIN"},   {ENOMEM, "ENOMEM"},   {EACCES, "EACCES"},       {EFAULT, "EFAULT"},   {EBUSY, "EBUSY"},
      {EEXIST, "EEXIST"},   {ENODEV, "ENODEV"},   {ENOTDIR, "ENOTDIR"},     {EISDIR, "EISDIR"},   {EINVAL, "EINVAL"},
      {ENFILE, "ENFILE"},   {EMFILE, "EMFILE"},   {ENOTTY, "ENOTTY"},       {ETXTBSY, "ETXTBSY"}, {EFBIG, "EFBIG"},
      {ENOSPC, "ENOSPC"},   {EROFS, "EROFS"},     {EPIPE, "EPIPE"},         {ERANGE, "ERANGE"},   {ELOOP, "ELOOP"},
      {ENOSYS, "ENOSYS"},   {ENODATA, "ENODATA"}, {ENOLINK, "ENOLINK"},     {EPROTO, "EPROTO"},   {ENOTSUP, "ENOTSUP"},
      {EOVERFLOW, "EOVERFLOW"}, {ELIBBAD, "ELIBBAD"}, {ETIMEDOUT, "ETIMEDOUT"}, {EREMOTEIO, "EREMOTEIO"},
      {ENAMETOOLONG, "ENAMETOOLONG"},
  };
  static char other[24];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].error == error) return names[i].name;
  snprintf(other, sizeof other, "errno %d", error);
  return other;
}

/* The whole file without the newlines at its end; EOVERFLOW when it does not fit. */
int file_read(const char *path, char *value, size_t size)
{
  size_t length = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  value[0] = 0;
  if (fd < 0) return errno;
  for (;;) {
    ssize_t got = read(fd, value + length, size - length);
    if (got < 0 && errno == EINTR) continue;
    int error = got < 0 ? errno : 0;
    if (got > 0) length += (size_t)got;
    if (got > 0 && length == size) error = EOVERFLOW;
    if (got > 0 && !error) continue;
    close(fd);
    if (error) length = 0;
    while (length && value[length - 1] == '\n') length--;
    value[length] = 0;
    return error;
  }
}

static void fact_vpath(char *path, size_t size, const char *format, va_list arguments)
{
  const char *root = getenv("DEVBENCH_SYSROOT");
  int used = snprintf(path, size, "%s", root ? root : "");
  if (used < 0 || (size_t)used >= size) die(EXIT_SYSTEM, "DEVBENCH_SYSROOT is too long");
  int more = vsnprintf(path + used, size - (size_t)used, format, arguments);
  if (more < 0 || (size_t)more >= size - (size_t)used) die(EXIT_SYSTEM, "path too long: %s", path);
}

void fact_path(char *path, size_t size, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fact_vpath(path, size, format, arguments);
  va_end(arguments);
}

int fact_read(char *value, size_t size, const char *format, ...)
{
  char path[PATH_MAX];
  va_list arguments;
  va_start(arguments, format);
  fact_vpath(path, sizeof path, format, arguments);
  va_end(arguments);
  return file_read(path, value, size);
}

bool text_to_number(const char *text, int64_t *value)
{
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  while (*end == '\n' || *end == ' ') end++;
  if (end == text || *end || errno) return false;
  *value = number;
  return true;
}

int fact_number(int64_t *value, const char *format, ...)
{
  char path[PATH_MAX], text[64];
  va_list arguments;
  va_start(arguments, format);
  fact_vpath(path, sizeof path, format, arguments);
  va_end(arguments);
  int error = file_read(path, text, sizeof text);
  if (error) return error;
  return text_to_number(text, value) ? 0 : ENODATA;
}

int lines_open(struct lines *lines, const char *path)
{
  lines->start = lines->end = 0;
  lines->at_end = false;
  lines->fd = open(path, O_RDONLY | O_CLOEXEC);
  return lines->fd < 0 ? errno : 0;
}

static bool lines_fill(struct lines *lines)
{
  memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
  lines->end -= lines->start;
  lines->start = 0;
  ssize_t got;
  do got = read(lines->fd, lines->buffer + lines->end, sizeof lines->buffer - lines->end - 1);
  while (got < 0 && errno == EINTR);
  if (got > 0) lines->end += (size_t)got;
  return got > 0;
}

char *lines_next(struct lines *lines)
{
  bool skipping = false;
  for (;;) {
    char *start = lines->buffer + lines->start, *stop = memchr(start, '\n', lines->end - lines->start);
    if (stop) {
      *stop = 0;
      lines->start = (size_t)(stop - lines->buffer) + 1;
      if (!skipping) return start;
      skipping = false;
      continue;
    }
    if (lines->end - lines->start == sizeof lines->buffer - 1) {
      skipping = true;
      lines->start = lines->end;
    }
    if (lines->at_end) return NULL;
    if (lines_fill(lines)) continue;
    lines->at_end = true;
    if (lines->start == lines->end || skipping) return NULL;
    lines->buffer[lines->end++] = '\n';
  }
}

void lines_close(struct lines *lines) { close(lines->fd); }

/* getdents64 itself, because opendir allocates. */
struct entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

int dir_open(struct dir *dir, const char *path)
{
  dir->next = dir->end = 0;
  dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return dir->fd < 0 ? errno : 0;
}

const char *dir_next(struct dir *dir)
{
  for (;;) {
    if (dir->next == dir->end) {
      long got = syscall(SYS_getdents64, dir->fd, dir->buffer, sizeof dir->buffer);
      if (got <= 0) return NULL;
      dir->next = 0;
      dir->end = (size_t)got;
    }
    uint16_t length;
    const char *at = dir->buffer + dir->next;
    memcpy(&length, at + offsetof(struct entry, length), sizeof length);
    const char *name = at + offsetof(struct entry, name);
    dir->next += length;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) return name;
  }
}

void dir_close(struct dir *dir) { close(dir->fd); }
