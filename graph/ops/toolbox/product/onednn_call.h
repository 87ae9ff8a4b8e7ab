// What every kernel needs around its calls of oneDNN: ThreadCount (float_product.h), errors as
// values, and constant weights in an arrangement that oneDNN chose (onednn_pack.cc).
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_CALL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_CALL_H_

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/tuning.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/product/onednn_version.h"
#include "graph/ops/toolbox/product/packed_weights.h"
#include "runtime/base/status.h"

namespace npumesh {

// Runs a primitive to its end. The C call: the C++ one builds a map and a vector every time. Throws
// what oneDNN throws.
inline void ExecuteAndWait(const dnnl::primitive& primitive, const dnnl::stream& stream,
                           std::span<const dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()),
                             arguments.data()),
      "could not execute a primitive");
  dnnl::error::wrap_c_api(dnnl_stream_wait(stream.get()), "could not finish a primitive");
}

// Whether oneDNN takes these instructions: a newer set has the bits of those it contains.
inline bool ComputesBy(dnnl::cpu_isa instructions) {
  const auto taken = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(instructions);
  return (taken & wanted) == wanted;
}

// Whether products of 8 bits are added in 32 bits. Without VNNI or AMX they saturate in 16 bits.
inline bool HasExactByteProducts() {
  return ComputesBy(dnnl::cpu_isa::avx512_core_vnni) || ComputesBy(dnnl::cpu_isa::avx2_vnni);
}

// Strict arithmetic, and scratchpads that are the caller's: oneDNN then allocates no buffers.
inline dnnl::primitive_attr OurAttributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

// Whether an implementation is just the loops that define what is computed, or leaves its work to
// them: "ref:any", or oneDNN 3's "jit_uni_ncsp_convolution:conv+ref:any".
template <typename Description>
bool IsReference(const Description& chosen) {
  const std::string_view name = chosen.impl_info_str();
  return name.starts_with("ref") || name.find("+ref") != std::string_view::npos;
}

// The first implementation of `make()`, a primitive descriptor that has its list of
// implementations, that is no reference; the first if all are. oneDNN 3.7 puts a convolution that
// leaves its work to the reference before the one by products, which is 200 times as fast for 64
// channels of 56 x 56.
template <typename Make>
auto FirstImplementation(Make make) {
  auto first = make();
  if (!first || !IsReference(first)) return first;
  auto walk = make();
  while (walk.next_impl()) {
    if (!IsReference(walk)) return walk;
  }
  return first;
}

// The implementation of `make()` that is preferred: the first unless measuring knows better. Names
// are oneDNN's; of equal ones the first counts. References are no options. Throws what oneDNN
// throws.
template <typename Make>
auto TunedImplementation(KernelTuning* tuning, Make make) {
  constexpr std::string_view kDecision = "oneDNN";
  auto first = FirstImplementation(make);
  if (tuning == nullptr || !first) return first;
  const std::string wanted = tuning->Preferred(kDecision);
  std::vector<std::string> names;
  int step = 0, step_of_wanted = -1;
  auto walk = make();
  do {
    const std::string name = walk.impl_info_str();
    const bool seen = std::find(names.begin(), names.end(), name) != names.end();
    if (seen || IsReference(walk)) continue;
    names.push_back(name);
    if (name == wanted) step_of_wanted = step;
  } while (++step, walk.next_impl());
  if (names.empty()) names.push_back(first.impl_info_str());
  // Copies of a descriptor walk together in oneDNN 3, so the walk is made again.
  auto chosen = step_of_wanted < 0 ? std::move(first) : make();
  while (step_of_wanted-- > 0) chosen.next_impl();
  tuning->Decided(kDecision, std::move(names), chosen.impl_info_str());
  return chosen;
}

// y = x w, with addresses that are set anew in every run.
struct BoundProduct {
  dnnl::matmul::primitive_desc chosen;
  dnnl::matmul primitive;
  dnnl::memory x, y, scratchpad;

  // Chooses an implementation. False when oneDNN has at most the reference. Throws what
  // oneDNN throws.
  bool Choose(const dnnl::memory::desc& from, const dnnl::memory::desc& weights,
              const dnnl::memory::desc& to, const dnnl::engine& engine) {
    chosen = DescribePrimitive<dnnl::matmul>(engine, OurAttributes(), /*allow_empty=*/true, from,
                                             weights, to);
    if (!chosen || IsReference(chosen)) return false;
    primitive = dnnl::matmul(chosen);
    x = dnnl::memory(chosen.src_desc(), engine, nullptr);
    y = dnnl::memory(chosen.dst_desc(), engine, nullptr);
    scratchpad = dnnl::memory(chosen.scratchpad_desc(), engine, nullptr);
    return true;
  }

  void Run(const dnnl::stream& stream, const void* from, const dnnl::memory& weights, void* to,
           void* room) {
    x.set_data_handle(const_cast<void*>(from));  // NOLINT: oneDNN only reads it
    y.set_data_handle(to);
    scratchpad.set_data_handle(room);
    const std::array<dnnl_exec_arg_t, 4> list = {{{DNNL_ARG_SRC, x.get()},
                                                  {DNNL_ARG_WEIGHTS, weights.get()},
                                                  {DNNL_ARG_DST, y.get()},
                                                  {DNNL_ARG_SCRATCHPAD, scratchpad.get()}}};
    ExecuteAndWait(primitive, stream, list);
  }
};

// Runs `body`, which calls oneDNN and returns a Status, and turns what it throws into one that
// names `who` and `what`, "the product" for example.
template <typename Body>
Status Guarded(const std::string& who, std::string_view what, Body body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    const Code code = error.status == dnnl_out_of_memory   ? Code::kOutOfMemory
                      : error.status == dnnl_unimplemented ? Code::kUnsupported
                                                           : Code::kInternal;
    return Error(code, "{}: oneDNN refuses {}: {}", who, what, error.what());
  } catch (const std::bad_alloc&) {
    return Error(Code::kOutOfMemory, "{}: no memory to prepare {}", who, what);
  }
}

// The bytes of `weight`, which lie as `from` says, arranged as `to`. A 16-bit weight is widened
// first when `from` is float32. Works through pieces of the weight, so that beside the result there
// is never more than one piece of a weight in a file in memory (matrices without batch; others need
// all of it). What `shared` (may be null) has already is taken from there. Throws what oneDNN
// throws.
std::shared_ptr<const dnnl::memory> PackWeight(const Tensor& weight, const dnnl::memory::desc& from,
                                               const dnnl::memory::desc& to,
                                               const dnnl::engine& engine, dnnl::stream& stream,
                                               PackedWeights* shared);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_CALL_H_
