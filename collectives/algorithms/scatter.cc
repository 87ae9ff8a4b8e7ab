// Scatter.
//
//   direct        in the window every rank copies its block from the root. Reads and writes N.
//   hierarchical  direct on the root's node, whose ranks also send the blocks of the others,
//                 straight from the root's memory.
#include <array>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

const std::byte* BlockAtRoot(const Call& call, const Members& members, int owner) {
  return members.send_of(call.root) + static_cast<uint64_t>(owner) * call.bytes();
}

Status DirectScatter(const Call& call, Members& members) {
  const std::byte* block = BlockAtRoot(call, members, members.rank);
  if (call.count != 0) CopyBlock(call.recv, block, call.bytes(), call.bytes());
  return Status();
}

Status HierarchicalScatter(const Call& call, Members& members) {
  const Hierarchy& hierarchy = *members.hierarchy;
  const auto root_node = static_cast<size_t>(hierarchy.node_of[static_cast<size_t>(call.root)]);
  Mail mail(members);
  if (!hierarchy.is_near(call.root)) {
    mail.Receive(hierarchy.Counterpart(members.rank, root_node), call.recv, call.bytes());
    return mail.Deliver();
  }
  for (int r = 0; r < members.size; ++r) {
    if (hierarchy.is_near(r) || hierarchy.Counterpart(r, root_node) != members.rank) continue;
    mail.Send(r, BlockAtRoot(call, members, r), call.bytes());
  }
  NPUMESH_RETURN_IF_ERROR(mail.Deliver());
  return DirectScatter(call, members);
}

constexpr std::array<Algorithm, 4> kScatters = {{
    {"direct", UnlessInWindow, DirectScatter, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalScatter, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiScatter},
    {"reference", NoObjection, ReferenceScatter},
}};

}  // namespace

std::span<const Algorithm> ScatterTable() {
  return kScatters;
}

}  // namespace npumesh
