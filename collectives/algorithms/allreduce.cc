// AllReduce.
//
//   small         every rank copies its input into its slot and reduces all slots into its output.
//                 Reads n*N, writes 2N a rank; one synchronisation.
//   direct        rank r reduces slice r of all inputs in rank order and stores it straight into
//                 all outputs. Reads N, writes N a rank, one pass, nothing is stored twice.
//   hierarchical  direct, with messages for what lies on other nodes: operands come to the owner of
//                 a slice, and its result goes to one rank of each other node.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

Status SmallAllReduce(const Call& call, Members& members) {
  PerMember<const void*> inputs;
  for (int r = 0; r < members.size; ++r) inputs.push_back(members.meeting.eager(r));
  void* output = call.recv;
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1, call.count, false);
  return Status();
}

Status DirectAllReduce(const Call& call, Members& members) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const Slice slice = SliceOf(call.count, width, members.rank, members.size);
  PerMember<const void*> inputs;
  PerMember<void*> outputs;
  for (int r = 0; r < members.size; ++r) {
    inputs.push_back(members.send_of(r) + slice.begin * width);
    outputs.push_back(members.recv_of(r) + slice.begin * width);
  }
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, outputs.data(), members.size,
                                  slice.count, call.bytes() > kStreamBytes);
  return Status();
}

// In place is safe: a rank's part of a slice is written only when the owner of the slice has it.
Status HierarchicalAllReduce(const Call& call, Members& members) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const auto slice = [&](int r) { return SliceOf(call.count, width, r, members.size); };
  const Slice own = slice(members.rank);
  const auto store = [&](const std::vector<const void*>& inputs, uint64_t at, uint64_t count) {
    std::vector<void*> outputs;
    for (const int peer : members.hierarchy->neighbours()) {
      outputs.push_back(members.recv_of(peer) + (own.begin + at) * width);
    }
    if (count != 0) {
      FindReduce(call.dtype, call.op)(inputs.data(), members.size, outputs.data(),
                                      static_cast<int>(outputs.size()), count, false);
    }
    return RelayBlocks(
        call.recv + (own.begin + at) * width, members,
        [&](int r) { return RoundOf(slice(r).count, at, members.size, width) * width; },
        [&](int r) { return (slice(r).begin + at) * width; }, call.recv);
  };
  const Shares shares{
      [&](int owner) { return slice(owner).count; },
      [&](int owner) { return call.send + slice(owner).begin * width; },
      [&](int peer) { return members.send_of(peer) + own.begin * width; },
  };
  return GatherOperands(call, members, shares, store);
}

constexpr std::array<Algorithm, 8> kAllReduces = {{
    {"small", UnlessEager, SmallAllReduce, Travel::kEager},
    {"direct", UnlessInWindow, DirectAllReduce, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalAllReduce, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiAllReduce},
    {"ring", NoObjection, StepAllReduce<kRing>},
    {"H-D_R", NoObjection, StepAllReduce<kHalvingDoubling>},
    {"NHR", NoObjection, StepAllReduce<kNonuniformRing>},
    {"reference", NoObjection, ReferenceAllReduce},
}};

}  // namespace

std::span<const Algorithm> AllReduceTable() {
  return kAllReduces;
}

}  // namespace npumesh
