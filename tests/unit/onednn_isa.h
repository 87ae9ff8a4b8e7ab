// Which instructions oneDNN takes in this process: what it packs and what it allocates depends on
// them, and a test says what holds for each.
#ifndef NPUMESH_TESTS_UNIT_ONEDNN_ISA_H_
#define NPUMESH_TESTS_UNIT_ONEDNN_ISA_H_

#include <oneapi/dnnl/dnnl.hpp>

namespace npumesh {

// With AVX-512 a product of float32 keeps constant weights in another layout; older processors
// multiply through sgemm, which packs what it needs at each call.
inline bool OneDnnHasAvx512() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & wanted) == wanted;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ONEDNN_ISA_H_
