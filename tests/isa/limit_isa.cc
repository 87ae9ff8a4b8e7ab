// Preloaded into a process: Highway takes no newer instructions than NPUMESH_TEST_ISA names, avx2
// or sse4, whatever the processor can do. Another value, or none, changes nothing.
#include <hwy/targets.h>

#include <cstdlib>
#include <string_view>

namespace {

// The bits of better targets are lower ones.
[[gnu::constructor]] void LimitHighway() {
#if HWY_ARCH_X86
  const char* const name = std::getenv("NPUMESH_TEST_ISA");
  const std::string_view isa = name == nullptr ? "" : name;
  if (isa == "avx2") hwy::DisableTargets(HWY_AVX2 - 1);
  if (isa == "sse4") hwy::DisableTargets(HWY_SSE4 - 1);
#endif
}

}  // namespace
