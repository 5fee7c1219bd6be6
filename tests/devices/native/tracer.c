/* The tracers of a virtual phone, one program under three names: perfetto, atrace and simpleperf.
 *
 * They take the options that devbench gives, write real files of their formats (Perfetto's packets, the kernel's text as
 * atrace packs it, perf.data) with made-up events, and end as the real ones do. /dev/.phone/tracer makes one go wrong:
 *   refuse     ends at once with an error       die     is killed after 600 ms
 *   hang       does not heed SIGTERM            empty   the file stays empty
 *   no_events  all packets but those of ftrace  big     writes on past every cap
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATE "/dev/.phone/"
#define PERFETTO_FOLDER "/data/misc/perfetto-traces"
enum { TICK_MS = 20 };

static volatile sig_atomic_t told_to_end;
static char fault[64];

static void on_signal(int number)
{
  (void)number;
  told_to_end = 1;
}

static int complain(const char *text)
{
  fprintf(stderr, "%s\n", text);
  return 1;
}

static size_t text_of(const char *path, char *text, size_t size)
{
  FILE *file = fopen(path, "re");
  size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;
  if (file != NULL) fclose(file);
  while (length > 0 && text[length - 1] == '\n') length--;
  text[length] = '\0';
  return length;
}

/* A property as getprop would say it. */
static bool property_is(const char *name, const char *value)
{
  static char props[1 << 16];
  char wanted[256];
  text_of(STATE "props", props, sizeof props);
  snprintf(wanted, sizeof wanted, "\n%s=%s\n", name, value);
  strncat(props, "\n", sizeof props - strlen(props) - 1);
  return strstr(props, wanted) != NULL;
}

static uint64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void tick(void)
{
  nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
}

static void obey_signals(void)
{
  signal(SIGTERM, strcmp(fault, "hang") == 0 ? SIG_IGN : on_signal);
  signal(SIGINT, strcmp(fault, "hang") == 0 ? SIG_IGN : on_signal);
}

static const char *option(int argc, char **argv, const char *name)
{
  for (int i = 1; i + 1 < argc; i++)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  return NULL;
}

static bool has(int argc, char **argv, const char *name)
{
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return false;
}

/* Bytes being put together. */
typedef struct {
  uint8_t at[1 << 16];
  size_t size;
} Bytes;

static void put(Bytes *to, const void *from, size_t size)
{
  if (to->size + size > sizeof to->at) abort();
  memcpy(to->at + to->size, from, size);
  to->size += size;
}

static void put_varint(Bytes *to, uint64_t value)
{
  for (; value >= 0x80; value >>= 7) put(to, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
  put(to, &(uint8_t){(uint8_t)value}, 1);
}

static void put_number(Bytes *to, unsigned field, uint64_t value)
{
  put_varint(to, field << 3);
  put_varint(to, value);
}

static void put_part(Bytes *to, unsigned field, const void *from, size_t size)
{
  put_varint(to, (uint64_t)field << 3 | 2);
  put_varint(to, size);
  put(to, from, size);
}

/* Perfetto */

static void put_event(Bytes *bundle, uint64_t time_ns, unsigned field, const Bytes *inside)
{
  static Bytes event;
  event.size = 0;
  put_number(&event, 1, time_ns);
  put_number(&event, 2, 4242);
  put_part(&event, field, inside->at, inside->size);
  put_part(bundle, 2, event.at, event.size);
}

static void put_packet(Bytes *trace, bool is_traced_by_tflite, uint64_t number)
{
  static Bytes packet, bundle, inside;
  packet.size = bundle.size = 0;
  put_number(&bundle, 1, number % 8);
  for (uint64_t i = 0; i < 8; i++) {
    uint64_t at = now_ns() + i * 1000;
    inside.size = 0;
    put_number(&inside, 2, 4242);
    put_number(&inside, 6, 1);
    put_event(&bundle, at, 4, &inside);
  }
  inside.size = 0;
  put_number(&inside, 1, 1704000);
  put_number(&inside, 2, number % 8);
  put_event(&bundle, now_ns(), 11, &inside);
  if (is_traced_by_tflite) {
    inside.size = 0;
    put_part(&inside, 2, "B|4242|Invoke@0/0\n", 18);
    put_event(&bundle, now_ns(), 3, &inside);
  }
  put_number(&packet, 8, now_ns());
  if (strcmp(fault, "no_events") != 0) put_part(&packet, 1, bundle.at, bundle.size);
  put_number(&packet, 3, 9999);
  put_part(trace, 1, packet.at, packet.size);
}

static uint64_t number_after(const char *text, const char *key)
{
  const char *found = strstr(text, key);
  return found != NULL ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static int perfetto(int argc, char **argv)
{
  static char config[1 << 16];
  static Bytes trace;
  const char *out = option(argc, argv, "-o"), *source = option(argc, argv, "-c");
  if (!has(argc, argv, "--txt") || source == NULL || strcmp(source, "-") != 0 || out == NULL)
    return complain("perfetto_cmd.cc: -c - --txt and -o are needed");
  if (strncmp(out, PERFETTO_FOLDER "/", sizeof PERFETTO_FOLDER) != 0)
    return complain("perfetto_cmd.cc:1006 Failed to open the output file (errno: 13, Permission denied)");
  size_t length = fread(config, 1, sizeof config - 1, stdin);
  uint64_t cap = number_after(config, "max_file_size_bytes:"), duration_ms = number_after(config, "duration_ms:");
  if (length == 0 || cap == 0 || duration_ms == 0 || strstr(config, "linux.ftrace") == NULL)
    return complain("perfetto_cmd.cc:698 The trace config is invalid, bailing out.");
  if (strcmp(fault, "refuse") == 0)
    return complain("perfetto_cmd.cc:1130 Service error: traced is not accepting connections");
  int fd = open(out, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return complain("perfetto_cmd.cc:1006 Failed to open the output file");
  obey_signals();
  uint64_t began = now_ns(), written = 0, number = 0;
  bool is_traced_by_tflite = property_is("debug.tflite.trace", "1"), is_full = false;
  while (!told_to_end && (now_ns() - began) / 1000000 < duration_ms) {
    trace.size = 0;
    put_packet(&trace, is_traced_by_tflite, number++);
    if (strcmp(fault, "empty") != 0 && !is_full) {
      ssize_t sent = write(fd, trace.at, trace.size);
      is_full = sent != (ssize_t)trace.size; /* traced stops writing then, and says so in the log only */
      if (sent > 0) written += (uint64_t)sent;
    }
    if (strcmp(fault, "big") == 0) ftruncate(fd, (off_t)(3 * cap + 9000000));
    else if (written + trace.size > cap) break;
    if (strcmp(fault, "die") == 0 && now_ns() - began > 600000000u) raise(SIGKILL);
    tick();
  }
  close(fd);
  fprintf(stderr, "[%03llu] perfetto_cmd.cc:1233 Wrote %llu bytes into %s\n", (unsigned long long)(number % 1000),
          (unsigned long long)written, out);
  return 0;
}

/* atrace */

static uint32_t adler32(const char *text, size_t size)
{
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < size; i++) {
    a = (a + (uint8_t)text[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

/* zlib's format with blocks that are only stored. */
static void print_packed(const char *text, size_t size)
{
  fwrite("\x78\x01", 1, 2, stdout);
  size_t left = size;
  for (const char *at = text; left > 0; at += 60000) {
    uint16_t part = (uint16_t)(left < 60000 ? left : 60000);
    uint8_t head[5] = {left == part, (uint8_t)part, (uint8_t)(part >> 8), (uint8_t)~part, (uint8_t)(~part >> 8)};
    fwrite(head, 1, 5, stdout);
    fwrite(at, 1, part, stdout);
    left -= part;
  }
  uint32_t sum = adler32(text, size);
  uint8_t tail[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8), (uint8_t)sum};
  fwrite(tail, 1, 4, stdout);
}

static int atrace(int argc, char **argv)
{
  static char text[1 << 22], began_text[64];
  if (has(argc, argv, "--list_categories")) {
    puts("         gfx - Graphics\n       sched - CPU Scheduling\n        freq - CPU Frequency\n        idle - CPU Idle");
    return 0;
  }
  if (has(argc, argv, "--async_start")) {
    if (strcmp(fault, "refuse") == 0) return complain("error opening /sys/kernel/debug/tracing/options: Permission denied");
    FILE *file = fopen(STATE "atrace_on", "we");
    if (file == NULL) return complain("unable to start tracing");
    fprintf(file, "%llu\n", (unsigned long long)now_ns());
    fclose(file);
    puts("capturing trace... done");
    return 0;
  }
  if (!has(argc, argv, "--async_stop")) return complain("usage: atrace [options] [categories...]");
  text_of(STATE "atrace_on", began_text, sizeof began_text);
  unlink(STATE "atrace_on");
  uint64_t began = strtoull(began_text, NULL, 10), end = now_ns();
  size_t size = (size_t)snprintf(text, sizeof text, "# tracer: nop\n#\n#           TASK-PID    CPU#  TIMESTAMP  FUNCTION\n");
  bool is_traced_by_tflite = property_is("debug.tflite.trace", "1");
  for (uint64_t at = began; at < end && size < sizeof text - 512 && began != 0; at += 5000000) {
    size += (size_t)snprintf(text + size, sizeof text - size,
                             " benchmark_model-4242 [004] d..3 %.6f: sched_switch: prev_pid=4242 ==> next_pid=0\n",
                             (double)at / 1e9);
    if (is_traced_by_tflite)
      size += (size_t)snprintf(text + size, sizeof text - size,
                               " benchmark_model-4242 [004] ...1 %.6f: tracing_mark_write: B|4242|Invoke@0/0\n",
                               (double)at / 1e9);
  }
  if (strcmp(fault, "empty") == 0) return 0;
  fputs("TRACE:\n", stdout);
  if (has(argc, argv, "-z")) print_packed(text, size);
  else fwrite(text, 1, size, stdout);
  return fflush(stdout) == 0 ? 0 : complain(strerror(errno));
}

/* simpleperf: perf.data with one event and samples of instruction pointer, thread and time */

enum { HEAD = 104, ATTR = 144, IDS = 16 };

static void put_u64(Bytes *to, uint64_t value)
{
  put(to, &value, sizeof value);
}

static bool write_head(int fd, uint64_t data_size)
{
  static Bytes head;
  head.size = 0;
  put(&head, "PERFILE2", 8);
  put_u64(&head, HEAD);
  put_u64(&head, ATTR);
  put_u64(&head, HEAD);
  put_u64(&head, ATTR);
  put_u64(&head, HEAD + ATTR);
  put_u64(&head, data_size);
  while (head.size < HEAD) put_u64(&head, 0);
  put(&head, &(uint32_t[2]){1, ATTR - IDS}, 8); /* software, its size */
  put_u64(&head, 0);                            /* cpu-clock */
  put_u64(&head, 1000000);
  put_u64(&head, 1 | 2 | 4); /* PERF_SAMPLE_IP, TID and TIME */
  while (head.size < HEAD + ATTR) put_u64(&head, 0);
  return pwrite(fd, head.at, head.size, 0) == (ssize_t)head.size;
}

static int simpleperf(int argc, char **argv)
{
  static Bytes record;
  if (has(argc, argv, "--help")) return puts("    --size-limit SIZE[K|M|G]  Stop recording after SIZE bytes"), 0;
  const char *out = option(argc, argv, "-o"), *pid = option(argc, argv, "-p");
  if (argc < 2 || strcmp(argv[1], "record") != 0 || out == NULL) return complain("simpleperf E unknown command");
  if (!property_is("security.perf_harden", "0"))
    return complain("simpleperf E event_fd.cpp:130] open_perf_event_file failed: Permission denied; "
                    "try `setprop security.perf_harden 0`");
  int fd = open(out, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || !write_head(fd, 0)) return complain("simpleperf E cannot write the record file");
  obey_signals();
  uint64_t size = 0;
  while (!told_to_end && (pid == NULL || kill((pid_t)atoi(pid), 0) == 0)) {
    record.size = 0;
    put(&record, &(uint32_t){9}, 4); /* PERF_RECORD_SAMPLE */
    put(&record, &(uint16_t[2]){2, 32}, 4);
    put_u64(&record, 0x400000);
    put(&record, &(uint32_t[2]){4242, 4242}, 8);
    put_u64(&record, now_ns());
    if (pwrite(fd, record.at, record.size, (off_t)(HEAD + ATTR + size)) != (ssize_t)record.size) break;
    size += record.size;
    tick();
  }
  return write_head(fd, size) ? 0 : complain("simpleperf E no space left");
}

int main(int argc, char **argv)
{
  const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
  text_of(STATE "tracer", fault, sizeof fault);
  if (strcmp(name, "perfetto") == 0) return perfetto(argc, argv);
  if (strcmp(name, "atrace") == 0) return atrace(argc, argv);
  return simpleperf(argc, argv);
}
