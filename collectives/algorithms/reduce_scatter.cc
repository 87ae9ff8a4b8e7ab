// ReduceScatter in the window: rank r reads block r of all inputs in rank order. Reads n*N, writes
// N.
#include <array>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status Direct(const Call& call, Members& members) {
  const uint64_t at = static_cast<uint64_t>(members.rank) * call.bytes();
  std::vector<const void*> inputs;
  for (int r = 0; r < members.size; ++r) inputs.push_back(members.send_of(r) + at);
  void* output = call.recv;
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1, call.count,
                                  call.bytes() > kStreamBytes);
  return Status();
}

constexpr std::array<Algorithm, 3> kTable = {{
    {"direct", UnlessInWindow, Direct},
    {"mpi", NoObjection, MpiReduceScatter},
    {"reference", NoObjection, ReferenceReduceScatter},
}};

}  // namespace

std::span<const Algorithm> ReduceScatterTable() {
  return kTable;
}

}  // namespace npumesh
