#include "collectives/hccl/creation/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "collectives/hccl/creation/rendezvous_wire.h"
#include "runtime/base/process/wait.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr RendezvousToken kToken{std::byte{1}, std::byte{2}};

class Rendezvous : public testing::Test {
 protected:
  void Listen(std::chrono::seconds patience, const std::string& ip = "127.0.0.1") {
    auto server = RootServer::Start({ip, {0}, kToken, patience});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    root_ = {ip, server_->port(), "id", 0, kToken};
  }

  // All attend at once; results in the order of `ranks`.
  std::vector<Result<std::vector<int>>> AttendAll(const std::vector<Attendance>& ranks) {
    std::vector<Result<std::vector<int>>> results(ranks.size(), std::vector<int>());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] {
        results[i] = Attend(root_, ranks[i], std::chrono::seconds(60), [] { return Status(); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  void ExpectAll(const std::vector<Attendance>& ranks, Code code, const std::string& text) {
    for (const auto& result : AttendAll(ranks)) {
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.status().code(), code);
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
    }
  }

  std::unique_ptr<RootServer> server_;
  RootInfo root_;
};

TEST_F(Rendezvous, TellsEverybodyWhoIsWho) {
  Listen(std::chrono::seconds(10));
  for (const auto& result : AttendAll({{3, 0, 7}, {3, 2, 1}, {3, 1, 4}})) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_THAT(result.value(), ElementsAre(7, 4, 1));
  }
}

TEST_F(Rendezvous, WorksOverIpv6) {
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  if (!probe || bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) != 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  Listen(std::chrono::seconds(10), "::1");
  for (const auto& result : AttendAll({{2, 0, 1}, {2, 1, 0}})) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_THAT(result.value(), ElementsAre(1, 0));
  }
}

TEST_F(Rendezvous, ARootThatIsNoAddressIsRefused) {
  const auto server = RootServer::Start({"host0", {0}, kToken, std::chrono::seconds(1)});
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()),
              HasSubstr("\"host0\" is no IPv4 or IPv6 address"));
}

TEST_F(Rendezvous, NamesWhoIsMissing) {
  Listen(std::chrono::seconds(1));
  ExpectAll({{4, 0, 0}, {4, 2, 2}}, Code::kTimeout, "rank(s) 1,3 of 4 did not come within 1 s");
}

TEST_F(Rendezvous, ARankTwiceIsSaidToBoth) {
  Listen(std::chrono::seconds(10));
  ExpectAll({{2, 0, 0}, {2, 0, 1}}, Code::kMismatch, "both say they are rank 0");
}

TEST_F(Rendezvous, ADeviceTwiceIsSaidToBoth) {
  Listen(std::chrono::seconds(10));
  ExpectAll({{2, 0, 5}, {2, 1, 5}}, Code::kMismatch, "world rank 5 comes twice");
}

TEST_F(Rendezvous, DifferentSizesAreSaidToBoth) {
  Listen(std::chrono::seconds(10));
  ExpectAll({{2, 0, 0}, {3, 1, 1}}, Code::kMismatch, "nRanks");
}

TEST_F(Rendezvous, StrangersAreIgnored) {
  Listen(std::chrono::seconds(10));
  RootInfo stranger = root_;
  stranger.token[0] = std::byte{9};
  const auto refused =
      Attend(stranger, {1, 0, 0}, std::chrono::seconds(5), [] { return Status(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kPeerLost);
  EXPECT_TRUE(AttendAll({{1, 0, 0}}).front().ok());
}

// A connection to the root that says `words` and no more.
UniqueFd Stranger(const RootInfo& root, std::string_view words) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(root.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return {};
  if (!words.empty()) (void)!send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL);
  return fd;
}

// True when the other end closes within `patience`.
bool IsSentAway(const UniqueFd& stranger, std::chrono::seconds patience) {
  const timeval limit{patience.count(), 0};
  setsockopt(stranger.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  char byte;
  const ssize_t got = recv(stranger.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

TEST_F(Rendezvous, WhoSaysTooLittleIsSentAway) {
  auto server = RootServer::Start(
      {"127.0.0.1", {0}, kToken, std::chrono::seconds(30), std::chrono::milliseconds(100)});
  ASSERT_TRUE(server.ok());
  const RootInfo root{"127.0.0.1", (*server)->port(), "id", 0, kToken};
  EXPECT_TRUE(IsSentAway(Stranger(root, ""), std::chrono::seconds(10)));
  EXPECT_TRUE(IsSentAway(Stranger(root, "GET / HTTP/1.1"), std::chrono::seconds(10)));
  EXPECT_FALSE((*server)->done());
}

TEST_F(Rendezvous, NonsenseIsSentAwayAtOnce) {
  Listen(std::chrono::seconds(30));
  EXPECT_TRUE(
      IsSentAway(Stranger(root_, std::string(sizeof(Hello), 'x')), std::chrono::seconds(4)));
}

// A separate process that floods the root with connections, some silent and some with garbage.
class Flood {
 public:
  Flood(const RootInfo& root, int connections) {
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) Run(root, connections, ends[1]);
    close(ends[1]);
    char byte = 0;
    started_ = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
  }
  ~Flood() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  bool started() const { return started_; }

 private:
  [[noreturn]] static void Run(const RootInfo& root, int connections, int report) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(root.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < connections; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | (i % 3 == 0 ? 0 : SOCK_NONBLOCK), 0);
      (void)connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
      if (i % 3 == 0) (void)!send(fd, "garbage", 7, MSG_NOSIGNAL);
    }
    (void)!write(report, "x", 1);
    for (;;) pause();
  }

  pid_t child_ = -1;
  bool started_ = false;
};

// Once the second rank waited without end: accept failed, and no client was ever sent away.
TEST_F(Rendezvous, TheSecondRankGetsInBehind1500StrangersWith256Descriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 2000) GTEST_SKIP() << "this machine allows too few descriptors";
  Listen(std::chrono::seconds(60));
  {
    rlimit few = before;
    few.rlim_cur = 256;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const Flood flood(root_, 1500);
    ASSERT_TRUE(flood.started());
    for (const auto& result : AttendAll({{2, 0, 1}, {2, 1, 0}})) {
      ASSERT_TRUE(result.ok()) << result.status().ToString();
      EXPECT_THAT(result.value(), ElementsAre(1, 0));
    }
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(Rendezvous, TheEndOfTheRootIsNoticed) {
  Listen(std::chrono::seconds(10));
  std::thread end([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    server_.reset();
  });
  const auto lost = Attend(root_, {2, 0, 0}, std::chrono::seconds(10), [] { return Status(); });
  end.join();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.status().code(), Code::kPeerLost);
}

TEST_F(Rendezvous, TheWatchEndsTheWait) {
  Listen(std::chrono::seconds(10));
  const auto ended = Attend(root_, {2, 0, 0}, std::chrono::seconds(10),
                            [] { return Error(Code::kPeerLost, "rank 1 failed"); });
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.status().message(), "rank 1 failed");
}

TEST(RootInfoBlob, BeginsWithItsAddressAndComesBack) {
  const HcclRootInfo blob = Encode({"10.1.2.3", 60001, "10.1.2.3_60001_0_5", 3, kToken});
  EXPECT_STREQ(blob.internal, "10.1.2.3");
  RootInfo info;
  ASSERT_TRUE(Decode(blob, &info).ok());
  EXPECT_EQ(info.port, 60001);
  EXPECT_EQ(info.identifier, "10.1.2.3_60001_0_5");
  EXPECT_EQ(info.world_rank, 3);
  EXPECT_EQ(info.token, kToken);
}

TEST(RootInfoBlob, OthersAreRefused) {
  HcclRootInfo blob{};
  RootInfo info;
  EXPECT_EQ(Decode(blob, &info).result, HCCL_E_PARA);
  std::memset(blob.internal, 'x', sizeof(blob.internal));
  EXPECT_EQ(Decode(blob, &info).result, HCCL_E_PARA);
}

}  // namespace
}  // namespace npumesh
