#include "runtime/profile/profiler.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "runtime/profile/scoped_span.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

class ProfilerTest : public testing::Test {
 protected:
  Status Start(uint64_t most_bytes = Profiler::kMostBytes) {
    return profiler_.Start(folder_.path() + "/profile", ProfileOwner{}, most_bytes);
  }
  Result<RankProfile> Read() const {
    return ReadRankProfile(folder_.path() + "/profile/" + ProfileFileName(0));
  }
  static Span At(int64_t begin) {
    Span span;
    span.begin_ns = begin;
    span.end_ns = begin + 1;
    return span;
  }

  TemporaryFolder folder_;
  Profiler profiler_;
};

TEST_F(ProfilerTest, OffItKeepsNothing) {
  profiler_.Add(At(1));
  EXPECT_FALSE(profiler_.on());
  EXPECT_EQ(profiler_.Name({}), 0u);
  EXPECT_TRUE(profiler_.Stop().ok());
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(profiler_.Stop().ok());
  profiler_.Add(At(1));
  EXPECT_TRUE(Read()->spans.empty());
}

TEST_F(ProfilerTest, SpansOfAllThreadsAreInTheFile) {
  ASSERT_TRUE(Start().ok());
  const uint32_t subject = profiler_.Name({.name = "Add_1"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < 5'000; ++i) {
        Span span = At(i);
        span.subject = subject;
        profiler_.Add(span);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler_.Stop().ok());
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->spans.size(), 15'000u);
  EXPECT_EQ(read->task(read->spans.back()).name, "Add_1");
  EXPECT_TRUE(read->ended);
  EXPECT_EQ(read->lost_full, 0u);
}

TEST_F(ProfilerTest, WhatIsBeyondTheLimitIsCounted) {
  ASSERT_TRUE(Start(200'000).ok());
  for (int64_t i = 0; i < 20'000; ++i) profiler_.Add(At(i));
  ASSERT_TRUE(profiler_.Stop().ok());
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok());
  EXPECT_GT(read->lost_limit, 0u);
  EXPECT_EQ(read->spans.size() + read->lost_limit, 20'000u);
  EXPECT_LT(std::filesystem::file_size(folder_.path() + "/profile/" + ProfileFileName(0)),
            201'000u);
}

TEST_F(ProfilerTest, ANewRunReplacesTheFile) {
  ASSERT_TRUE(Start().ok());
  const uint64_t first = profiler_.run();
  profiler_.Add(At(1));
  ASSERT_TRUE(Start().ok());
  EXPECT_NE(profiler_.run(), first);
  profiler_.Add(At(2));
  ASSERT_TRUE(profiler_.Stop().ok());
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->spans.size(), 1u);
  EXPECT_EQ(read->spans[0].begin_ns, 2);
}

// A full disk left half a profile under its name.
TEST_F(ProfilerTest, WhatCannotBeWrittenIsRemoved) {
  const auto usual_action = signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status started = Start();
  for (int i = 0; i < 1000; ++i) profiler_.Name({.name = "a name that takes some bytes"});
  const Status stopped = profiler_.Stop();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  signal(SIGXFSZ, usual_action);
  EXPECT_TRUE(started.ok()) << started.ToString();
  EXPECT_EQ(stopped.code(), Code::kIo) << stopped.ToString();
  EXPECT_FALSE(std::filesystem::exists(profiler_.path()));
}

TEST_F(ProfilerTest, ALinkIsRefused) {
  std::filesystem::create_directory_symlink(folder_.path(), folder_.path() + "/profile");
  const Status status = Start();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("symbolic link"));
  EXPECT_FALSE(profiler_.on());
}

TEST_F(ProfilerTest, AScopedSpanLastsAsItsBlock) {
  SpanSubject subject(ProfiledTask{.name = "block"});
  { const ScopedSpan off(&profiler_, SpanKind::kApi, subject); }
  ASSERT_TRUE(Start().ok());
  { const ScopedSpan nothing(nullptr, SpanKind::kApi, subject); }
  profiler_.set_iteration(4);
  {
    ScopedSpan span(&profiler_, SpanKind::kCopy, subject);
    span.set_bytes(12);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_TRUE(profiler_.Stop().ok());
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->spans.size(), 1u);
  const Span& span = read->spans[0];
  EXPECT_EQ(read->task(span).name, "block");
  EXPECT_EQ(span.bytes, 12u);
  EXPECT_EQ(span.iteration, 4u);
  EXPECT_GE(span.end_ns - span.begin_ns, 2'000'000);
}

// Killed at any moment, a rank loses nothing that a reader has seen.
TEST_F(ProfilerTest, AKilledProcessLosesLittle) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    Profiler profiler;
    if (!profiler.Start(folder_.path() + "/profile", ProfileOwner{}).ok()) _exit(1);
    for (;;) {
      const int64_t now = Profiler::Now();
      profiler.Add(At(now));
      if (write(pipes[1], &now, sizeof(now)) != sizeof(now)) _exit(1);
      usleep(500);
    }
  }
  close(pipes[1]);
  int64_t added = 0;
  size_t seen = 0;
  while (seen < 300 && read(pipes[0], &added, sizeof(added)) == 8) {
    const Result<RankProfile> living = Read();
    seen = living.ok() ? living->spans.size() : 0;
  }
  kill(child, SIGKILL);
  close(pipes[0]);
  waitpid(child, nullptr, 0);
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_FALSE(read->ended);
  EXPECT_GE(seen, 300u);
  EXPECT_GE(read->spans.size(), seen);
}

TEST_F(ProfilerTest, KeepsTheKindsThatWereAskedFor) {
  const std::string folder = folder_.path() + "/profile";
  ASSERT_TRUE(
      profiler_
          .Start(folder, ProfileOwner{}, Profiler::kMostBytes, Profiler::SetOf(SpanKind::kCopy))
          .ok());
  EXPECT_TRUE(profiler_.on());
  EXPECT_TRUE(profiler_.keeps(SpanKind::kCopy));
  EXPECT_FALSE(profiler_.keeps(SpanKind::kTask));
  Span copy = At(2);
  copy.kind = SpanKind::kCopy;
  profiler_.Add(At(1));
  profiler_.Add(copy);
  ASSERT_TRUE(profiler_.Stop().ok());
  ASSERT_EQ(Read()->spans.size(), 1u);
  EXPECT_EQ(Read()->spans[0].kind, SpanKind::kCopy);
}

TEST_F(ProfilerTest, ARunOfNoKindIsOn) {
  ASSERT_TRUE(
      profiler_.Start(folder_.path() + "/profile", ProfileOwner{}, Profiler::kMostBytes, 0).ok());
  EXPECT_TRUE(profiler_.on());
  profiler_.Add(At(1));
  ASSERT_TRUE(profiler_.Stop().ok());
  EXPECT_TRUE(Read()->ended);
  EXPECT_TRUE(Read()->spans.empty());
}

// A span that was open when its run ended has ids that mean something else in the next.
TEST_F(ProfilerTest, SpansOfAnEarlierRunAreDropped) {
  ProfileOwner owner;
  owner.start_monotonic_ns = 100;
  ASSERT_TRUE(profiler_.Start(folder_.path() + "/profile", owner).ok());
  Span unknown = At(200);
  unknown.subject = 1;
  Span known = At(200);
  profiler_.Add(At(99));
  profiler_.Add(unknown);
  profiler_.Add(known);
  ASSERT_TRUE(profiler_.Stop().ok());
  ASSERT_EQ(Read()->spans.size(), 1u);
  EXPECT_EQ(Read()->spans[0].subject, 0u);
}

// Operators of a step were missing in profiles: the number of tasks of a pack lies where a span has
// its group, and a run has fewer groups than that.
TEST_F(ProfilerTest, APackBelongsToTheRunThatNamedItsTasks) {
  ASSERT_TRUE(Start().ok());
  ASSERT_EQ(profiler_.NameAll(std::vector<ProfiledTask>(3)), 1u);
  const SpanPack known{.begin_ns = 10, .lasts_ns = {1, 2, 3}, .subject = 1, .count = 3};
  SpanPack unknown = known;
  unknown.subject = 2;
  profiler_.Add(known);
  profiler_.Add(unknown);
  ASSERT_TRUE(profiler_.Stop().ok());
  const Result<RankProfile> read = Read();
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->spans.size(), 3u);
  EXPECT_EQ(read->spans[2].subject, 3u);
  EXPECT_EQ(read->spans[2].end_ns, 16);
}

}  // namespace
}  // namespace npumesh
