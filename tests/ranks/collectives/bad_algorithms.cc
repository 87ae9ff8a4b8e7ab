// Algorithm libraries that are wrong in the way that a definition of the build names.
#include <stdexcept>

#include "collectives/algorithms/custom_algorithm.h"

namespace {

[[maybe_unused]] npumesh::Status Fails(const npumesh::Call&, npumesh::Members&) {
  return npumesh::Error(npumesh::Code::kUnsupported, "the row of the library was run");
}

[[maybe_unused]] npumesh::Status Throws(const npumesh::Call&, npumesh::Members&) {
  throw std::runtime_error("no luck");
}

}  // namespace

#ifdef OTHER_VERSION
extern "C" const npumesh::AlgorithmAbi NpumeshAlgorithmAbi;
const npumesh::AlgorithmAbi NpumeshAlgorithmAbi = {npumesh::kAlgorithmAbi.version + 1};
extern "C" void NpumeshAddAlgorithms(npumesh::AlgorithmList&) {}
#endif

#ifdef OTHER_SIZES
extern "C" const npumesh::AlgorithmAbi NpumeshAlgorithmAbi;
const npumesh::AlgorithmAbi NpumeshAlgorithmAbi = {npumesh::kAlgorithmAbi.version};
extern "C" void NpumeshAddAlgorithms(npumesh::AlgorithmList&) {}
#endif

#ifdef TAKEN_NAME
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kAllReduce, {"ring", npumesh::NoObjection, Fails});
}
#endif

#ifdef LONG_NAME
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kAllReduce,
           {"longer_than_a_name", npumesh::NoObjection, Fails});
}
#endif

#ifdef BAD_NAME
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kAllReduce, {"level1:own", npumesh::NoObjection, Fails});
}
#endif

#ifdef NO_WHY_NOT
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kAllReduce, {"own", nullptr, Fails});
}
#endif

#ifdef NO_TABLE
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kSendRecv, {"own", npumesh::NoObjection, Fails});
}
#endif

#ifdef ENDS_BADLY
NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(npumesh::CollectiveKind::kAllReduce, {"fails", npumesh::NoObjection, Fails});
  list.Add(npumesh::CollectiveKind::kAllGather, {"throws", npumesh::NoObjection, Throws});
}
#endif
