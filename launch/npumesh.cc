// The `npumesh` command.
#include "launch/commands/command.h"

int main(int argc, char** argv) {
  return npumesh::NpumeshMain(argc, argv);
}
