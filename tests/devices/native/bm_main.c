/* The stand-in benchmark_model as a program. */
#include "bm.h"

int main(int argc, char **argv)
{
  return benchmark_main(argc, argv);
}
