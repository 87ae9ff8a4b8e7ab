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
    const auto meeting = Meeting::Of(world, "m", {0, 1, 2});
    NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
    for (uint64_t call = 0; call < 2000; ++call) {
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, call, call % 7 != 3));
    }
    return world.Shutdown();
  }));
}

// The bytes of `rank` in call `call`; no two calls have the same.
std::vector<std::byte> BytesOf(int rank, uint64_t call, uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (uint64_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 31 + call * 7 + static_cast<uint64_t>(rank) * 101);
  }
  return bytes;
}

// One call in which all ranks have `size` bytes, or only `sender` has.
Status Exchange(Meeting& meeting, World& world, uint64_t call, uint64_t size, int sender) {
  const bool has = sender < 0 || sender == world.rank();
  const std::vector<std::byte> mine = BytesOf(world.rank(), call, has ? size : 0);
  NPUMESH_RETURN_IF_ERROR(meeting.Arrive(Barrier(), {}, {mine, sender, size}));
  for (int peer = 0; peer < world.size(); ++peer) {
    if (sender >= 0 && sender != peer) continue;
    const std::vector<std::byte> expected = BytesOf(peer, call, size);
    if (std::memcmp(meeting.eager(peer), expected.data(), size) == 0) continue;
    return Error(Code::kInternal, "call {}: not the {} bytes of rank {}", call, size, peer);
  }
  meeting.Pass();
  return Status();
}

// Around every size at which one more cache line is needed, and where lines end.
TEST(Meeting, EagerDataHaveAnySize) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) -> Status {
    const auto meeting = Meeting::Of(world, "m", {0, 1, 2});
    NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
    uint64_t call = 0;
    for (uint64_t size = 1; size <= 1200; ++size) {
      const int sender = static_cast<int>(size % 4) - 1;
      NPUMESH_RETURN_IF_ERROR(Exchange(*meeting, world, call++, size, sender));
    }
    for (const uint64_t size : {uint64_t{5000}, uint64_t{3}, Meeting::kEagerBytes, uint64_t{56}}) {
      NPUMESH_RETURN_IF_ERROR(Exchange(*meeting, world, call++, size, -1));
    }
    return world.Shutdown();
  }));
}

// Whatever way the data would have travelled: all ranks get the same words.
TEST(Meeting, SmallCallsThatDifferAreFound) {
  struct Wish {
    uint64_t count, eager;
  };
  const std::array<std::array<Wish, 2>, 4> wishes = {
      {{{{4, 16}, {5, 20}}}, {{{4, 16}, {400, 1600}}}, {{{4, 16}, {4000, 0}}}, {{{0, 0}, {1, 4}}}}};
  for (const auto& [usual, other] : wishes) {
    std::array<std::string, 3> texts;
    RunRanks(3, TestEnv(), [&](World& world) -> Status {
      const auto meeting = Meeting::Of(world, "m", {0, 1, 2});
      NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
      for (uint64_t call = 0; call < 3; ++call) {
        NPUMESH_RETURN_IF_ERROR(Exchange(*meeting, world, call, 16, -1));
      }
      const Wish& wish = world.rank() == 1 ? other : usual;
      Request request;
      request.kind = CollectiveKind::kAllReduce;
      request.count = wish.count;
      const std::vector<std::byte> mine(wish.eager);
      const Status status = meeting->Arrive(request, {}, {mine});
      EXPECT_EQ(status.code(), Code::kMismatch);
      texts[static_cast<size_t>(world.rank())] = status.message();
      return world.Shutdown();
    });
    EXPECT_THAT(texts[0], testing::HasSubstr(std::to_string(other.count)));
    EXPECT_EQ(texts[1], texts[0]);
    EXPECT_EQ(texts[2], texts[0]);
  }
}

// A fast rank leaves its group right after an eager call and opens another one in the same slot,
// while a slow one still reads: the slot must not change under it.
TEST(Meeting, LeavingAfterAnEagerCallHarmsNobody) {
  ExpectAllOk(RunRanks(3, TestEnv(), [](World& world) -> Status {
    for (uint64_t round = 0; round < 50; ++round) {
      const auto meeting = Meeting::Of(world, "m", {0, 1, 2});
      NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, round, true));
      NPUMESH_RETURN_IF_ERROR(Call(*meeting, world, round + 1, true));
    }
    return world.Shutdown();
  }));
}

TEST(Meeting, RefusalsAndMismatchesEndEagerCallsToo) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    const auto meeting = Meeting::Of(world, "m", {0, 1});
    NPUMESH_RETURN_IF_ERROR(meeting->Meet("creating", world.env().connect_timeout));
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
