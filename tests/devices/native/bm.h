/* What the parts of the stand-in benchmark_model share. */
#ifndef BM_H
#define BM_H

#include <stdint.h>
#include <stdio.h>

struct flag_text {
  const char *name, *fallback, *type;
  int provider; /* 1: only in builds with the gpu and nnapi providers */
  const char *text;
};

struct flag_label {
  const char *label, *name;
};

/* benchmark_model.c: the tool, called by bm_main.c as a program and by app.c inside an app */
int benchmark_main(int argc, char **argv);

/* bm_flags.c */
enum parsed { PARSED_OK, PARSED_HELP, PARSED_BAD };
enum parsed flags_parse(int argc, char **argv, int providers);
void flags_usage(const char *program, int providers);
void flags_echo(int providers);
int flag_set(const char *name);
const char *flag_string(const char *name);
long flag_int(const char *name);
double flag_float(const char *name);
int flag_bool(const char *name);
void flag_override(const char *name, const char *value);

/* bm_latency.c */
enum delegate { DELEGATE_NONE, DELEGATE_XNNPACK, DELEGATE_GPU, DELEGATE_NNAPI };
struct settings {
  double slowdown, noise, time_scale;
  uint64_t seed;
  int providers, crash_after; /* crash_after: runs until SIGSEGV, 0 for never */
  int slow_node; /* which operator takes twice as long, 0 for none */
};
struct settings settings_read(void);
void latency_start(const struct settings *settings, double model_bytes, enum delegate delegate, int threads);
double latency_next_us(void);
void latency_spend(double seconds);
void latency_stop(void);

/* bm_profile.c */
double profile_share(enum delegate delegate, int node);
void profile_write(enum delegate delegate, double inference_us, long runs, double init_us, int slow_node);
void runtime_info_write(enum delegate delegate);

#endif
