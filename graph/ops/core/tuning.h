// KernelTuning: which of several ways a kernel takes, where measuring has found a better one than
// the rule of its operator. The makers of kernels ask; graph/tuning answers.
//
// What there is to choose is a decision with a name, "product of floats", and options with names,
// "native" or "widened". A maker reports each decision that it takes, so that the tuner
// learns what there is to try, without a list of operators.
#ifndef NPUMESH_GRAPH_OPS_CORE_TUNING_H_
#define NPUMESH_GRAPH_OPS_CORE_TUNING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

class Kernel;
class OpContext;
struct Operator;

// Thread-safety: none; one thread makes the kernels of a graph.
class KernelTuning {
 public:
  virtual ~KernelTuning() = default;
  // The option that the kernel which is being made should take; empty: the ordinary one. A maker
  // that cannot take it takes the ordinary one.
  virtual std::string Preferred(std::string_view decision) = 0;
  // What could be taken, and what is. Of a decision that is reported again for the same kernel, the
  // last report holds.
  virtual void Decided(std::string_view decision, std::vector<std::string> options,
                       std::string_view taken) = 0;
};

// The option for a maker that can take each of them. REQUIRES: `ordinary` is one of them. Null
// tuning: the ordinary one.
std::string TunedOption(KernelTuning* tuning, std::string_view decision,
                        std::span<const std::string_view> options, std::string_view ordinary);
// The same for sizes.
int64_t TunedSize(KernelTuning* tuning, std::string_view decision, std::span<const int64_t> options,
                  int64_t ordinary);

// One of the operators that a step computes, with its types.
struct TunableOperator {
  const Operator* op = nullptr;
  const OpContext* context = nullptr;
};

// The step whose kernel is made.
struct TunableStep {
  std::string name;                        // of the node
  std::string type;                        // "MatMul+Relu"
  std::vector<TunableOperator> operators;  // in execution order
  std::vector<TensorType> inputs;          // by slot; an undefined dtype: not fed
  std::vector<const Tensor*> constants;    // by slot; null: known when it runs
  std::vector<TensorType> outputs;         // by port
};

// Whether the kernels of an operator may be run to measure them: it only writes its outputs, which
// follow from its inputs alone, and meets no other rank.
bool MayBeTuned(const Operator& op, const OpContext& context);

// Makes the kernels of steps by what was measured, here or before.
class KernelTuner : public KernelTuning {
 public:
  using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>()>;
  // The kernel that `make` makes with the best preferences. `make` asks this object, is called
  // several times and remembers nothing. Errors: those of `make` without preferences. Not
  // collective; other processes may be waited for, within a time limit. REQUIRES: MayBeTuned holds
  // for each operator.
  virtual Result<std::unique_ptr<Kernel>> Make(const TunableStep& step, const MakeKernel& make) = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_TUNING_H_
