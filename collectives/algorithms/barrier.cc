// Barrier: in the window meeting is all there is to it.
#include <array>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status Meet(const Call&, Members&) {
  return Status();
}

constexpr std::array<Algorithm, 2> kBarriers = {{
    {"direct", UnlessInWindow, Meet, Travel::kEager},
    {"mpi", NoObjection, MpiBarrier},
}};

}  // namespace

std::span<const Algorithm> BarrierTable() {
  return kBarriers;
}

}  // namespace npumesh
