// Kernels that compute on whole tensors of doubles and round each result once: gradients, norms by
// channel, samplers. For operators whose formula is worth more than their speed.
#ifndef NPUMESH_GRAPH_OPS_REAL_KERNEL_H_
#define NPUMESH_GRAPH_OPS_REAL_KERNEL_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/ops/operator.h"

namespace npumesh {

// The tensors of one execution, as doubles. Integers past 53 bits lose their low bits.
struct RealTensors {
  std::vector<std::vector<double>> in;   // by slot; empty: not fed, or nothing a double can hold
  std::vector<std::vector<double>> out;  // by output port; zeros before the body runs
};

// Computes `out` from `in`. Errors are run-time ones. What it needs besides it captures.
using RealBody = std::function<Status(RealTensors&)>;

// Error (kOutOfMemory): the host has no room for the doubles. REQUIRES: outputs are inferred, of
// types that FindConvert makes from double.
Result<std::unique_ptr<Kernel>> MakeRealKernel(const OpContext& op, RealBody body);

// True for float16, bfloat16, float32 and float64.
bool IsRealType(DataType dtype);

// Error (kUnsupported) that names the port unless what is fed to it, if anything, is a real type.
Status ExpectReal(const OpContext& op, std::string_view port);

// Error (kInvalidArgument) unless an input, if it is fed, has so many elements. `what` says what
// there is one for, "channel" for example.
Status ExpectCount(const OpContext& op, std::string_view port, int64_t count,
                   std::string_view what);

// Error (kInvalidArgument) unless two inputs have the same shape.
Status ExpectSameShape(const OpContext& op, std::string_view port, std::string_view as);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REAL_KERNEL_H_
