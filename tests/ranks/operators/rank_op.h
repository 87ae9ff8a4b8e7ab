// Runs one operator on every rank of a group, with its tensors in the ranks' HBM.
#ifndef NPUMESH_TESTS_RANKS_OPERATORS_RANK_OP_H_
#define NPUMESH_TESTS_RANKS_OPERATORS_RANK_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/ranks/run_ranks.h"
#include "tests/unit/op_values.h"

namespace npumesh {

// The one group "ranks" of everybody.
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

// Collective over the group. Inputs are copied to HBM, outputs back.
inline Result<std::vector<Tensor>> RunOnRank(const OpRegistry& registry, OpCall call,
                                             Communicator& group, DeviceMemory& memory) {
  OneGroup groups(group);
  call.groups = &groups;
  const Operator* op = registry.Find(call.type);
  const Node node = op_test::MakeNode(*op, call);
  NPUMESH_ASSIGN_OR_RETURN(const OpContext context, op_test::BindAndInfer(*op, call, node));
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, op->make_kernel(context));
  std::vector<std::unique_ptr<HbmArray<std::byte>>> arrays;
  const auto hbm = [&](uint64_t bytes) {
    arrays.push_back(std::make_unique<HbmArray<std::byte>>(memory, bytes));
    return arrays.back()->data();
  };
  std::vector<const void*> in(static_cast<size_t>(context.slots()), nullptr);
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const Tensor& value = call.inputs[static_cast<size_t>(context.input_index(slot))].value;
    std::byte* copy = hbm(value.bytes());
    if (value.bytes() > 0) std::memcpy(copy, value.data(), value.bytes());
    in[static_cast<size_t>(slot)] = copy;
  }
  std::vector<void*> out;
  for (int i = 0; i < context.outputs(); ++i) out.push_back(hbm(context.out(i).bytes()));
  NPUMESH_RETURN_IF_ERROR(kernel->Run({in.data(), out.data(), hbm(kernel->scratch_bytes())}));
  std::vector<Tensor> results;
  for (int i = 0; i < context.outputs(); ++i) {
    Tensor result = Tensor::Allocate(context.out(i));
    if (result.bytes() > 0) {
      std::memcpy(result.mutable_data(), out[static_cast<size_t>(i)], result.bytes());
    }
    results.push_back(std::move(result));
  }
  return results;
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
