/* npz.c - reads inputs from an .npz: a zip of .npy arrays, as numpy.savez writes it, not compressed. */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMBERS_MAX = 2 * TENSORS_MAX, END_BYTES = 22, CENTRAL_BYTES = 46, LOCAL_BYTES = 30 };

static struct {
  const char *path;
  const unsigned char *bytes;
  size_t size, count;
  struct member {
    char name[256];
    const unsigned char *array; /* the .npy */
    size_t size;
    bool is_used;
  } member[MEMBERS_MAX];
} npz;

#define UNREADABLE(...) \
  fail(EXIT_DATA, "inputs-missing", "write it with numpy.savez(FILE, name=array, ...) and push it again", __VA_ARGS__)
#define NO_ZIP() UNREADABLE("cannot read inputs from %s: it is no whole zip archive", npz.path)

static uint64_t number(size_t at, size_t bytes)
{
  uint64_t value = 0;
  if (at > npz.size || bytes > npz.size - at) NO_ZIP();
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)npz.bytes[at + i] << (8 * i);
  return value;
}

static size_t central_directory(size_t *count)
{
  for (size_t back = END_BYTES; back <= npz.size && back <= END_BYTES + 65535; back++) {
    size_t at = npz.size - back;
    if (number(at, 4) != 0x06054b50) continue;
    *count = (size_t)number(at + 10, 2);
    return (size_t)number(at + 16, 4);
  }
  NO_ZIP();
}

/* One entry of the directory; gives the length of the entry. */
static size_t add_member(size_t at)
{
  if (number(at, 4) != 0x02014b50) NO_ZIP();
  uint64_t method = number(at + 10, 2), size = number(at + 24, 4);
  size_t name_length = (size_t)number(at + 28, 2), local = (size_t)number(at + 42, 4);
  size_t length = CENTRAL_BYTES + name_length + (size_t)number(at + 30, 2) + (size_t)number(at + 32, 2);
  number(at + length - 1, 1);
  if (method != 0)
    fail(EXIT_DATA, "inputs-unsupported", "write it with numpy.savez, not savez_compressed",
         "the arrays in %s are compressed", npz.path);
  struct member *member = &npz.member[npz.count++];
  const unsigned char *name = npz.bytes + at + CENTRAL_BYTES;
  if (name_length < 4 || name_length >= sizeof member->name || memcmp(name + name_length - 4, ".npy", 4) != 0)
    UNREADABLE("cannot read inputs from %s: not all in it are arrays", npz.path);
  memcpy(member->name, name, name_length - 4);
  size_t start = local + LOCAL_BYTES + (size_t)number(local + 26, 2) + (size_t)number(local + 28, 2);
  if (start > npz.size || size > npz.size - start) NO_ZIP();
  member->array = npz.bytes + start;
  member->size = (size_t)size;
  return length;
}

void npz_open(const char *path)
{
  struct stat about;
  size_t count;
  npz.path = path;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &about) != 0) UNREADABLE("cannot read inputs from %s: %s", path, strerror(errno));
  if (!S_ISREG(about.st_mode) || about.st_size == 0) NO_ZIP();
  void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) UNREADABLE("cannot read inputs from %s: %s", path, strerror(errno));
  close(fd);
  npz.bytes = bytes, npz.size = (size_t)about.st_size;
  size_t at = central_directory(&count);
  if (count > MEMBERS_MAX) UNREADABLE("cannot read inputs from %s: it has %zu arrays", path, count);
  while (count--) at += add_member(at);
}

/* Matching an array with an input */

static _Noreturn void mismatch(const struct model *model, const char *message)
{
  char remedy[8192] = "";
  for (size_t i = 0, used = 0; i < model->inputs; i++, used = strlen(remedy))
    snprintf(remedy + used, sizeof remedy - used, "%s%zu or '%.*s'", i ? ", " : "name the arrays ", i,
             (int)model->input[i].name_length, model->input[i].name);
  size_t used = strlen(remedy);
  snprintf(remedy + used, sizeof remedy - used, "%s, with exact shape and type", used ? "" : "name the arrays (none)");
  fail(EXIT_DATA, "inputs-mismatch", remedy, "%s", message);
}

static struct member *find(const struct tensor *tensor, size_t position)
{
  char number_name[24];
  snprintf(number_name, sizeof number_name, "%zu", position);
  struct member *by_position = NULL;
  for (size_t i = 0; i < npz.count; i++) {
    struct member *member = &npz.member[i];
    size_t length = strlen(member->name);
    if (member->is_used) continue;
    if (length == tensor->name_length && memcmp(member->name, tensor->name, length) == 0) return member;
    if (strcmp(member->name, number_name) == 0) by_position = member;
  }
  return by_position;
}

/* What numpy would write as the header of such an array, without blanks. */
static void expected_header(const struct tensor *tensor, char *text, size_t size)
{
  static const char *const descr[] = {[F32] = "<f4", [F16] = "<f2", [I32] = "<i4", [U8] = "|u1",  [I64] = "<i8",
                                      [BOOL] = "|b1", [I16] = "<i2", [I8] = "|i1",  [F64] = "<f8", [U64] = "<u8",
                                      [U32] = "<u4",  [U16] = "<u2"};
  size_t used = (size_t)snprintf(text, size, "{'descr':'%s','fortran_order':False,'shape':(", descr[tensor->dtype]);
  for (size_t i = 0; i < tensor->rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ",%d" : "%d", dimension(tensor->shape, i));
  if (used < size) snprintf(text + used, size - used, tensor->rank == 1 ? ",),}" : "),}");
}

void npz_fill(const struct model *model, size_t position, unsigned char *to)
{
  const struct tensor *tensor = &model->input[position];
  struct member *member = find(tensor, position);
  char message[2048], expected[512], given[512];
  if (!member) {
    snprintf(message, sizeof message, "no array for input %zu, '%.*s'", position, (int)tensor->name_length,
             tensor->name);
    mismatch(model, message);
  }
  member->is_used = true;
  const unsigned char *array = member->array;
  size_t wide = member->size > 7 && array[6] >= 2 ? 4 : 2, length = 0, used = 0;
  if (member->size < 12 || memcmp(array, "\x93NUMPY", 6) != 0) NO_ZIP();
  for (size_t i = 0; i < wide; i++) length |= (size_t)array[8 + i] << (8 * i);
  size_t start = 8 + wide + length;
  if (start > member->size) NO_ZIP();
  for (size_t i = 8 + wide; i < start && used < sizeof given - 1; i++)
    if (array[i] != ' ' && array[i] != '\n') given[used++] = (char)array[i];
  given[used] = 0;
  expected_header(tensor, expected, sizeof expected);
  size_t bytes = (size_t)elements(tensor) * dtype_bytes(tensor->dtype);
  if (strcmp(expected, given) != 0 || member->size - start != bytes) {
    snprintf(message, sizeof message, "input %zu, '%.*s', wants %s, given %s", position, (int)tensor->name_length,
             tensor->name, expected, given);
    mismatch(model, message);
  }
  memcpy(to, array + start, bytes);
}

void npz_close(const struct model *model)
{
  char message[512];
  for (size_t i = 0; i < npz.count; i++) {
    if (npz.member[i].is_used) continue;
    snprintf(message, sizeof message, "the model has no input '%s'", npz.member[i].name);
    mismatch(model, message);
  }
  munmap((void *)(uintptr_t)npz.bytes, npz.size);
}
