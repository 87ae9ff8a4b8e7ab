// StaticKernelSource: gives machine code for loop programs. The engine asks; graph/static_kernel
// answers.
#ifndef NPUMESH_GRAPH_OPS_CORE_STATIC_KERNELS_H_
#define NPUMESH_GRAPH_OPS_CORE_STATIC_KERNELS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// An operator of the graph that is compiled, with its types.
struct StaticOperator {
  const Operator* op = nullptr;
  const OpContext* context = nullptr;
};

// Operators that one static kernel computes.
struct StaticRegion {
  LoopProgram program;
  std::vector<StaticOperator> operators;  // in execution order, as program.titles
  std::vector<TensorType> inputs;         // by slot of the kernel
  std::vector<TensorType> outputs;        // as program.outputs
};

// The kernel of a region.
struct StaticKernel {
  LoopEntry entry = nullptr;  // null: there is no kernel
  uint64_t scratch_bytes = 0;
  std::string name;                     // what the store calls it
  std::shared_ptr<const void> library;  // keeps `entry` valid
};

// Runs one. REQUIRES: it has an entry.
class LoopKernel : public Kernel {
 public:
  explicit LoopKernel(StaticKernel kernel) : kernel_(std::move(kernel)) {
    set_choice({.name = "static kernel " + kernel_.name, .refused = {}});
  }
  uint64_t scratch_bytes() const override { return kernel_.scratch_bytes; }
  Status Run(const KernelArgs& args) override {
    kernel_.entry(args.in, args.out, args.scratch);
    return Status();
  }

 private:
  StaticKernel kernel_;
};

class StaticKernelSource {
 public:
  virtual ~StaticKernelSource() = default;
  // Kernels by region; of those that cannot be had the reason is told by the source itself. `all`
  // are the operators of the graph that run, which are recorded. Not collective; other processes of
  // this node may be waited for, within a time limit.
  virtual std::vector<StaticKernel> Make(const std::vector<StaticRegion>& regions,
                                         const std::vector<StaticOperator>& all) = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_STATIC_KERNELS_H_
