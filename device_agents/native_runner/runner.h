/* runner.h - what the files of the native runner know of one another.
 *
 * One job per file, in the order in which they build on one another; clock.c, text.c, file.c and sha256.c of the agent
 * are compiled in as well.
 *
 *   say.c        prints the lines of the protocol, and the last one when something is wrong
 *   flags.c      turns the command line into struct flags
 *   process.c    what the kernel says of this process: memory, threads, CPU time
 *   model.c      reads the model file before the runtime sees it
 *   seed.c       makes inputs from a seed, the same bytes as numpy does in litert_runner.py
 *   npz.c        reads inputs from an .npz
 *   litert.c     opens libLiteRt.so and says why it cannot
 *   complaint.c  keeps what the runtime says on standard error, and what it means for the user
 *   session.c    a loaded model with its inputs set
 *   delegation.c which nodes a delegate took
 *   loop.c       the timed loops
 *   profile.c    the runtime's own operator profile
 *   main.c       the order of things
 */
#ifndef DEVBENCH_NATIVE_RUNNER_H
#define DEVBENCH_NATIVE_RUNNER_H

#include "../agent/agent.h"

#define RUNNER_VERSION "1"
#define RUNTIME_VERSION "2.3.0" /* the release of ai-edge-litert whose C interface is declared here */

enum {
  EXIT_DATA = 65,
  EXIT_RUNTIME = 69,
  EXIT_INTERNAL = 70,

  THREADS_MAX = 1024,
  RUNS_MAX = 200000,
  PROFILED_RUNS_MAX = 2000,
  CHUNK = 500,
  TENSORS_MAX = 256,
  RANK_MAX = 8,
};

/* say.c */
void say(struct text *line);
struct text *event(const char *name); /* an object that is open and has its "event" */
_Noreturn void fail(int status, const char *kind, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* flags.c */
struct flags {
  bool check, beside, profile;
  const char *runtime, *model, *delegate, *copy, *inputs, *expect_sha256;
  int64_t threads, warmup_runs, warmup_min_ms, runs, min_ms, max_ms, seed;
  bool is_xnnpack, is_copy;
};
void flags_parse(struct flags *flags, char **words);
void flags_write(const struct flags *flags, struct text *t);

/* process.c: -1 where /proc does not say */
struct thread_times {
  int count;
  pid_t tid[THREADS_MAX + 256];
  int64_t cpu_ns[THREADS_MAX + 256];
};
int64_t status_kb(const char *field);
int64_t thread_count(void);
bool thread_times_read(struct thread_times *times);
void json_known(struct text *t, const char *key, int64_t value); /* null where it is negative */

/* model.c */
enum { F32, F16, I32, U8, I64, STRING, BOOL, I16, C64, I8, F64, C128, U64, RESOURCE, VARIANT, U32, U16, I4, BF16 };
struct tensor {
  int32_t index;
  const char *name;
  size_t name_length;
  const unsigned char *shape, *shape_signature; /* int32, little-endian, not aligned; NULL: absent */
  size_t rank, signature_rank;
  unsigned dtype;
  bool is_quantised;
};
struct model {
  const char *name;
  char path[32]; /* of the open descriptor, so that the runtime loads the very file that was hashed */
  const unsigned char *bytes;
  size_t size;
  char sha256[65];
  size_t subgraphs, ops, inputs, outputs;
  size_t signature; /* the one that runs the first subgraph */
  struct tensor input[TENSORS_MAX], output[TENSORS_MAX];
};
void model_open(struct model *model, const struct flags *flags);
void model_write(const struct model *model, struct text *t);
const char *dtype_name(unsigned dtype);
size_t dtype_bytes(unsigned dtype); /* 0: not measured here */
int32_t dimension(const unsigned char *shape, size_t position);
uint64_t elements(const struct tensor *tensor);

/* seed.c, npz.c */
void seed_fill(const struct tensor *tensor, int64_t seed, size_t position, unsigned char *to);
void npz_open(const char *path);
void npz_fill(const struct model *model, size_t position, unsigned char *to);
void npz_close(const struct model *model);

/* litert.c: the C interface, declared here because the wheel has no headers */
typedef void *handle;
struct ranked {
  int dtype;
  struct {
    unsigned rank : 7, has_strides : 1;
    int32_t dimensions[RANK_MAX];
    uint32_t strides[RANK_MAX];
  } layout;
};
struct profiled {
  const char *tag;
  int type;
  uint64_t start_us, elapsed_us;
  struct {
    int64_t footprint_kb;
    size_t allocated_bytes, in_use_bytes;
  } begin_memory, end_memory;
  uint64_t node, subgraph;
  int source;
};
struct environment_option {
  int tag;
  struct {
    int type;
    int64_t value;
  } value;
};
#define LITERT(X)                                                                                                     \
  X(int, CreateEnvironment, (int, const struct environment_option *, handle *))                                       \
  X(int, CreateModelFromFile, (handle, const char *, handle *))                                                       \
  X(int, CreateOptions, (handle *))                                                                                   \
  X(int, SetOptionsHardwareAccelerators, (handle, int))                                                               \
  X(int, CreateOpaqueOptions, (const char *, void *, void (*)(void *), handle *))                                     \
  X(int, AddOpaqueOptions, (handle, handle))                                                                          \
  X(int, CreateCompiledModel, (handle, handle, handle, handle *))                                                     \
  X(void, DestroyCompiledModel, (handle))                                                                             \
  X(int, GetModelSignature, (handle, size_t, handle *))                                                               \
  X(int, GetNumSignatureInputs, (handle, size_t *))                                                                   \
  X(int, GetNumSignatureOutputs, (handle, size_t *))                                                                  \
  X(int, GetSignatureInputTensorByIndex, (handle, size_t, handle *))                                                  \
  X(int, GetSignatureOutputTensorByIndex, (handle, size_t, handle *))                                                 \
  X(int, GetRankedTensorType, (handle, struct ranked *))                                                              \
  X(int, GetTensorIndex, (handle, uint32_t *))                                                                        \
  X(int, GetCompiledModelInputBufferRequirements, (handle, size_t, size_t, handle *))                                 \
  X(int, GetCompiledModelOutputBufferRequirements, (handle, size_t, size_t, handle *))                                \
  X(int, CreateManagedTensorBufferFromRequirements, (handle, const struct ranked *, handle, handle *))                \
  X(int, GetTensorBufferPackedSize, (handle, size_t *))                                                               \
  X(int, LockTensorBuffer, (handle, void **, int))                                                                    \
  X(int, UnlockTensorBuffer, (handle))                                                                                \
  X(int, RunCompiledModel, (handle, size_t, size_t, handle *, size_t, handle *))                                      \
  X(int, CompiledModelGetProfiler, (handle, handle *))                                                                \
  X(int, StartProfiler, (handle))                                                                                     \
  X(int, StopProfiler, (handle))                                                                                      \
  X(int, GetNumProfilerEvents, (handle, int *))                                                                       \
  X(int, GetProfilerEvents, (handle, int, struct profiled *))                                                         \
  X(int, GetProfileSummary, (handle, handle, const char **))
#define LITERT_FIELD(type, name, arguments) type(*name) arguments;
struct litert {
  handle environment;
  LITERT(LITERT_FIELD)
};
extern struct litert litert;
void litert_open(const struct flags *flags);
void litert_write(const struct flags *flags, struct text *t); /* the fields of `start` */

/* complaint.c */
void complaint_begin(void);
const char *complaint_end(void); /* what was said since, passed on to standard error */
struct session;
_Noreturn void complain(const struct session *s, const char *said, int status, bool is_running);

/* session.c */
struct session {
  const struct flags *flags;
  const struct model *model;
  handle compiled, profiler;
  struct port {
    handle buffer;
    size_t bytes, position; /* among the inputs or outputs of the first subgraph */
    unsigned char *copy;
  } input[TENSORS_MAX], output[TENSORS_MAX];
  handle input_buffers[TENSORS_MAX], output_buffers[TENSORS_MAX];
  int64_t create_ns, allocate_ns, first_ns;
  int64_t threads_before, threads_allocated, threads_after;
  int64_t rss_before_kb, rss_init_kb, rss_first_kb;
};
void session_open(struct session *s, const struct model *model, const struct flags *flags, bool is_profiled);
void session_first_run(struct session *s);
bool plain_kernels_work(const struct session *s); /* whether the model runs without the delegate that refused it */
int session_run(struct session *s);
void session_copy_in(struct session *s);
void session_copy_out(struct session *s);
void session_output_sha256(struct session *s, char hex[65]);
bool session_inputs_intact(struct session *s);

/* delegation.c */
struct delegation {
  bool is_known;
  int64_t delegated, partitions;
  struct {
    char name[64];
    int64_t count;
  } remaining[128];
  int kinds;
};
void delegation_read(struct delegation *found, const struct model *model, const struct profiled *events, int count);
void delegation_find(struct delegation *found, struct session *measured); /* which is let go */
void delegation_say(const struct delegation *found, const struct model *model);

/* loop.c */
struct limits {
  int64_t runs, min_ns, max_ns;
};
struct loop {
  const char *phase, *stopped_by;
  int64_t count, room;
  int64_t *start, *invoke, *copy_in, *copy_out;
};
void loop_run(struct loop *loop, struct session *s, const char *phase, struct limits limits);
void loop_warm_up(struct loop *loop, struct session *s);
void loop_report(const struct loop *loop);
void loop_forget(struct loop *loop);

/* profile.c */
enum { OPERATOR_INVOKED = 2, DELEGATE_OPERATOR_INVOKED = 4, DELEGATE_OPERATOR_PROFILED = 8, EVENTS_MAX = 2048 };
bool is_delegate_event(const struct profiled *e);
bool begins_partition(const struct profiled *e);
int profiled_run(struct session *s, const struct profiled **events, int *count, int64_t *elapsed_ns); /* the status */
void profile(struct session *s);

#endif
