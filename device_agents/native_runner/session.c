/* session.c - a loaded model with its inputs set. */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCELERATOR_CPU = 1, READ_LOCK = 0, WRITE_LOCK = 1, REPORT_ERRORS_TO_STDERR = 1 };

static const char *const OTHER_RELEASE = "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION;

/* A call that does not fail with a sound model and this release of the runtime. */
static void must(int status, const char *what)
{
  if (status) fail(EXIT_INTERNAL, "internal", OTHER_RELEASE, "LiteRt%s gives status %d", what, status);
}

static _Noreturn void out_of_memory(void)
{
  fail(EXIT_DATA, "out-of-memory", "use a smaller model or input, or a device with more memory",
       "there is not enough memory for the model's tensors");
}

/* Options are texts that the runtime frees. */
static void add_option(handle options, const char *name, const char *text)
{
  handle option;
  char *copy = strdup(text);
  if (!copy) out_of_memory();
  must(litert.CreateOpaqueOptions(name, copy, free, &option), "CreateOpaqueOptions");
  must(litert.AddOpaqueOptions(options, option), "AddOpaqueOptions");
}

static handle options_of(const struct flags *flags, bool is_profiled)
{
  handle options;
  char cpu[128], runtime[128];
  must(litert.CreateOptions(&options), "CreateOptions");
  must(litert.SetOptionsHardwareAccelerators(options, ACCELERATOR_CPU), "SetOptionsHardwareAccelerators");
  snprintf(cpu, sizeof cpu, "num_threads = %lld\nkernel_mode = \"%s\"\n", (long long)flags->threads,
           flags->is_xnnpack ? "delegate" : "builtin");
  snprintf(runtime, sizeof runtime, "enable_profiling = %s\nerror_reporter_mode = %d\n", is_profiled ? "true" : "false",
           REPORT_ERRORS_TO_STDERR);
  add_option(options, "xnnpack", cpu);
  add_option(options, "runtime_options_string", runtime);
  return options;
}

/* The runtime must see the shape that the file has; what it writes beyond our struct is another release's layout. */
static void ranked_of(handle tensor, const struct tensor *known, struct ranked *ranked)
{
  static struct {
    struct ranked ranked;
    unsigned char beyond[64];
  } room;
  memset(&room, 0xa5, sizeof room);
  must(litert.GetRankedTensorType(tensor, &room.ranked), "GetRankedTensorType");
  bool is_same = room.ranked.layout.rank == known->rank;
  for (size_t i = 0; i < sizeof room.beyond; i++) is_same = is_same && room.beyond[i] == 0xa5;
  for (size_t i = 0; i < known->rank && is_same; i++) {
    int32_t seen = room.ranked.layout.dimensions[i], size = dimension(known->shape, i);
    is_same = seen == size || seen < 0;
    room.ranked.layout.dimensions[i] = size;
  }
  if (!is_same)
    fail(EXIT_RUNTIME, "runtime-missing", OTHER_RELEASE, "the runtime describes tensors otherwise than release %s",
         RUNTIME_VERSION);
  *ranked = room.ranked;
}

static size_t position_of(uint32_t index, const struct tensor *tensors, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (tensors[i].index == (int32_t)index) return i;
  fail(EXIT_INTERNAL, "internal", OTHER_RELEASE, "the runtime names tensor %u, which is no input or output", index);
}

/* An input or output of the signature, which may list them in another order than the subgraph. */
static void open_port(struct session *s, handle tensor, size_t number, bool is_input)
{
  struct port *port = is_input ? &s->input[number] : &s->output[number];
  const struct tensor *tensors = is_input ? s->model->input : s->model->output;
  size_t count = is_input ? s->model->inputs : s->model->outputs, signature = s->model->signature;
  handle requirements;
  uint32_t index;
  struct ranked ranked;
  must(litert.GetTensorIndex(tensor, &index), "GetTensorIndex");
  port->position = position_of(index, tensors, count);
  ranked_of(tensor, &tensors[port->position], &ranked);
  int (*requirements_of)(handle, size_t, size_t, handle *) =
      is_input ? litert.GetCompiledModelInputBufferRequirements : litert.GetCompiledModelOutputBufferRequirements;
  int status = requirements_of(s->compiled, signature, number, &requirements);
  if (status) complain(s, complaint_end(), status, false);
  if (litert.CreateManagedTensorBufferFromRequirements(litert.environment, &ranked, requirements, &port->buffer))
    out_of_memory();
  must(litert.GetTensorBufferPackedSize(port->buffer, &port->bytes), "GetTensorBufferPackedSize");
  port->copy = malloc(port->bytes ? port->bytes : 1);
  if (!port->copy) out_of_memory();
  (is_input ? s->input_buffers : s->output_buffers)[number] = port->buffer;
}

static void open_ports(struct session *s, handle model)
{
  handle signature, tensor;
  size_t inputs, outputs;
  must(litert.GetModelSignature(model, s->model->signature, &signature), "GetModelSignature");
  must(litert.GetNumSignatureInputs(signature, &inputs), "GetNumSignatureInputs");
  must(litert.GetNumSignatureOutputs(signature, &outputs), "GetNumSignatureOutputs");
  if (inputs != s->model->inputs || outputs != s->model->outputs)
    fail(EXIT_DATA, "model-invalid", "measure it with litert_runner, which runs the first subgraph itself",
         "the model's signature has %zu inputs and %zu outputs, its first subgraph %zu and %zu", inputs, outputs,
         s->model->inputs, s->model->outputs);
  for (size_t i = 0; i < inputs; i++) {
    must(litert.GetSignatureInputTensorByIndex(signature, i, &tensor), "GetSignatureInputTensorByIndex");
    open_port(s, tensor, i, true);
  }
  for (size_t i = 0; i < outputs; i++) {
    must(litert.GetSignatureOutputTensorByIndex(signature, i, &tensor), "GetSignatureOutputTensorByIndex");
    open_port(s, tensor, i, false);
  }
}

static void refuse_unmeasurable_inputs(const struct model *model)
{
  for (size_t i = 0; i < model->inputs; i++) {
    const struct tensor *tensor = &model->input[i];
    if (tensor->dtype == STRING)
      fail(EXIT_DATA, "inputs-unsupported", "devbench measures numeric inputs only: split the text part off the model",
           "input '%.*s' takes strings", (int)tensor->name_length, tensor->name);
    if (!dtype_bytes(tensor->dtype))
      fail(EXIT_DATA, "inputs-unsupported", "measure it with litert_runner", "input '%.*s' is of type %s",
           (int)tensor->name_length, tensor->name, dtype_name(tensor->dtype));
  }
}

static void make_inputs(struct session *s)
{
  const struct model *model = s->model;
  if (s->flags->inputs) npz_open(s->flags->inputs);
  for (size_t i = 0; i < model->inputs; i++) {
    struct port *port = &s->input[i];
    const struct tensor *tensor = &model->input[port->position];
    uint64_t bytes = elements(tensor) * dtype_bytes(tensor->dtype);
    if (bytes != port->bytes)
      fail(EXIT_DATA, "inputs-unsupported", "convert the model with fixed input shapes",
           "input '%.*s' has %llu bytes in the file, and %zu in the runtime", (int)tensor->name_length, tensor->name,
           (unsigned long long)bytes, port->bytes);
    if (s->flags->inputs) npz_fill(model, port->position, port->copy);
    else seed_fill(tensor, s->flags->seed, port->position, port->copy);
  }
  if (s->flags->inputs) npz_close(model);
}

/* The runtime prepares the graph in its first run, so `allocate` is the making of the tensors' buffers alone. */
void session_open(struct session *s, const struct model *model, const struct flags *flags, bool is_profiled)
{
  handle loaded;
  s->model = model, s->flags = flags;
  refuse_unmeasurable_inputs(model);
  handle options = options_of(flags, is_profiled);
  s->rss_before_kb = status_kb("VmRSS"), s->threads_before = thread_count();
  complaint_begin();
  int64_t began = monotonic_ns();
  int status = litert.CreateModelFromFile(litert.environment, model->path, &loaded);
  if (!status) status = litert.CreateCompiledModel(litert.environment, loaded, options, &s->compiled);
  s->create_ns = monotonic_ns() - began;
  if (status) complain(s, complaint_end(), status, false);
  began = monotonic_ns();
  open_ports(s, loaded);
  s->allocate_ns = monotonic_ns() - began;
  s->threads_allocated = thread_count(), s->rss_init_kb = status_kb("VmRSS");
  if (is_profiled) must(litert.CompiledModelGetProfiler(s->compiled, &s->profiler), "CompiledModelGetProfiler");
  make_inputs(s);
}

void session_first_run(struct session *s)
{
  session_copy_in(s);
  int64_t began = monotonic_ns();
  int status = session_run(s);
  s->first_ns = monotonic_ns() - began;
  const char *said = complaint_end();
  if (status) complain(s, said, status, true);
  s->threads_after = thread_count(), s->rss_first_kb = status_kb("VmRSS");
}

/* Tried in a process of its own, of which nothing is heard but how it ends. */
bool plain_kernels_work(const struct session *s)
{
  static struct flags plain;
  static struct session again;
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(60);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(1);
    plain = *s->flags;
    plain.is_xnnpack = false;
    session_open(&again, s->model, &plain, false);
    session_first_run(&again);
    _exit(0);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

int session_run(struct session *s)
{
  return litert.RunCompiledModel(s->compiled, s->model->signature, s->model->inputs, s->input_buffers,
                                 s->model->outputs, s->output_buffers);
}

/* Tensors in the runtime's memory */

static void *locked(struct port *port, int mode)
{
  void *memory;
  must(litert.LockTensorBuffer(port->buffer, &memory, mode), "LockTensorBuffer");
  return memory;
}

static void unlock(struct port *port) { must(litert.UnlockTensorBuffer(port->buffer), "UnlockTensorBuffer"); }

void session_copy_in(struct session *s)
{
  for (size_t i = 0; i < s->model->inputs; i++) {
    memcpy(locked(&s->input[i], WRITE_LOCK), s->input[i].copy, s->input[i].bytes);
    unlock(&s->input[i]);
  }
}

void session_copy_out(struct session *s)
{
  for (size_t i = 0; i < s->model->outputs; i++) {
    memcpy(s->output[i].copy, locked(&s->output[i], READ_LOCK), s->output[i].bytes);
    unlock(&s->output[i]);
  }
}

/* In the order of the subgraph, as litert_runner has them. */
void session_output_sha256(struct session *s, char hex[65])
{
  struct sha256 hash;
  session_copy_out(s);
  sha256_start(&hash);
  for (size_t position = 0; position < s->model->outputs; position++)
    for (size_t i = 0; i < s->model->outputs; i++)
      if (s->output[i].position == position) sha256_add(&hash, s->output[i].copy, s->output[i].bytes);
  sha256_finish(&hash, hex);
}

bool session_inputs_intact(struct session *s)
{
  bool is_intact = true;
  for (size_t i = 0; i < s->model->inputs; i++) {
    is_intact = is_intact && memcmp(locked(&s->input[i], READ_LOCK), s->input[i].copy, s->input[i].bytes) == 0;
    unlock(&s->input[i]);
  }
  return is_intact;
}
