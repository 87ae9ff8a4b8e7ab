// libFuzzer entry: see CMakeLists.txt.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!npumesh::fuzz::CheckNpy(bytes).empty()) abort();
  return 0;
}
