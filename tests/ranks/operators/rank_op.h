// Runs one operator on every rank of a group, with its tensors in the ranks' HBM.
#ifndef NPUMESH_TESTS_RANKS_OPERATORS_RANK_OP_H_
#define NPUMESH_TESTS_RANKS_OPERATORS_RANK_OP_H_

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/ops/builtin_ops.h"
#include "tests/ranks/run_ranks.h"
#include "tests/unit/op_values.h"

namespace npumesh {

// Rows [first, first + count) of a matrix, or elements of a vector.
inline Tensor RowsOf(const Tensor& whole, int64_t first, int64_t count) {
  Shape shape = whole.shape();
  const uint64_t row = whole.bytes() / static_cast<uint64_t>(shape[0]);
  shape[0] = count;
  Tensor part = Tensor::Allocate({whole.dtype(), std::move(shape)});
  std::memcpy(part.mutable_data(),
              static_cast<const std::byte*>(whole.data()) + static_cast<uint64_t>(first) * row,
              part.bytes());
  return part;
}

// The one group "ranks" of all.
class OneGroup final : public GroupProvider {
 public:
  explicit OneGroup(Communicator& group) : group_(group) {}
  Result<Communicator*> Group(const std::string&) override { return &group_; }
  Result<Members> MembersOf(const std::string&) override {
    return Members{group_.world_ranks(), group_.rank()};
  }

 private:
  Communicator& group_;
};

// An operator with its tensors in a rank's HBM, to be run as often as wanted.
class RankOp {
 public:
  // Collective over the group. Inputs are copied to HBM. The arguments must outlive the operator.
  static Result<std::unique_ptr<RankOp>> Make(const OpRegistry& registry, const OpCall& call,
                                              Communicator& group, DeviceMemory& memory) {
    std::unique_ptr<RankOp> made(new RankOp(call, group));
    const Operator* op = registry.Find(call.type);
    made->call_.groups = &made->groups_;
    made->node_ = op_test::MakeNode(*op, made->call_);
    NPUMESH_ASSIGN_OR_RETURN(const OpContext context,
                             op_test::BindAndInfer(*op, made->call_, made->node_));
    NPUMESH_ASSIGN_OR_RETURN(made->kernel_, op->make_kernel(context));
    made->Place(context, memory);
    made->context_ = context;
    return made;
  }

  // Collective over the group.
  Status Run() {
    NPUMESH_RETURN_IF_ERROR(kernel_->Run({in_.data(), out_.data(), scratch_}));
    // Once: later runs may be counted for allocations.
    if (!std::exchange(noted_, true)) op_test::NoteRun(*context_);
    return Status();
  }

  // Copies of the outputs.
  std::vector<Tensor> Outputs() const {
    std::vector<Tensor> results;
    for (size_t i = 0; i < types_.size(); ++i) {
      Tensor result = Tensor::Allocate(types_[i]);
      if (result.bytes() > 0) std::memcpy(result.mutable_data(), out_[i], result.bytes());
      results.push_back(std::move(result));
    }
    op_test::NoteOutputs(*context_, results);
    return results;
  }

 private:
  RankOp(const OpCall& call, Communicator& group) : call_(call), groups_(group) {}

  void Place(const OpContext& context, DeviceMemory& memory) {
    const auto hbm = [&](uint64_t bytes) {
      arrays_.push_back(std::make_unique<HbmArray<std::byte>>(memory, bytes));
      return arrays_.back()->data();
    };
    in_.resize(static_cast<size_t>(context.slots()), nullptr);
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (!context.has(slot)) continue;
      const Tensor& value = call_.inputs[static_cast<size_t>(context.input_index(slot))].value;
      std::byte* copy = hbm(value.bytes());
      if (value.bytes() > 0) std::memcpy(copy, value.data(), value.bytes());
      in_[static_cast<size_t>(slot)] = copy;
    }
    for (int i = 0; i < context.outputs(); ++i) {
      types_.push_back(context.out(i));
      out_.push_back(hbm(context.out(i).bytes()));
    }
    scratch_ = hbm(kernel_->scratch_bytes());
  }

  OpCall call_;
  OneGroup groups_;
  Node node_;
  std::optional<OpContext> context_;
  bool noted_ = false;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<HbmArray<std::byte>>> arrays_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<TensorType> types_;
  void* scratch_ = nullptr;
};

// Collective over the group. Inputs are copied to HBM, outputs back.
inline Result<std::vector<Tensor>> RunOnRank(const OpRegistry& registry, const OpCall& call,
                                             Communicator& group, DeviceMemory& memory) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<RankOp> op,
                           RankOp::Make(registry, call, group, memory));
  NPUMESH_RETURN_IF_ERROR(op->Run());
  return op->Outputs();
}

// `body` on `ranks` ranks with a group of all of them.
using RankBody = std::function<Status(Communicator&, DeviceMemory&)>;
inline std::vector<Status> OnRanks(int ranks, const RankBody& body) {
  return RunRanks(ranks, TestEnv(), [&](World& world) -> Status {
    std::vector<int> everyone;
    for (int r = 0; r < ranks; ++r) everyone.push_back(r);
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "ranks", everyone));
    const Status status = body(*group, *memory);
    const Status end = world.Shutdown();
    return status.ok() ? end : status;
  });
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_OPERATORS_RANK_OP_H_
