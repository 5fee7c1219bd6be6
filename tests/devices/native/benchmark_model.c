/* A stand-in for TFLite's benchmark_model (Interpreter tool, August 2026): same flags, same output, latencies from a model.
 *
 * It loads nothing and infers nothing. How long a run takes is stated in bm_latency.c, as are its settings; what its
 * operators take in bm_profile.c. What it does not do: signatures, input files; their flags are taken and nothing follows.
 */
#include "bm.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS_MAX 2000000

static int64_t runs_us[RUNS_MAX];
static struct settings settings;
static int runs_done, cache_is_warm;

struct phase {
  long count;
  int64_t first, last, min, max, p5, median, p95;
  double average, deviation;
};

static int failed(void)
{
  fflush(stdout);
  fputs("ERROR: Benchmarking failed.\n", stderr);
  return 1;
}

static int by_size(const void *left, const void *right)
{
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static struct phase summarise(long count)
{
  struct phase phase = {.count = count};
  double sum = 0, squares = 0;
  if (count == 0) return phase;
  phase.first = runs_us[0];
  phase.last = runs_us[count - 1];
  for (long i = 0; i < count; i++) {
    sum += (double)runs_us[i];
    squares += (double)runs_us[i] * (double)runs_us[i];
  }
  qsort(runs_us, (size_t)count, sizeof *runs_us, by_size);
  phase.min = runs_us[0];
  phase.max = runs_us[count - 1];
  phase.p5 = runs_us[(long)((double)count * 0.05)];
  phase.median = runs_us[count / 2];
  phase.p95 = runs_us[(long)((double)count * 0.95)];
  phase.average = sum / (double)count;
  phase.deviation = floor(sqrt(floor(fmax(0, squares / (double)count - phase.average * phase.average))));
  return phase;
}

static void print_phase(const struct phase *phase)
{
  printf("INFO: count=%ld", phase->count);
  if (phase->count > 0 && phase->min == phase->max)
    printf(" curr=%lld%s", (long long)phase->last, phase->count > 1 ? "(all same)" : "");
  else if (phase->count > 0)
    printf(" first=%lld curr=%lld min=%lld max=%lld avg=%g std=%lld", (long long)phase->first, (long long)phase->last,
           (long long)phase->min, (long long)phase->max, phase->average, (long long)phase->deviation);
  printf(" p5=%lld median=%lld p95=%lld\n\n", (long long)phase->p5, (long long)phase->median, (long long)phase->p95);
  fflush(stdout);
}

static struct phase run_phase(long count_min, double seconds_min, double seconds_max)
{
  double elapsed_s = 0, delay_s = flag_float("run_delay");
  long count = 0;
  printf("INFO: Running benchmark for at least %ld iterations and at least %g seconds but terminate if exceeding %g "
         "seconds.\n", count_min, seconds_min, seconds_max);
  fflush(stdout);
  while (count < RUNS_MAX && (count < count_min || elapsed_s < seconds_min) && (count == 0 || elapsed_s <= seconds_max)) {
    double us = latency_next_us();
    double spent_s = us / 1e6 + (delay_s > 0 ? delay_s : 0);
    runs_us[count++] = (int64_t)us;
    elapsed_s += spent_s;
    latency_spend(spent_s);
    if (++runs_done == settings.crash_after) raise(SIGSEGV);
  }
  struct phase phase = summarise(count);
  print_phase(&phase);
  return phase;
}

/* The size of a file that can be a model, or -1 after saying what the real tool says. */
static double load_model(const char *path)
{
  struct stat status;
  char head[8] = "";
  FILE *file = fopen(path, "re");
  if (file == NULL || fstat(fileno(file), &status) != 0) {
    fprintf(stderr, "ERROR: Could not open '%s'.\nERROR: The model allocation is null/empty\n", path);
  } else if (fread(head, 1, 8, file) == 8 && memcmp(head + 4, "TFL3", 4) == 0) {
    fclose(file);
    printf("INFO: Loaded model %s\n", path);
    return (double)status.st_size;
  } else {
    fputs("ERROR: The model is not a valid Flatbuffer buffer\n", stderr);
  }
  if (file != NULL) fclose(file);
  fprintf(stderr, "ERROR: Failed to load model %s\n", path);
  return -1;
}

static void applied(const char *name, int replaced, const char *kernel)
{
  printf("INFO: %s delegate created.\n", name);
  fflush(stdout);
  if (settings.providers) /* an Android build says so, on standard error */
    fprintf(stderr, "INFO: Replacing %d out of %d node(s) with delegate (%s) node, yielding 1 partitions for subgraph 0.\n",
            replaced, replaced, kernel);
  printf("INFO: Explicitly applied %s delegate, and the model graph will be completely executed by the delegate.\n", name);
}

/* The real cache holds packed weights; whether it was there before decides how long init takes. */
static void weight_cache(const char *path)
{
  struct stat status;
  puts("INFO: XNNPack file-backed weight cache enabled.");
  cache_is_warm = stat(path, &status) == 0 && status.st_size > 0;
  FILE *file = fopen(path, "ae");
  if (file == NULL) return;
  if (!cache_is_warm) fputs("packed weights\n", file);
  fclose(file);
}

static enum delegate apply_delegates(void)
{
  if (settings.providers && flag_bool("use_gpu")) {
    applied("GPU", 164, "TfLiteGpuDelegateV2");
    return DELEGATE_GPU;
  }
  if (settings.providers && flag_bool("use_nnapi")) {
    applied("NNAPI", 164, "TfLiteNnapiDelegate");
    return DELEGATE_NNAPI;
  }
  if (flag_set("use_xnnpack") && !flag_bool("use_xnnpack")) return DELEGATE_NONE;
  fputs("INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n", stderr);
  if (flag_bool("use_xnnpack")) {
    if (*flag_string("xnnpack_weight_cache_file_path") != '\0') weight_cache(flag_string("xnnpack_weight_cache_file_path"));
    applied("XNNPACK", 164, "TfLiteXNNPackDelegate");
  }
  return DELEGATE_XNNPACK;
}

static void put_float(FILE *file, int key, double value)
{
  float narrow = (float)value;
  fputc(key, file);
  fwrite(&narrow, sizeof narrow, 1, file);
}

static int put_varint(char *buffer, uint64_t value)
{
  int length = 0;
  do buffer[length++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
  while (value >>= 7);
  return length;
}

static void save_result(const char *path, const struct phase *warm, const struct phase *main_phase, double init_us,
                        double size_mb, const double *memory_mb)
{
  char body[64];
  int length = 0;
  FILE *file = fopen(path, "we");
  if (file == NULL) {
    fflush(stdout);
    fprintf(stderr, "ERROR: Failed to save benchmark result to: %s\n", path);
    return;
  }
  printf("INFO: Saving benchmark result to: %s\n", path);
  fputc(0x12, file);
  fputc(50, file);
  const double latency_us[] = {main_phase->average, (double)main_phase->min, (double)main_phase->max, main_phase->deviation,
                               (double)main_phase->median, (double)main_phase->p5, (double)main_phase->p95, init_us,
                               (double)warm->first, warm->average};
  for (int i = 0; i < 10; i++) put_float(file, (i + 1) << 3 | 5, latency_us[i] / 1e3);
  body[length++] = 0x08;
  length += put_varint(body + length, (uint64_t)(memory_mb[0] * 1024));
  body[length++] = 0x10;
  length += put_varint(body + length, (uint64_t)(memory_mb[1] * 1024));
  fprintf(file, "\x1a%c", length);
  fwrite(body, 1, (size_t)length, file);
  length = 0;
  body[length++] = 0x10;
  length += put_varint(body + length, (uint64_t)main_phase->count);
  body[length++] = 0x18;
  length += put_varint(body + length, (uint64_t)warm->count);
  fprintf(file, "\x22%c", length + 10);
  put_float(file, 0x0d, size_mb);
  fwrite(body, 1, (size_t)length, file);
  put_float(file, 0x25, size_mb / (main_phase->average / 1e6));
  fclose(file);
  printf("INFO: Saved benchmark result to: %s\n", path);
}

static void print_memory(const double *memory_mb)
{
  puts("INFO: Note: as the benchmark tool itself affects memory footprint, the following is only APPROXIMATE to the actual "
       "memory footprint of the model at runtime. Take the information at your discretion.");
  printf("INFO: Memory footprint delta from the start of the tool (MB): init=%g overall=%g\n", memory_mb[0], memory_mb[1]);
  if (!flag_bool("report_peak_memory_footprint")) return;
  printf("INFO: Overall peak memory footprint (MB) via periodic monitoring: %g\n", memory_mb[1] + 5.5);
  puts("INFO: Memory status at the end of exeution:\nINFO: - VmRSS              : 13 MB\nINFO: + RssAnnon           : 4 MB\n"
       "INFO: + RssFile + RssShmem : 9 MB");
}

static int benchmark(void)
{
  flags_echo(settings.providers);
  fflush(stdout);
  double bytes = load_model(flag_string("graph"));
  if (bytes < 0) return failed();
  fflush(stdout);
  int explicit = flag_bool("use_xnnpack") || (settings.providers && (flag_bool("use_gpu") || flag_bool("use_nnapi")));
  if (flag_bool("require_full_delegation") && !explicit) {
    fputs("ERROR: Disallowed CPU fallback detected.\n", stderr);
    return failed();
  }
  enum delegate delegate = apply_delegates();
  int profiled = flag_bool("enable_op_profiling");
  settings.slowdown *= (1 + profile_share(delegate, settings.slow_node)) * (profiled ? 1.07 : 1);
  latency_start(&settings, bytes, delegate, (int)flag_int("num_threads"));
  double init_us = floor((delegate == DELEGATE_NONE ? 480 : cache_is_warm ? 900 : 2080) * (1 + bytes / 5e7) * settings.slowdown);
  latency_spend(init_us / 1e6);
  printf("INFO: The input model file size (MB): %g\nINFO: Initialized session in %gms.\n", bytes / 1e6, init_us / 1e3);
  if (flag_bool("export_model_runtime_info")) runtime_info_write(delegate);
  double longest_s = flag_float("max_secs");
  int dry = flag_bool("dry_run");
  struct phase warm = run_phase(dry ? 0 : flag_int("warmup_runs"), dry ? -1 : flag_float("warmup_min_secs"), longest_s);
  struct phase measured = run_phase(dry ? 0 : flag_int("num_runs"), dry ? -1 : flag_float("min_secs"), longest_s);
  latency_stop();
  printf("INFO: Inference timings in us: Init: %g, First inference: %lld, Warmup (avg): %g, Inference (avg): %g\n", init_us,
         (long long)warm.first, warm.average, measured.average);
  double pages = floor(256 * (delegate == DELEGATE_NONE ? 2.9 : 6.9) + bytes / 4096);
  double memory_mb[2] = {pages / 256, (pages + 200) / 256};
  print_memory(memory_mb);
  if (flag_set("result_file_path"))
    save_result(flag_string("result_file_path"), &warm, &measured, init_us, bytes / 1e6, memory_mb);
  if (profiled) profile_write(delegate, measured.average, measured.count, init_us, settings.slow_node);
  return 0;
}

int benchmark_main(int argc, char **argv)
{
  settings = settings_read();
  puts("INFO: STARTING!");
  fflush(stdout);
  const char *slash = strrchr(argv[0], '/');
  enum parsed parsed = flags_parse(argc, argv, settings.providers);
  fflush(stdout);
  if (parsed != PARSED_OK) {
    flags_usage(slash != NULL ? slash + 1 : argv[0], settings.providers);
    return 1;
  }
  if (*flag_string("profiling_output_csv_file") != '\0') {
    flag_override("op_profiling_output_mode", "csv");
    flag_override("op_profiling_output_file", flag_string("profiling_output_csv_file"));
  }
  const char *mode = flag_string("op_profiling_output_mode");
  if (strcmp(mode, "stdout") != 0 && strcmp(mode, "csv") != 0 && strcmp(mode, "proto") != 0) {
    fprintf(stderr, "ERROR: Output mode%s is not supported. Supported values are: 'stdout', 'csv' and 'proto'.\n", mode);
    return failed();
  }
  if (*flag_string("graph") == '\0') {
    fputs("ERROR: Please specify the name of your TF Lite input file with --graph\n", stderr);
    return failed();
  }
  if (flag_int("memory_footprint_check_interval_ms") <= 0) {
    printf("WARN: --memory_footprint_check_interval_ms is set to %ld (ms), This value is invalid, and it will be set to the "
           "default value 50 (ms).\n", flag_int("memory_footprint_check_interval_ms"));
    flag_override("memory_footprint_check_interval_ms", "50");
  }
  int status = benchmark();
  fflush(stdout);
  return status;
}
