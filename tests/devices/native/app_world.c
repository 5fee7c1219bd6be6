/* The app world of a virtual phone, one program under several names: logcat, log, and zygote, which starts the app. */
#include "app_world.h"

#include <stdio.h>
#include <string.h>

size_t phone_text(const char *path, char *text, size_t size)
{
  FILE *file = fopen(path, "re");
  size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;
  if (file != NULL) fclose(file);
  while (length > 0 && text[length - 1] == '\n') length--;
  text[length] = '\0';
  return length;
}

int main(int argc, char **argv)
{
  const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
  if (strcmp(name, "logcat") == 0) return logcat_main(argc, argv);
  if (strcmp(name, "log") == 0) return log_main(argc, argv);
  if (strcmp(name, "zygote") == 0) return zygote_main();
  if (strcmp(name, "org.tensorflow.lite.benchmark") == 0) return app_main();
  fprintf(stderr, "%s: no such program\n", name);
  return 127;
}
