// Ranks that MPI has not started: the transport over sockets, here between threads that each stand
// for a process.
#include "runtime/world/socket_transport.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <numeric>
#include <random>

#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/thread.h"
#include "runtime/world/abstract_address.h"
#include "runtime/world/world.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// An appointment that no other test of this host has.
Appointment Unique(int rank, int size, const std::string& place) {
  return {rank, size, fmt::format("npumesh.test.{}.{}", getpid(), place)};
}

// `body` for each rank, at the same time.
std::vector<Status> Ranks(int size, const std::string& place,
                          const std::function<Status(Transport&)>& body) {
  std::vector<Status> statuses(static_cast<size_t>(size));
  EXPECT_TRUE(OnThreads(size, "each rank", [&](int rank) {
                auto transport = MakeSocketTransport(Unique(rank, size, place), seconds(60));
                statuses[static_cast<size_t>(rank)] =
                    transport.ok() ? body(**transport) : transport.status();
              }).ok());
  return statuses;
}

std::span<const std::byte> BytesOfText(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(SocketTransport, MessagesOfAllSizesArriveInTheirOrder) {
  constexpr int kRanks = 4;
  ExpectAllOk(Ranks(kRanks, "messages", [](Transport& transport) -> Status {
    const int to = (transport.rank() + 1) % kRanks;
    const int from = (transport.rank() + kRanks - 1) % kRanks;
    std::mt19937 random(7);  // the same sizes on all ranks
    for (int i = 0; i < 200; ++i) {
      const size_t bytes = i % 20 == 0 ? 3'000'000 : random() % 5000;
      const auto filled = [&](int rank) {
        return std::vector<std::byte>(bytes, static_cast<std::byte>(rank * 50 + i % 50));
      };
      std::vector<std::byte> got(bytes);
      NPUMESH_RETURN_IF_ERROR(transport.Exchange(to, filled(transport.rank()), from, got, i % 3,
                                                 Deadline::After(seconds(60))));
      if (got != filled(from)) return Error(Code::kInternal, "message {} is another one", i);
    }
    return Status();
  }));
}

// As each message of a batch has its own thread: none is lost, torn or taken for another.
TEST(SocketTransport, ThreadsExchangeAtOnce) {
  constexpr int kRanks = 3, kThreads = 4, kMessages = 150;
  ExpectAllOk(Ranks(kRanks, "threads", [](Transport& transport) -> Status {
    std::vector<Status> statuses(kThreads);
    const auto exchange = [&](int thread) -> Status {
      std::mt19937 random(static_cast<unsigned>(thread));  // the same sizes on all ranks
      for (int i = 0; i < kMessages; ++i) {
        const int step = static_cast<int>(random() % kRanks);  // 0: to itself
        const int to = (transport.rank() + step) % kRanks;
        const int from = (transport.rank() + kRanks - step) % kRanks;
        const size_t bytes = i % 10 == 0 ? 1'000'000 : random() % 3000;
        const auto filled = [&](int rank) {
          return std::vector<std::byte>(bytes,
                                        static_cast<std::byte>(rank * 80 + thread * 20 + i % 20));
        };
        std::vector<std::byte> got(bytes);
        NPUMESH_RETURN_IF_ERROR(transport.Exchange(to, filled(transport.rank()), from, got, thread,
                                                   Deadline::After(seconds(60))));
        if (got != filled(from)) return Error(Code::kInternal, "message {} is another one", i);
      }
      return Status();
    };
    NPUMESH_RETURN_IF_ERROR(OnThreads(kThreads, "each thread of a rank", [&](int thread) {
      statuses[static_cast<size_t>(thread)] = exchange(thread);
    }));
    for (const Status& status : statuses) NPUMESH_RETURN_IF_ERROR(status);
    return transport.Shutdown(Deadline::After(seconds(60)));
  }));
}

TEST(SocketTransport, TagsKeepMessagesApart) {
  ExpectAllOk(Ranks(2, "tags", [](Transport& transport) -> Status {
    const Deadline deadline = Deadline::After(seconds(60));
    const int peer = 1 - transport.rank();
    for (const int tag : {5, 9}) {
      NPUMESH_RETURN_IF_ERROR(
          transport.Exchange(peer, BytesOfText(tag == 5 ? "five" : "nine"), -1, {}, tag, deadline));
    }
    for (const int tag : {9, 5}) {
      std::string got(4, ' ');
      NPUMESH_RETURN_IF_ERROR(
          transport.Exchange(-1, {}, peer, std::as_writable_bytes(std::span(got)), tag, deadline));
      EXPECT_EQ(got, tag == 5 ? "five" : "nine");
    }
    // To itself, too.
    std::string own(3, ' ');
    NPUMESH_RETURN_IF_ERROR(
        transport.Exchange(transport.rank(), BytesOfText("own"), transport.rank(),
                           std::as_writable_bytes(std::span(own)), 1, deadline));
    EXPECT_EQ(own, "own");
    return transport.Shutdown(deadline);
  }));
}

TEST(SocketTransport, WorldsShareMemoryAndCompute) {
  constexpr int kRanks = 3;
  const Env env = TestEnv();
  std::vector<Status> statuses(kRanks);
  ASSERT_TRUE(OnThreads(kRanks, "each rank", [&](int rank) {
                statuses[static_cast<size_t>(rank)] = [&]() -> Status {
                  NPUMESH_ASSIGN_OR_RETURN(
                      auto transport,
                      MakeSocketTransport(Unique(rank, kRanks, "world"), seconds(60)));
                  NPUMESH_ASSIGN_OR_RETURN(auto world, World::Start(env, std::move(transport)));
                  EXPECT_EQ(world->local_size(), kRanks);
                  NPUMESH_ASSIGN_OR_RETURN(auto segment, world->transport().Share("test", 5000));
                  EXPECT_EQ(segment->bytes(), 8192U);
                  segment->part(rank)[17] = static_cast<std::byte>(rank + 1);
                  std::vector<int> all(kRanks);
                  std::iota(all.begin(), all.end(), 0);
                  const Deadline deadline = Deadline::After(seconds(60));
                  NPUMESH_ASSIGN_OR_RETURN(auto group, world->transport().Group(all, 1, deadline));
                  NPUMESH_RETURN_IF_ERROR(group->Barrier(deadline));
                  for (int peer = 0; peer < kRanks; ++peer) {
                    EXPECT_EQ(segment->part(peer)[17], static_cast<std::byte>(peer + 1));
                  }
                  return world->Shutdown();
                }();
              }).ok());
  ExpectAllOk(statuses);
}

TEST(SocketTransport, ARankThatEndsIsNamed) {
  const std::vector<Status> statuses = Ranks(2, "ends", [](Transport& transport) -> Status {
    if (transport.rank() == 1) return Status();
    std::vector<std::byte> never(1);
    return transport.Exchange(-1, {}, 1, never, 0, Deadline::After(seconds(60)));
  });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 1 has ended"));
}

TEST(SocketTransport, AMessageThatDoesNotComeIsATimeOut) {
  std::atomic<bool> told{false};
  const std::vector<Status> statuses = Ranks(2, "late", [&](Transport& transport) -> Status {
    if (transport.rank() == 1) {
      told.wait(false);
      return Status();
    }
    std::vector<std::byte> never(1);
    const Status status =
        transport.Exchange(-1, {}, 1, never, 0, Deadline::After(milliseconds(50)));
    told = true;
    told.notify_one();
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kTimeout);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 1 did not come in time"));
}

TEST(Meeting, RanksThatDoNotComeAreNamed) {
  const auto transport = MakeSocketTransport(Unique(1, 4, "missing"), seconds(1));
  EXPECT_EQ(transport.status().code(), Code::kTimeout);
  EXPECT_THAT(std::string(transport.status().message()),
              HasSubstr("rank(s) 0,2-3 of 4 did not come"));
}

TEST(Meeting, TwoOfOneRankAreAnError) {
  const Appointment appointment = Unique(0, 2, "twice");
  const UniqueFd other(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address;
  const socklen_t length = AbstractAddress(appointment.name + ".0", &address);
  ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  const Status status = MakeSocketTransport(appointment, seconds(60)).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is rank 0 already"));
}

TEST(Meeting, RanksOfAnotherWorldSizeAreAnError) {
  std::vector<Status> statuses(2);
  ASSERT_TRUE(OnThreads(2, "each", [&](int rank) {
                Appointment appointment = Unique(rank, 2 + rank, "sizes");
                statuses[static_cast<size_t>(rank)] =
                    MakeSocketTransport(appointment, seconds(20)).status();
              }).ok());
  // One of them is told; the other sees it leave.
  EXPECT_THAT((std::vector<Code>{statuses[0].code(), statuses[1].code()}),
              testing::Contains(Code::kMismatch));
  EXPECT_FALSE(statuses[0].ok() || statuses[1].ok());
}

class Appointments : public testing::Test {
 protected:
  Appointments() {
    env_.rank = 1;
    env_.world_size = 2;
  }
  Result<std::optional<Appointment>> Made() const {
    return AppointmentOf(env_, [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second;
    });
  }

  Env env_;
  std::map<std::string, const char*> variables_{{"MASTER_ADDR", "localhost"},
                                                {"MASTER_PORT", "29500"}};
};

TEST_F(Appointments, FourVariablesMakeOne) {
  const auto made = Made();
  ASSERT_TRUE(made.ok() && made->has_value());
  EXPECT_EQ((*made)->rank, 1);
  EXPECT_EQ((*made)->size, 2);
  const std::string name = (*made)->name;
  variables_["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_NE((*Made())->name, name);
}

TEST_F(Appointments, WithoutOneOfThemThereIsNone) {
  const auto nothing = [this] { return Made().ok() && !Made()->has_value(); };
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    const char* const value = std::exchange(variables_[name], nullptr);
    EXPECT_TRUE(nothing()) << name;
    variables_[name] = value;
  }
  env_.world_size = 1;
  env_.rank = 0;
  EXPECT_TRUE(nothing());
  env_.world_size.reset();
  EXPECT_TRUE(nothing());
  env_.world_size = 2;
  env_.rank.reset();
  EXPECT_TRUE(nothing());
}

TEST_F(Appointments, WhatCannotBeIsAnError) {
  const auto text = [this] { return std::string(Made().status().message()); };
  env_.rank = 2;
  EXPECT_THAT(text(), HasSubstr("RANK is 2, WORLD_SIZE 2"));
  env_.rank = 1;
  env_.local_world_size = 1;
  EXPECT_THAT(text(), HasSubstr("LOCAL_WORLD_SIZE is 1 of WORLD_SIZE 2"));
  env_.local_world_size = 2;
  variables_["MASTER_PORT"] = "http";
  EXPECT_THAT(text(), HasSubstr("MASTER_PORT"));
}

}  // namespace
}  // namespace npumesh
