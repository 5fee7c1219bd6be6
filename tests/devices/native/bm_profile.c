/* Operator profiles and runtime info of the stand-in, in the shapes of the real tool (see tests/data).
 *
 * The operators are those of face_detection_short_range.tflite, whatever the model: 89 of XNNPACK's, or the 164 nodes of
 * plain kernels; an accelerator shows one row. Together they take 0.88 of a profiled inference, each its recorded share;
 * under the profiler an inference takes 1.07 times as long. With the setting slow_node N (BM_SLOW_NODE) the operator that
 * runs N-th takes twice as long, profiled or not. Not made here: the text form of a proto, edges of the runtime info.
 */
#include "bm.h"
#include "bm_ops.h"

#include <stdlib.h>
#include <string.h>

#define OPS_MAX 256
#define TOP 10
#define SHARE 0.88
#define SUBGRAPH "keras2tflite_facedetector-front.tflite.generated"

struct row {
  struct op op;
  double us, first_us, memory_kb;
};

static struct row rows[OPS_MAX];
static int row_count;

static const struct op *ops_of(enum delegate delegate, int *count)
{
  static const struct op gpu[] = {{"TfLiteGpuDelegateV2", "[regressors, classificators]:164", 1.0}};
  static const struct op nnapi[] = {{"TfLiteNnapiDelegate", "[regressors, classificators]:164", 1.0}};
  *count = 1;
  if (delegate == DELEGATE_GPU) return gpu;
  if (delegate == DELEGATE_NNAPI) return nnapi;
  *count = delegate == DELEGATE_NONE ? (int)(sizeof plain_ops / sizeof *plain_ops)
                                     : (int)(sizeof xnnpack_ops / sizeof *xnnpack_ops);
  return delegate == DELEGATE_NONE ? plain_ops : xnnpack_ops;
}

double profile_share(enum delegate delegate, int node)
{
  int count;
  const struct op *ops = ops_of(delegate, &count);
  return node > 0 && node <= count ? SHARE * ops[node - 1].share : 0;
}

static void fill_ops(enum delegate delegate, double inference_us, int slow_node)
{
  const struct op *ops = ops_of(delegate, &row_count);
  double parts = 0;
  for (int i = 0; i < row_count; i++) parts += ops[i].share * (i + 1 == slow_node ? 2 : 1);
  for (int i = 0; i < row_count; i++) {
    double us = SHARE * inference_us * ops[i].share * (i + 1 == slow_node ? 2 : 1) / parts;
    rows[i] = (struct row){.op = ops[i], .us = us, .first_us = us};
  }
}

static void fill_init(enum delegate delegate, double init_us)
{
  int has_delegate = delegate != DELEGATE_NONE;
  double shares[2] = {has_delegate ? 0.3 : 0.8, 0.5};
  row_count = has_delegate ? 2 : 1;
  if (has_delegate)
    rows[0] = (struct row){.op = {"ModifyGraphWithDelegate", "ModifyGraphWithDelegate/0", 0},
                           .us = (double)(long)(shares[0] * init_us), .memory_kb = 1344};
  rows[row_count - 1] = (struct row){.op = {"AllocateTensors", "AllocateTensors/0", 0},
                                     .us = (double)(long)(shares[has_delegate] * init_us),
                                     .memory_kb = has_delegate ? 2688 : 128};
  for (int i = 0; i < row_count; i++) rows[i].first_us = rows[i].us;
}

static int dearer(const void *left, const void *right)
{
  double difference = (*(const struct row *const *)right)->us - (*(const struct row *const *)left)->us;
  if (difference == 0) return *(const struct row *const *)left < *(const struct row *const *)right ? -1 : 1;
  return difference > 0 ? 1 : -1;
}

static void banner(FILE *out, const char *title)
{
  fprintf(out, "============================== %s ==============================\n", title);
}

static void print_rows(FILE *out, int csv, const char *title, const struct row **ordered, int count, double total_us)
{
  double sum = 0;
  banner(out, title);
  if (csv) fputs("node type, first, avg_ms, %, cdf%, mem KB, times called, name\n", out);
  else fprintf(out, "\t%40s\t%9s\t%9s\t%8s\t%8s\t%10s\t%9s\t%s\n", "[node type]", "[first]", "[avg ms]", "[%]", "[cdf%]",
               "[mem KB]", "[times called]", "[Name]");
  for (int i = 0; i < count; i++) {
    const struct row *row = ordered[i];
    double percent = total_us > 0 ? 100 * row->us / total_us : 0;
    char name[256];
    sum += percent;
    snprintf(name, sizeof name, "%s", row->op.name);
    for (char *comma = name; csv && (comma = strchr(comma, ',')) != NULL;) *comma = '\t';
    if (csv) fprintf(out, "%s, %g, %g, %g%%, %g%%, %g, 1, %s\n", row->op.type, (double)(long)row->first_us / 1e3,
                     row->us / 1e3, percent, sum, row->memory_kb, name);
    else fprintf(out, "\t%40s\t%9.3f\t%9.3f\t%7.3f%%\t%7.3f%%\t%10.3f\t%9d\t%s\n", row->op.type, row->first_us / 1e3,
                 row->us / 1e3, percent, sum, row->memory_kb, 1, name);
  }
  fputc('\n', out);
}

static void print_types(FILE *out, int csv)
{
  static struct row types[OPS_MAX];
  static const struct row *ordered[OPS_MAX];
  int counts[OPS_MAX] = {0}, count = 0;
  double total_us = 0, sum = 0;
  for (int i = 0; i < row_count; i++) {
    int place = 0;
    while (place < count && strcmp(types[place].op.type, rows[i].op.type) != 0) place++;
    if (place == count) types[count++] = (struct row){.op = rows[i].op};
    types[place].us += rows[i].us;
    types[place].memory_kb += rows[i].memory_kb;
    counts[place]++;
  }
  for (int i = 0; i < count; i++) {
    types[i].us = (double)(long)types[i].us;
    total_us += types[i].us;
    ordered[i] = &types[i];
  }
  qsort(ordered, (size_t)count, sizeof *ordered, dearer);
  fprintf(out, "Number of nodes executed: %d\n", row_count);
  banner(out, "Summary by node type");
  if (csv) fputs("node type, count, avg_ms, avg %, cdf %, mem KB, times called\n", out);
  else fprintf(out, "\t%40s\t%9s\t%10s\t%11s\t%11s\t%10s\t%9s\n", "[Node type]", "[count]", "[avg ms]", "[avg %]",
               "[cdf %]", "[mem KB]", "[times called]");
  for (int i = 0; i < count; i++) {
    const struct row *row = ordered[i];
    int number = counts[row - types];
    double percent = total_us > 0 ? 100 * row->us / total_us : 0;
    sum += percent;
    if (csv) fprintf(out, "%s, %d, %g, %g%%, %g%%, %g, %d\n", row->op.type, number, row->us / 1e3, percent, sum,
                     row->memory_kb, number);
    else fprintf(out, "\t%40s\t%9d\t%10.3f\t%10.3f%%\t%10.3f%%\t%10.3f\t%9d\n", row->op.type, number, row->us / 1e3,
                 percent, sum, row->memory_kb, number);
  }
  fputc('\n', out);
}

static void print_block(FILE *out, int csv, const char *title, long runs)
{
  static const struct row *ordered[OPS_MAX];
  double total_us = 0;
  for (int i = 0; i < row_count; i++) {
    ordered[i] = &rows[i];
    total_us += rows[i].us;
  }
  fprintf(out, "%s\n", title);
  print_rows(out, csv, "Run Order", ordered, row_count, total_us);
  qsort(ordered, (size_t)row_count, sizeof *ordered, dearer);
  print_rows(out, csv, "Top by Computation Time", ordered, row_count < TOP ? row_count : TOP, total_us);
  print_types(out, csv);
  long long whole = (long long)total_us;
  if (runs == 1) fprintf(out, "Timings (microseconds): count=1 curr=%lld\n", whole);
  else fprintf(out, "Timings (microseconds): count=%ld first=%lld curr=%lld min=%lld max=%lld avg=%g std=0\n", runs, whole,
               whole, whole, whole, total_us);
  fprintf(out, "Memory (bytes): count=0\n%d nodes observed\n\n\n", row_count);
}

/* Protos: a growing buffer, and fields put into it. */

struct buffer {
  unsigned char bytes[131072];
  size_t length;
};

static void put_number(struct buffer *buffer, uint64_t value)
{
  do {
    buffer->bytes[buffer->length++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
  } while (value >>= 7);
}

static void put_int(struct buffer *buffer, int field, uint64_t value)
{
  put_number(buffer, (uint64_t)field << 3);
  put_number(buffer, value);
}

static void put_real(struct buffer *buffer, int field, float value)
{
  put_number(buffer, (uint64_t)field << 3 | 5);
  memcpy(buffer->bytes + buffer->length, &value, sizeof value);
  buffer->length += sizeof value;
}

static void put_bytes(struct buffer *buffer, int field, const void *content, size_t length)
{
  put_number(buffer, (uint64_t)field << 3 | 2);
  put_number(buffer, length);
  memcpy(buffer->bytes + buffer->length, content, length);
  buffer->length += length;
}

static void put_text(struct buffer *buffer, int field, const char *text)
{
  put_bytes(buffer, field, text, strlen(text));
}

static void put_stat(struct buffer *outer, int field, double value, long runs)
{
  struct buffer stat = {.length = 0};
  uint64_t whole = (uint64_t)value;
  put_int(&stat, 1, whole);
  put_int(&stat, 2, whole);
  put_int(&stat, 3, whole);
  put_real(&stat, 4, 0);
  put_real(&stat, 5, 0);
  put_int(&stat, 6, whole);
  put_int(&stat, 7, whole);
  put_int(&stat, 8, (uint64_t)(value * (double)runs));
  put_int(&stat, 9, (uint64_t)runs);
  put_bytes(outer, field, stat.bytes, stat.length);
}

static void put_block(struct buffer *outer, int field, long runs)
{
  static struct buffer subgraph, model;
  subgraph.length = model.length = 0;
  put_text(&subgraph, 1, SUBGRAPH);
  put_int(&subgraph, 2, 0);
  for (int i = 0; i < row_count; i++) {
    struct buffer op = {.length = 0};
    put_text(&op, 1, rows[i].op.type);
    put_stat(&op, 2, rows[i].us, runs);
    put_stat(&op, 3, rows[i].memory_kb, runs);
    put_int(&op, 4, 1);
    put_text(&op, 5, rows[i].op.name);
    put_int(&op, 6, (uint64_t)i);
    put_bytes(&subgraph, 3, op.bytes, op.length);
  }
  put_bytes(&model, 1, subgraph.bytes, subgraph.length);
  put_bytes(outer, field, model.bytes, model.length);
}

void profile_write(enum delegate delegate, double inference_us, long runs, double init_us, int slow_node)
{
  static struct buffer proto;
  const char *mode = flag_string("op_profiling_output_mode"), *path = flag_string("op_profiling_output_file");
  FILE *file = *path != '\0' ? fopen(path, "we") : NULL, *out = file != NULL ? file : stdout;
  if (strcmp(mode, "proto") == 0 && file != NULL) {
    fill_init(delegate, init_us);
    put_block(&proto, 2, 1);
    fill_ops(delegate, inference_us, slow_node);
    put_block(&proto, 3, runs);
    fwrite(proto.bytes, 1, proto.length, file);
  } else {
    int csv = strcmp(mode, "stdout") != 0;
    const char *prefix = file != NULL ? "" : "INFO: ";
    fputs(prefix, out);
    fill_init(delegate, init_us);
    print_block(out, csv, "Profiling Info for Benchmark Initialization:", 1);
    if (file == NULL) fputc('\n', out);
    fputs(prefix, out);
    fill_ops(delegate, inference_us, slow_node);
    print_block(out, csv, "Operator-wise Profiling Info for Regular Benchmark Runs:", runs);
    if (file == NULL) fputc('\n', out);
  }
  if (file != NULL) fclose(file);
}

/* Which nodes a delegate took: all of them, or none. */
void runtime_info_write(enum delegate delegate)
{
  static const char *const names[] = {NULL, "TfLiteXNNPackDelegate", "TfLiteGpuDelegateV2", "TfLiteNnapiDelegate"};
  static struct buffer subgraph, proto;
  struct buffer every = {.length = 0}, plan = {.length = 0}, node, taken = {.length = 0};
  int count = (int)(sizeof plain_ops / sizeof *plain_ops), is_taken = names[delegate] != NULL;
  for (int i = 0; i < count; i++) put_number(&every, (uint64_t)i);
  put_number(&plan, (uint64_t)count);
  put_int(&subgraph, 1, 0);
  for (int i = 0; i < count; i++) {
    node.length = 0;
    put_int(&node, 1, (uint64_t)i);
    put_text(&node, 2, plain_ops[i].type);
    if (is_taken) put_int(&node, 9, (uint64_t)count);
    put_bytes(&subgraph, 3, node.bytes, node.length);
  }
  if (is_taken) {
    put_text(&taken, 1, names[delegate]);
    put_bytes(&taken, 2, every.bytes, every.length);
    node.length = 0;
    put_int(&node, 1, (uint64_t)count);
    put_text(&node, 2, names[delegate]);
    put_text(&node, 3, names[delegate]);
    put_bytes(&node, 8, taken.bytes, taken.length);
    put_bytes(&subgraph, 3, node.bytes, node.length);
  }
  put_bytes(&subgraph, 4, is_taken ? plan.bytes : every.bytes, is_taken ? plan.length : every.length);
  put_int(&subgraph, 5, 1);
  put_text(&subgraph, 6, SUBGRAPH);
  put_bytes(&proto, 2, subgraph.bytes, subgraph.length);
  FILE *file = fopen(flag_string("model_runtime_info_output_file"), "we");
  if (file == NULL) {
    fprintf(stderr, "ERROR: Failed to open file: %s\n", flag_string("model_runtime_info_output_file"));
    return;
  }
  fwrite(proto.bytes, 1, proto.length, file);
  fclose(file);
}
