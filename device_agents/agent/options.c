/* options.c - turns the command line into struct options; prints help from the same table. */
#include "agent.h"

#include <stdio.h>
#include <string.h>

enum {
  RUN = COMMAND_RUN,
  LOAD = COMMAND_LOAD,
  SAMPLE = COMMAND_SAMPLE,
  ALL = RUN | LOAD | SAMPLE,
};

enum option_id {
  OPT_LOAD, OPT_LOAD_ARGC, OPT_PLACEMENT, OPT_LOAD_AFFINITY, OPT_SETTLE, OPT_SAMPLE, OPT_SECONDS, OPT_AFFINITY,
  OPT_DEADLINE, OPT_GRACE, OPT_HEARTBEAT, OPT_CHDIR, OPT_ENV, OPT_HOLD, OPT_DETACHED,
};

static const struct option {
  const char *name, *value;
  int commands;
  enum option_id id;
  const char *help;
} table[] = {
    {"--load", "SPEC", RUN, OPT_LOAD, "idle (default), cpu:N@P, mem:N, app or exec"},
    {"--load-argc", "K", RUN, OPT_LOAD_ARGC, "with exec: the first K words after -- are the load's command"},
    {"--load-placement", "WHERE", RUN | LOAD, OPT_PLACEMENT, "other-group (default: a session of its own) or same-group"},
    {"--load-affinity", "MASK", RUN | LOAD, OPT_LOAD_AFFINITY, "hexadecimal CPU mask for the load"},
    {"--settle-ms", "N", RUN | LOAD, OPT_SETTLE, "the load runs alone this long first (run: 500, load: 0)"},
    {"--sample-ms", "N", ALL, OPT_SAMPLE, "telemetry period; 0 is off (run, sample: 100, load: 0)"},
    {"--seconds", "S", LOAD | SAMPLE, OPT_SECONDS, "how long; sample: 0 (default) takes one sample"},
    {"--affinity", "MASK", RUN, OPT_AFFINITY, "hexadecimal CPU mask for the child"},
    {"--deadline-s", "S", ALL, OPT_DEADLINE, "the whole command (run: 300, else: --seconds and a minute)"},
    {"--grace-ms", "N", RUN, OPT_GRACE, "a child that must end gets SIGTERM, and SIGKILL this much later; 0 (default): at once"},
    {"--heartbeat-s", "S", ALL, OPT_HEARTBEAT, "a byte must arrive on standard input this often; 0 (default) is off"},
    {"--chdir", "DIR", RUN, OPT_CHDIR, "where the child starts"},
    {"--env", "K=V", RUN, OPT_ENV, "for the child; repeats"},
    {"--hold", "PATH=VALUE", ALL, OPT_HOLD, "write VALUE, read it back, restore at the end; repeats"},
    {"--detached", NULL, ALL, OPT_DETACHED, "do not watch standard input (for people at a shell)"},
};

void options_help(void)
{
  fputs("devbench-agent run [options] -- argv...       one trial: load, telemetry, the measured child\n"
        "devbench-agent load SPEC --seconds S [options] [-- argv...]   the load alone\n"
        "devbench-agent sample [options]               telemetry alone\n"
        "devbench-agent probe                          what this device is\n"
        "devbench-agent hash FILE...                   SHA-256 of files\n"
        "devbench-agent canary [--affinity MASK]       how fast a fixed piece of work is now\n"
        "devbench-agent version\n"
        "\n"
        "Everything it started is dead within a second of standard input closing. Options:\n",
        stdout);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    printf("  %-16s %-11s %s\n", table[i].name, table[i].value ? table[i].value : "", table[i].help);
}

static const char *command_name(enum command command)
{
  return command == COMMAND_RUN ? "run" : command == COMMAND_LOAD ? "load" : "sample";
}

static _Noreturn void bad_value(const char *name, const char *value, const char *wanted)
{
  die(EXIT_USAGE, "%s %s: %s", name, value, wanted);
}

static int64_t whole(const char *name, const char *value, int64_t most)
{
  int64_t number;
  if (!text_to_number(value, &number) || number < 0 || number > most)
    die(EXIT_USAGE, "%s %s: expected a whole number from 0 to %lld", name, value, (long long)most);
  return number;
}

/* "2", "0.25": decimal seconds as nanoseconds; at most nine decimals, so nothing is rounded. */
static int64_t seconds(const char *name, const char *value)
{
  int64_t whole_part = 0, fraction = 0, unit = NS_PER_S;
  const char *at = value;
  while (*at >= '0' && *at <= '9' && whole_part <= 1000000) whole_part = whole_part * 10 + (*at++ - '0');
  bool digits = at != value;
  if (*at == '.') {
    at++;
    while (*at >= '0' && *at <= '9' && unit > 1) fraction += (*at++ - '0') * (unit /= 10), digits = true;
  }
  if (*at || !digits || whole_part > 1000000) bad_value(name, value, "expected seconds, such as 30 or 0.5");
  return whole_part * NS_PER_S + fraction;
}

static void set_mask(const char *name, const char *value, cpu_set_t *mask)
{
  if (!mask_parse(value, mask)) bad_value(name, value, "expected a hexadecimal CPU mask, such as f0");
}

static void set_load(struct options *o, const char *value)
{
  const char *wrong = load_parse(value, &o->load);
  if (wrong) bad_value("load", value, wrong);
}

static void set_placement(struct options *o, const char *value)
{
  o->load_other_group = strcmp(value, "other-group") == 0;
  o->load_placement_asked = true;
  if (!o->load_other_group && strcmp(value, "same-group") != 0)
    bad_value("--load-placement", value, "expected same-group or other-group");
}

static void add_pair(const char *name, const char *value, const char **list, int *count, int max)
{
  const char *equals = strchr(value, '=');
  if (!equals || equals == value) bad_value(name, value, "expected a name, an equals sign and a value");
  if (*count == max) die(EXIT_USAGE, "%s is given more than %d times", name, max);
  list[(*count)++] = value;
}

static void set(struct options *o, const struct option *option, const char *value)
{
  const char *name = option->name;
  switch (option->id) {
  case OPT_LOAD: set_load(o, value); break;
  case OPT_LOAD_ARGC: o->load_argc = (int)whole(name, value, 10000); break;
  case OPT_PLACEMENT: set_placement(o, value); break;
  case OPT_LOAD_AFFINITY: set_mask(name, value, &o->load_affinity), o->load_affine = true; break;
  case OPT_SETTLE: o->settle_ns = whole(name, value, 3600000) * NS_PER_MS; break;
  case OPT_SAMPLE: o->sample_ns = whole(name, value, 3600000) * NS_PER_MS; break;
  case OPT_SECONDS: o->seconds_ns = seconds(name, value), o->seconds_asked = true; break;
  case OPT_AFFINITY: set_mask(name, value, &o->affinity), o->affine = true; break;
  case OPT_DEADLINE: o->deadline_ns = seconds(name, value); break;
  case OPT_GRACE: o->grace_ns = whole(name, value, 10000) * NS_PER_MS; break;
  case OPT_HEARTBEAT: o->heartbeat_ns = seconds(name, value); break;
  case OPT_CHDIR: o->chdir = value; break;
  case OPT_ENV: add_pair(name, value, o->env, &o->env_count, ENVS_MAX); break;
  case OPT_HOLD: add_pair(name, value, o->hold, &o->hold_count, HOLDS_MAX); break;
  case OPT_DETACHED: o->detached = true; break;
  }
}

static const struct option *find(enum command command, const char *word)
{
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(table[i].name, word) != 0) continue;
    if (table[i].commands & (int)command) return &table[i];
    die(EXIT_USAGE, "%s has no option %s", command_name(command), word);
  }
  if (strchr(word, '=')) die(EXIT_USAGE, "unknown option %s (a value follows its option as a word of its own)", word);
  die(EXIT_USAGE, "unknown option %s", word);
}

static int count_words(char **words)
{
  int count = 0;
  while (words[count]) count++;
  return count;
}

/* The words after -- belong to the load first, then to the measured child. */
static void split_argv(struct options *o, char **words)
{
  static char *load_words[10001];
  int count = words ? count_words(words) : 0;
  bool exec_load = o->load.kind == LOAD_EXEC;
  if (o->command == COMMAND_LOAD) o->load_argc = exec_load ? count : 0;
  if (exec_load && o->load_argc == 0) die(EXIT_USAGE, "an exec load needs its command: --load-argc K and -- argv...");
  if (!exec_load && o->load_argc) die(EXIT_USAGE, "--load-argc goes with --load exec only");
  if (o->load_argc > count) die(EXIT_USAGE, "--load-argc %d, but only %d words follow --", o->load_argc, count);
  if (o->load_argc > 10000) die(EXIT_USAGE, "the load's command has more than 10000 words");
  for (int i = 0; i < o->load_argc; i++) load_words[i] = words[i];
  o->load_argv = load_words;
  o->argv = words ? words + o->load_argc : NULL;
  int left = count - o->load_argc;
  if (o->command == COMMAND_RUN && left == 0) die(EXIT_USAGE, "run needs a command after --");
  if (o->command != COMMAND_RUN && left > 0) die(EXIT_USAGE, "%s runs no command", command_name(o->command));
}

static void check(struct options *o)
{
  if (o->command == COMMAND_LOAD && !o->load.text) die(EXIT_USAGE, "load needs a SPEC, such as cpu:2@50");
  if (o->command == COMMAND_LOAD && !o->seconds_asked) die(EXIT_USAGE, "load needs --seconds S");
  if (o->command == COMMAND_SAMPLE && !o->sample_ns) die(EXIT_USAGE, "sample --sample-ms 0 would do nothing");
  if (o->detached && o->heartbeat_ns) die(EXIT_USAGE, "--detached and --heartbeat-s contradict one another");
  if (o->deadline_ns < 0)
    o->deadline_ns = o->command == COMMAND_RUN ? 300 * NS_PER_S : o->seconds_ns + o->settle_ns + 60 * NS_PER_S;
  if (o->deadline_ns == 0) die(EXIT_USAGE, "--deadline-s must be more than 0");
}

void options_parse(struct options *o, enum command command, char **words)
{
  o->command = command;
  o->load = (struct load_spec){.kind = LOAD_IDLE, .text = command == COMMAND_LOAD ? NULL : "idle"};
  o->load_other_group = true;
  o->settle_ns = command == COMMAND_RUN ? 500 * NS_PER_MS : 0;
  o->sample_ns = command == COMMAND_LOAD ? 0 : 100 * NS_PER_MS;
  o->deadline_ns = -1;
  for (; *words && strcmp(*words, "--") != 0; words++) {
    if (**words != '-') {
      if (command == COMMAND_RUN) die(EXIT_USAGE, "unexpected word %s: the measured command goes after --", *words);
      if (command == COMMAND_SAMPLE || o->load.text) die(EXIT_USAGE, "unexpected word %s", *words);
      set_load(o, *words);
      continue;
    }
    const struct option *option = find(command, *words);
    if (option->value && (!words[1] || strcmp(words[1], "--") == 0))
      die(EXIT_USAGE, "%s needs a value (%s)", option->name, option->value);
    set(o, option, option->value ? *++words : NULL);
  }
  split_argv(o, *words ? words + 1 : NULL);
  check(o);
}
