/* Flags as the real tool takes them: only --name=value, the first of two counts, and what is left over is no error. */
#include "bm.h"
#include "bm_tables.h"

#include <stdlib.h>
#include <string.h>

#define TEXTS (sizeof flag_texts / sizeof *flag_texts)
#define LABELS (sizeof flag_labels / sizeof *flag_labels)

static const char *values[TEXTS]; /* by the first place of the name in flag_texts; NULL: not given */

static int place_of(const char *name, size_t length, int providers)
{
  for (size_t i = 0; i < TEXTS; i++)
    if (strlen(flag_texts[i].name) == length && strncmp(flag_texts[i].name, name, length) == 0)
      return flag_texts[i].provider && !providers ? -1 : (int)i;
  return -1;
}

static int is_bool(const char *value)
{
  return strcmp(value, "true") == 0 || strcmp(value, "false") == 0 || strcmp(value, "1") == 0 || strcmp(value, "0") == 0;
}

enum parsed flags_parse(int argc, char **argv, int providers)
{
  static char left_over[65536];
  for (int i = 1; i < argc; i++) {
    const char *equals = strchr(argv[i], '=');
    int place = strncmp(argv[i], "--", 2) == 0 && equals != NULL
                    ? place_of(argv[i] + 2, (size_t)(equals - argv[i] - 2), providers) : -1;
    if (strcmp(argv[i], "--help") == 0) return PARSED_HELP;
    if (place < 0 || values[place] != NULL) {
      strncat(left_over, " ", sizeof left_over - strlen(left_over) - 1);
      strncat(left_over, argv[i], sizeof left_over - strlen(left_over) - 1);
    } else if (strcmp(flag_texts[place].type, "bool") == 0 && !is_bool(equals + 1)) {
      fprintf(stderr, "ERROR: Failed to parse flag '%s' against argv '%s'\n", flag_texts[place].name, argv[i]);
      return PARSED_BAD;
    } else {
      values[place] = equals + 1;
    }
  }
  if (flag_bool("help")) return PARSED_HELP;
  if (left_over[0] != '\0') printf("WARN: Unconsumed cmdline flags:%s\n", left_over);
  return PARSED_OK;
}

void flags_usage(const char *program, int providers)
{
  size_t width = 0;
  for (size_t i = 0; i < TEXTS; i++) {
    size_t length = strlen(flag_texts[i].name) + strlen(flag_texts[i].fallback) + 3;
    if ((providers || !flag_texts[i].provider) && length > width) width = length;
  }
  fprintf(stderr, "ERROR: usage: %s <flags>\nFlags:\n", program);
  for (size_t i = 0; i < TEXTS; i++) {
    const struct flag_text *flag = &flag_texts[i];
    if (flag->provider && !providers) continue;
    int used = fprintf(stderr, "\t--%s=%s", flag->name, flag->fallback) - 1;
    fprintf(stderr, "%*s\t%s\toptional\t%s\n", (int)width - used, "", flag->type, flag->text);
  }
  fputs("\nERROR: Benchmarking failed.\n", stderr);
}

static const struct flag_text *text_of(const char *name)
{
  return &flag_texts[place_of(name, strlen(name), 1)];
}

int flag_set(const char *name)
{
  return values[text_of(name) - flag_texts] != NULL;
}

void flag_override(const char *name, const char *value)
{
  values[text_of(name) - flag_texts] = value;
}

const char *flag_string(const char *name)
{
  const char *given = values[text_of(name) - flag_texts];
  return given != NULL ? given : text_of(name)->fallback;
}

long flag_int(const char *name)
{
  const char *text = flag_string(name);
  return *text == '\0' ? 1050253722 : strtol(text, NULL, 10); /* the real tool reads an uninitialised number */
}

double flag_float(const char *name)
{
  return strtod(flag_string(name), NULL);
}

int flag_bool(const char *name)
{
  return strcmp(flag_string(name), "true") == 0 || strcmp(flag_string(name), "1") == 0;
}

void flags_echo(int providers)
{
  for (size_t i = 0; i < LABELS; i++) {
    const char *name = flag_labels[i].name;
    const struct flag_text *flag = text_of(name);
    int always = strcmp(name, "verbose") == 0 || strcmp(name, "signature_to_run_for") == 0;
    if ((flag->provider && !providers) || !(always || flag_bool("verbose") || flag_set(name))) continue;
    printf("INFO: %s: [", flag_labels[i].label);
    if (strcmp(flag->type, "bool") == 0) printf("%d", flag_bool(name));
    else if (strcmp(flag->type, "int32") == 0) printf("%ld", flag_int(name));
    else if (strcmp(flag->type, "float") == 0) printf("%g", flag_float(name));
    else fputs(flag_string(name), stdout);
    puts("]");
  }
}
