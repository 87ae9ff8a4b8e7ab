#include "graph/session/node_sharing.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace npumesh {

Status CheckLocalWorldSizes(const World& world) {
  const std::vector<int>& sizes = world.local_world_sizes();
  const auto other =
      std::find_if(sizes.begin(), sizes.end(), [&](int size) { return size != sizes[0]; });
  if (other == sizes.end()) {
    if (sizes[0] == 0 && sizes.size() > 1 && FirstTime("static kernels without LOCAL_WORLD_SIZE")) {
      NPUMESH_INFO(
          "static kernels: LOCAL_WORLD_SIZE is not set; MPI says that {} rank(s) share "
          "this node",
          world.local_size());
    }
    return Status();
  }
  const auto rank = other - sizes.begin();
  if (sizes[0] != 0 && *other != 0) {
    return Error(
        Code::kInvalidArgument,
        "static kernels: LOCAL_WORLD_SIZE is {} on rank 0 and {} on rank {}; start equally "
        "many ranks on each node, or unset it on all",
        sizes[0], *other, rank);
  }
  return Error(Code::kInvalidArgument,
               "static kernels: LOCAL_WORLD_SIZE is {} on rank {}, but rank {} does not have it; "
               "set it on all nodes or on none",
               std::max(sizes[0], *other), sizes[0] != 0 ? 0 : rank, sizes[0] != 0 ? rank : 0);
}

}  // namespace npumesh
