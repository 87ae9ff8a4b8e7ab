// ReduceScatter and ReduceScatterV.
//
//   small         every rank copies its input into its slot and reduces its block of all slots.
//                 Reads n*N, writes (n+1)*N a rank; one synchronisation.
//   direct        in the window rank r reduces block r of all inputs in rank order. Reads n*N,
//                 writes N a rank.
//   hierarchical  the same; blocks of ranks on other nodes come as messages.
#include <array>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/fetch.h"
#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

uint64_t CountOf(const Call& call, int owner) {
  return call.send_bytes.empty()
             ? call.count
             : call.send_bytes[static_cast<size_t>(owner)] / *BytesOf(call.dtype, 1);
}

void ReduceInputs(const Call& call, const void* const* inputs, int size, std::byte* recv,
                  uint64_t count, bool stream) {
  void* output = recv;
  FindReduce(call.dtype, call.op)(inputs, size, &output, 1, count, stream);
}

Status SmallReduceScatter(const Call& call, Members& members) {
  const uint64_t at = static_cast<uint64_t>(members.rank) * call.bytes();
  PerMember<const void*> inputs;
  for (int r = 0; r < members.size; ++r) inputs.push_back(members.meeting.eager(r) + at);
  ReduceInputs(call, inputs.data(), inputs.size(), call.recv, call.count, false);
  return Status();
}

Status DirectReduceScatter(const Call& call, Members& members) {
  PerMember<const void*> inputs;
  for (int r = 0; r < members.size; ++r) inputs.push_back(BlockFrom(call, members, r));
  const uint64_t count = CountOf(call, members.rank);
  ReduceInputs(call, inputs.data(), inputs.size(), call.recv, count,
               count * *BytesOf(call.dtype, 1) > kStreamBytes);
  return Status();
}

Status HierarchicalReduceScatter(const Call& call, Members& members) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const Shares shares{
      [&](int owner) { return CountOf(call, owner); },
      [&](int owner) { return call.send + call.send_block_at(owner); },
      [&](int peer) { return BlockFrom(call, members, peer); },
  };
  return GatherOperands(call, members, shares,
                        [&](const std::vector<const void*>& inputs, uint64_t at, uint64_t count) {
                          if (count != 0) {
                            ReduceInputs(call, inputs.data(), members.size, call.recv + at * width,
                                         count, false);
                          }
                          return Status();
                        });
}

constexpr std::array<Algorithm, 8> kReduceScatters = {{
    {"small", UnlessEager, SmallReduceScatter, Travel::kEager},
    {"direct", UnlessInWindow, DirectReduceScatter, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalReduceScatter, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiReduceScatter},
    {"ring", NoObjection, StepReduceScatter<kRing>},
    {"H-D_R", NoObjection, StepReduceScatter<kHalvingDoubling>},
    {"NHR", NoObjection, StepReduceScatter<kNonuniformRing>},
    {"reference", NoObjection, ReferenceReduceScatter},
}};

constexpr std::array<Algorithm, 4> kReduceScatterVs = {{
    {"direct", UnlessInWindow, DirectReduceScatter, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalReduceScatter, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiReduceScatterV},
    {"reference", NoObjection, ReferenceReduceScatterV},
}};

}  // namespace

std::span<const Algorithm> ReduceScatterTable() {
  return kReduceScatters;
}

std::span<const Algorithm> ReduceScatterVTable() {
  return kReduceScatterVs;
}

}  // namespace npumesh
