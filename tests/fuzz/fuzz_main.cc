// libFuzzer entry of one target: see CMakeLists.txt, which defines NPUMESH_FUZZ_TARGET.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string broken = npumesh::fuzz::NPUMESH_FUZZ_TARGET(bytes);
  if (broken.empty()) return 0;
  std::fprintf(stderr, "does not hold: %s\n", broken.c_str());
  abort();
}
