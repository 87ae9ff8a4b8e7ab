// AllReduce in the window.
//
//   small   everybody reduces everything into a buffer of its own and copies it over its output
//   when
//           all have read (outputs may be inputs). Reads n*N, writes 2N a rank.
//   direct  rank r reduces slice r of all inputs in rank order and stores it straight into all
//           outputs. Reads N, writes N a rank, one pass, nothing is stored twice.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

std::string_view UnlessSmall(const Facts& facts) {
  if (!facts.in_window) return UnlessInWindow(facts);
  if (facts.bytes > kSmallBytes) return "more than 8 KiB";
  return "";
}

Status Small(const Call& call, Members& members) {
  std::vector<const void*> inputs;
  for (int r = 0; r < members.size; ++r) inputs.push_back(members.send_of(r));
  void* output = members.scratch.data();
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1, call.count, false);
  return Status();
}

Status CopyBack(const Call& call, Members& members) {
  std::memcpy(call.recv, members.scratch.data(), call.bytes());
  return Status();
}

Status Direct(const Call& call, Members& members) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const Slice slice = SliceOf(call.count, width, members.rank, members.size);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int r = 0; r < members.size; ++r) {
    inputs.push_back(members.send_of(r) + slice.begin * width);
    outputs.push_back(members.recv_of(r) + slice.begin * width);
  }
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, outputs.data(), members.size,
                                  slice.count, call.bytes() > kStreamBytes);
  return Status();
}

constexpr std::array<Algorithm, 4> kTable = {{
    {"small", UnlessSmall, Small, CopyBack},
    {"direct", UnlessInWindow, Direct},
    {"mpi", NoObjection, MpiAllReduce},
    {"reference", NoObjection, ReferenceAllReduce},
}};

}  // namespace

std::span<const Algorithm> AllReduceTable() {
  return kTable;
}

}  // namespace npumesh
