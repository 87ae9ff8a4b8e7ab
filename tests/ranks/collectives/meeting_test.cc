// The meeting itself: eager data with one synchronisation, mixed with calls that wait for
// departures.
#include "collectives/contract/meeting.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

Request Barrier() {
  Request request;
  request.kind = CollectiveKind::kBarrier;
  return request;
}

// What rank `r` sends in call `c`.
uint64_t Word(int r, uint64_t c) {
  return c * 1000 + static_cast<uint64_t>(r);
}

Status Call(Meeting& meeting, World& world, uint64_t call, bool eager) {
  const uint64_t word = Word(world.rank(), call);
  NPUMESH_RETURN_IF_ERROR(
      meeting.Arrive(Barrier(), {}, {std::as_bytes(std::span(&word, eager ? 1 : 0))}));
  for (int peer = 0; eager && peer < world.size(); ++peer) {
    uint64_t got = 0;
    std::memcpy(&got, meeting.eager(peer), sizeof(got));
    if (got != Word(peer, call)) {
      return Error(Code::kInternal, "call {}: rank {} sent {}, expected {}", call, peer, got,
                   Word(peer, call));
    }
  }
  if (!eager) return meeting.Depart();
  meeting.Pass();
  return Status();
}

TEST(Meeting, EagerDataAreTheirCallsOwn) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto meeting, Meeting::Open(world, "m", {0, 1, 2}));
    for (uint64_t call = 0; call < 2000; ++call) {
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, call, call % 7 != 3));
    }
    return world.Shutdown();
  }));
}

// A fast rank leaves its group right after an eager call and opens another one in the same slot,
// while a slow one still reads: the slot must not change under it.
TEST(Meeting, LeavingAfterAnEagerCallHarmsNobody) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) -> Status {
    for (uint64_t round = 0; round < 50; ++round) {
      NPUMESH_ASSIGN_OR_RETURN(const auto meeting, Meeting::Open(world, "m", {0, 1, 2}));
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, round, true));
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, round + 1, true));
    }
    return world.Shutdown();
  }));
}

TEST(Meeting, RefusalsAndMismatchesEndEagerCallsToo) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto meeting, Meeting::Open(world, "m", {0, 1}));
    Request request = Barrier();
    if (world.rank() == 1) request.count = 9;
    const uint64_t word = 0;
    const Status status = meeting->Arrive(request, {}, {std::as_bytes(std::span(&word, 1))});
    (void)world.Shutdown();
    return status;
  });
  for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::kMismatch);
}

}  // namespace
}  // namespace npumesh
