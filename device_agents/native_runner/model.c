/* model.c - reads the model file before the runtime sees it: what it says of itself, or why it is no sound model.
 *
 * A .tflite is a flatbuffer: tables of optional fields. Every read is checked against the end of the file.
 */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const AGAIN = "copy or convert the model again and compare its SHA-256 with the original";
#define BROKEN(...) fail(EXIT_DATA, "model-invalid", AGAIN, "broken or truncated model: " __VA_ARGS__)

static const struct {
  const char *name;
  size_t bytes;
} dtypes[] = {
    [F32] = {"float32", 4}, [F16] = {"float16", 2},   [I32] = {"int32", 4},         [U8] = {"uint8", 1},
    [I64] = {"int64", 8},   [STRING] = {"string", 0}, [BOOL] = {"bool", 1},         [I16] = {"int16", 2},
    [C64] = {"complex64", 0}, [I8] = {"int8", 1},     [F64] = {"float64", 8},       [C128] = {"complex128", 0},
    [U64] = {"uint64", 8},  [RESOURCE] = {"resource", 0}, [VARIANT] = {"variant", 0}, [U32] = {"uint32", 4},
    [U16] = {"uint16", 2},  [I4] = {"int4", 0},       [BF16] = {"bfloat16", 0},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const char *dtype_name(unsigned dtype)
{
  static char other[16];
  if (dtype < DTYPES) return dtypes[dtype].name;
  snprintf(other, sizeof other, "type %u", dtype);
  return other;
}

size_t dtype_bytes(unsigned dtype) { return dtype < DTYPES ? dtypes[dtype].bytes : 0; }

/* Reading a flatbuffer */

struct table {
  const struct model *model;
  int64_t at, vtable;
  unsigned vtable_bytes;
};
struct vector {
  int64_t start;
  size_t count;
};

static uint64_t number_at(const struct model *model, int64_t at, size_t bytes)
{
  uint64_t value = 0;
  if (at < 0 || (uint64_t)at + bytes > model->size)
    BROKEN("something in it points to byte %lld of %zu", (long long)at, model->size);
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)model->bytes[(size_t)at + i] << (8 * i);
  return value;
}

static struct table table_at(const struct model *model, int64_t at)
{
  struct table table = {.model = model, .at = at};
  table.vtable = at - (int32_t)number_at(model, at, 4);
  table.vtable_bytes = (unsigned)number_at(model, table.vtable, 2);
  return table;
}

/* Where a field lies, or -1 if it is absent. */
static int64_t field(const struct table *table, unsigned index)
{
  unsigned slot = 4 + 2 * index;
  if (slot + 2 > table->vtable_bytes) return -1;
  uint64_t offset = number_at(table->model, table->vtable + slot, 2);
  return offset ? table->at + (int64_t)offset : -1;
}

static uint64_t number(const struct table *table, unsigned index, size_t bytes)
{
  int64_t at = field(table, index);
  return at < 0 ? 0 : number_at(table->model, at, bytes);
}

static bool vector(const struct table *table, unsigned index, struct vector *found)
{
  int64_t at = field(table, index);
  found->start = 0, found->count = 0;
  if (at < 0) return false;
  int64_t start = at + (int64_t)number_at(table->model, at, 4);
  found->count = (size_t)number_at(table->model, start, 4);
  found->start = start + 4;
  return true;
}

static struct table element(const struct model *model, struct vector tables, size_t index)
{
  int64_t at = tables.start + 4 * (int64_t)index;
  return table_at(model, at + (int64_t)number_at(model, at, 4));
}

static struct table subtable(const struct table *table, unsigned index)
{
  int64_t at = field(table, index);
  return table_at(table->model, at + (int64_t)number_at(table->model, at, 4));
}

/* A vector of int32, all of it within the file. */
static struct vector integers(const struct table *table, unsigned index)
{
  struct vector found;
  vector(table, index, &found);
  if (found.count) {
    uint64_t bytes = 4 * (uint64_t)found.count;
    if (bytes > table->model->size || (uint64_t)found.start + bytes > table->model->size)
      BROKEN("something in it points to byte %lld of %zu", (long long)found.start, table->model->size);
  }
  return found;
}

int32_t dimension(const unsigned char *shape, size_t position)
{
  uint32_t value = 0;
  for (size_t i = 0; i < 4; i++) value |= (uint32_t)shape[4 * position + i] << (8 * i);
  return (int32_t)value;
}

uint64_t elements(const struct tensor *tensor)
{
  uint64_t count = 1;
  for (size_t i = 0; i < tensor->rank; i++) {
    int32_t size = dimension(tensor->shape, i);
    if (size <= 0) return 0;
    if (count > UINT64_MAX / (uint64_t)size) return UINT64_MAX;
    count *= (uint64_t)size;
  }
  return count;
}

/* Describing the model */

static void describe_tensor(const struct model *model, struct vector tensors, int32_t index, struct tensor *found)
{
  struct vector name, shape, signature, scale;
  if (index < 0 || (size_t)index >= tensors.count) BROKEN("there is no tensor %d among %zu", index, tensors.count);
  struct table tensor = element(model, tensors, (size_t)index);
  vector(&tensor, 3, &name);
  if ((uint64_t)name.start + name.count > model->size) BROKEN("a string runs past the end of the file");
  shape = integers(&tensor, 0), signature = integers(&tensor, 7);
  *found = (struct tensor){
      .index = index,
      .name = (const char *)model->bytes + name.start,
      .name_length = name.count,
      .shape = model->bytes + shape.start,
      .rank = shape.count,
      .shape_signature = field(&tensor, 7) >= 0 ? model->bytes + signature.start : NULL,
      .signature_rank = signature.count,
      .dtype = (unsigned)number(&tensor, 1, 1),
  };
  if (field(&tensor, 4) < 0) return;
  struct table quantisation = subtable(&tensor, 4);
  vector(&quantisation, 2, &scale);
  found->is_quantised = scale.count > 0;
}

static size_t describe_ports(const struct model *model, const struct table *graph, unsigned field_index,
                             struct tensor *found, const char *what)
{
  struct vector tensors, ports = integers(graph, field_index);
  vector(graph, 0, &tensors);
  if (ports.count > TENSORS_MAX)
    fail(EXIT_DATA, "inputs-unsupported", "measure it with litert_runner", "the model has %zu %s, more than %d",
         ports.count, what, TENSORS_MAX);
  for (size_t i = 0; i < ports.count; i++)
    describe_tensor(model, tensors, dimension(model->bytes + ports.start, i), &found[i]);
  return ports.count;
}

static void check_buffers(const struct model *model, const struct table *root)
{
  struct vector buffers;
  vector(root, 4, &buffers);
  for (size_t i = 0; i < buffers.count; i++) {
    struct table buffer = element(model, buffers, i);
    uint64_t offset = number(&buffer, 1, 8), size = number(&buffer, 2, 8);
    if (offset > 1 && (offset > model->size || size > model->size - offset))
      BROKEN("buffer %zu lies at bytes %llu and %llu more, outside the file", i, (unsigned long long)offset,
             (unsigned long long)size);
  }
}

/* The runtime runs signatures; a model without any has one for its first subgraph. */
static size_t first_signature(const struct model *model, const struct table *root)
{
  struct vector signatures;
  vector(root, 7, &signatures);
  for (size_t i = 0; i < signatures.count; i++) {
    struct table signature = element(model, signatures, i);
    if (number(&signature, 4, 4) == 0) return i;
  }
  if (signatures.count)
    fail(EXIT_DATA, "model-invalid", "measure it with litert_runner, which runs the first subgraph itself",
         "none of the model's %zu signatures runs its first subgraph", signatures.count);
  return 0;
}

static void describe(struct model *model)
{
  struct vector subgraphs, operators;
  struct table root = table_at(model, (int64_t)number_at(model, 0, 4));
  vector(&root, 2, &subgraphs);
  if (!subgraphs.count) BROKEN("it has no subgraphs");
  for (size_t i = 0; i < subgraphs.count; i++) element(model, subgraphs, i);
  check_buffers(model, &root);
  struct table graph = element(model, subgraphs, 0);
  vector(&graph, 3, &operators);
  model->subgraphs = subgraphs.count, model->ops = operators.count;
  model->inputs = describe_ports(model, &graph, 1, model->input, "inputs");
  model->outputs = describe_ports(model, &graph, 2, model->output, "outputs");
  model->signature = first_signature(model, &root);
}

static void refuse_foreign(const struct model *model)
{
  char start[16 * 4 + 1] = "";
  if (model->size >= 8 && memcmp(model->bytes + 4, "TFL3", 4) == 0) return;
  for (size_t i = 0, used = 0; i < 16 && i < model->size; i++, used = strlen(start)) {
    unsigned char byte = model->bytes[i];
    bool is_plain = byte >= ' ' && byte < 0x7f && byte != '\\' && byte != '\'';
    snprintf(start + used, sizeof start - used, is_plain ? "%c" : "\\x%02x", byte);
  }
  fail(EXIT_DATA, "model-invalid", "give a .tflite file, not an archive or a web page",
       "not a TFLite model: no TFL3 identifier at byte 4; the file starts with b'%s'", start);
}

void model_open(struct model *model, const struct flags *flags)
{
  struct stat about;
  struct sha256 hash;
  void *bytes = MAP_FAILED;
  model->name = flags->model;
  int fd = open(model->name, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
    if (about.st_size == 0)
      fail(EXIT_DATA, "model-empty", "push the model again; was the disk full?", "%s is empty", model->name);
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  } else if (fd >= 0) {
    errno = EISDIR;
  }
  if (bytes == MAP_FAILED)
    fail(EXIT_DATA, "model-missing", "check the path, that it is a file, and that this user may read it",
         "cannot read %s: %s", model->name, strerror(errno));
  model->bytes = bytes, model->size = (size_t)about.st_size;
  snprintf(model->path, sizeof model->path, "/proc/self/fd/%d", fd);
  sha256_start(&hash);
  sha256_add(&hash, model->bytes, model->size);
  sha256_finish(&hash, model->sha256);
  if (flags->expect_sha256 && strcmp(flags->expect_sha256, model->sha256) != 0)
    fail(EXIT_DATA, "sha-mismatch", "push the model again; the copy on the device differs",
         "%s has SHA-256 %s, asked for %s", model->name, model->sha256, flags->expect_sha256);
  refuse_foreign(model);
  describe(model);
  madvise(bytes, model->size, MADV_DONTNEED); /* else the file would count as memory of before the model */
}

/* Saying it */

static void write_shape(struct text *t, const char *key, const unsigned char *shape, size_t rank)
{
  json_open(t, key, '[');
  for (size_t i = 0; i < rank; i++) json_int(t, NULL, dimension(shape, i));
  json_close(t, ']');
}

static void write_ports(struct text *t, const char *key, const struct tensor *tensors, size_t count)
{
  json_open(t, key, '[');
  for (size_t i = 0; i < count; i++) {
    const struct tensor *tensor = &tensors[i];
    json_open(t, NULL, '{');
    json_bytes(t, "name", tensor->name, tensor->name_length);
    write_shape(t, "shape", tensor->shape, tensor->rank);
    if (tensor->shape_signature) write_shape(t, "shape_signature", tensor->shape_signature, tensor->signature_rank);
    else json_null(t, "shape_signature");
    json_string(t, "dtype", dtype_name(tensor->dtype));
    json_close(t, '}');
  }
  json_close(t, ']');
}

void model_write(const struct model *model, struct text *t)
{
  json_string(t, "sha256", model->sha256);
  json_int(t, "bytes", (int64_t)model->size);
  json_int(t, "subgraphs", (int64_t)model->subgraphs);
  json_int(t, "ops", (int64_t)model->ops);
  write_ports(t, "inputs", model->input, model->inputs);
  write_ports(t, "outputs", model->output, model->outputs);
}
