#include "runtime/profile/profile_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <fstream>
#include <random>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ProfileFileTest : public testing::Test {
 protected:
  static ProfileOwner Owner(int rank) {
    ProfileOwner owner;
    owner.rank = rank;
    owner.world_size = 4;
    owner.host = "alpha";
    owner.boot_id = "b00t";
    owner.start_monotonic_ns = 1'000;
    owner.fp_point = "first";
    return owner;
  }
  static Span Lasting(int64_t begin, int64_t end, uint32_t subject = 1, uint32_t group = 1) {
    Span span;
    span.begin_ns = begin;
    span.end_ns = end;
    span.subject = subject;
    span.group = group;
    return span;
  }
  static std::string Whole() {
    ProfiledTask task;
    task.id = 1;
    task.name = "MatMul_3";
    task.type = "MatMul";
    task.input_shapes = {"2,3", "3,4"};
    task.flops = 48;
    const Span spans[] = {Lasting(2'000, 2'500), Lasting(2'500, 2'600)};
    return ProfileHeader(Owner(2)) + TaskBlock(task) + GroupBlock({1, 77, "tp", {0, 2}}) +
           ClockBlock({10, -5, 2}) + SpansBlock(spans, 2) + EndBlock(3, 4);
  }
  std::string Write(const std::string& bytes, int rank = 2) {
    const std::string path = folder_.path() + "/" + ProfileFileName(rank);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string Refusal(const std::string& bytes) {
    const Result<RankProfile> profile = ReadRankProfile(Write(bytes));
    EXPECT_EQ(profile.status().code(), Code::kCorrupt) << profile.status().ToString();
    return std::string(profile.status().message());
  }

  TemporaryFolder folder_;
};

TEST_F(ProfileFileTest, EverythingComesBack) {
  const Result<RankProfile> read = ReadRankProfile(Write(Whole()));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->owner.rank, 2);
  EXPECT_EQ(read->owner.world_size, 4);
  EXPECT_EQ(read->owner.host, "alpha");
  EXPECT_EQ(read->owner.fp_point, "first");
  ASSERT_EQ(read->spans.size(), 2u);
  EXPECT_EQ(read->spans[1].begin_ns, 2'500);
  EXPECT_EQ(read->task(read->spans[0]).name, "MatMul_3");
  EXPECT_EQ(read->task(read->spans[0]).flops, 48);
  EXPECT_THAT(read->task(read->spans[0]).input_shapes, ElementsAre("2,3", "3,4"));
  EXPECT_EQ(read->group(read->spans[0]).number, 77u);
  EXPECT_THAT(read->group(read->spans[0]).world_ranks, ElementsAre(0, 2));
  ASSERT_EQ(read->clocks.size(), 1u);
  EXPECT_EQ(read->clocks[0].offset_ns, -5);
  EXPECT_EQ(read->lost_full, 3u);
  EXPECT_EQ(read->lost_limit, 4u);
  EXPECT_TRUE(read->ended);
}

// Each task of a pack begins when the one before ends.
TEST_F(ProfileFileTest, PacksAreUnpacked) {
  std::string bytes = ProfileHeader(Owner(2));
  for (uint32_t id = 1; id <= 3; ++id) {
    bytes += TaskBlock({.id = id, .name = fmt::format("Add_{}", id), .bytes = 100 * id});
  }
  SpanPack pack{.begin_ns = 1'000, .lasts_ns = {10, 20, 30}, .subject = 1, .count = 3};
  pack.iteration = 7;
  const Span packed = std::bit_cast<Span>(pack);
  const Result<RankProfile> read = ReadRankProfile(Write(bytes + SpansBlock(&packed, 1)));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->spans.size(), 3u);
  EXPECT_EQ(read->spans[2].begin_ns, 1'030);
  EXPECT_EQ(read->spans[2].end_ns, 1'060);
  EXPECT_EQ(read->spans[2].bytes, 300u);
  EXPECT_EQ(read->spans[2].iteration, 7u);
  EXPECT_EQ(read->spans[2].kind, SpanKind::kTask);
  EXPECT_EQ(read->task(read->spans[1]).name, "Add_2");
  pack.count = 9;
  const Span wrong = std::bit_cast<Span>(pack);
  EXPECT_THAT(Refusal(bytes + SpansBlock(&wrong, 1)), HasSubstr("a pack has 9 tasks"));
}

// As after SIGKILL: what is whole is there, wherever the file ends.
TEST_F(ProfileFileTest, AFileThatEndsAnywhereIsReadUpToThere) {
  const std::string whole = Whole();
  const size_t header = whole.find('\n') + 1;
  size_t most = 0;
  for (size_t end = header; end < whole.size(); ++end) {
    const Result<RankProfile> read = ReadRankProfile(Write(whole.substr(0, end)));
    ASSERT_TRUE(read.ok()) << end << ": " << read.status().ToString();
    EXPECT_FALSE(read->ended);
    ASSERT_GE(read->spans.size(), most);
    most = read->spans.size();
  }
  EXPECT_EQ(most, 2u);
  for (size_t end = 0; end < header; ++end) {
    EXPECT_FALSE(ReadRankProfile(Write(whole.substr(0, end))).ok()) << end;
  }
}

TEST_F(ProfileFileTest, SaysWhatIsWrong) {
  const std::string header = ProfileHeader(Owner(2));
  EXPECT_THAT(Refusal("{\"format\": \"x\"}\n"), HasSubstr("does not begin as a profile"));
  std::string other = header;
  other.replace(other.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_THAT(Refusal(other), HasSubstr("version 9"));
  EXPECT_THAT(Refusal(ProfileHeader(Owner(7))), HasSubstr("rank 7 of 4"));
  const Span nobody = Lasting(1, 2);
  EXPECT_THAT(Refusal(header + SpansBlock(&nobody, 1)), HasSubstr("task 1 of 0"));
  const Span backwards = Lasting(5, 2, 0, 0);
  EXPECT_THAT(Refusal(header + SpansBlock(&backwards, 1)), HasSubstr("from 5 to 2 ns"));
  ProfiledTask second;
  second.id = 2;
  EXPECT_THAT(Refusal(header + TaskBlock(second)), HasSubstr("task 2 stands where 1"));
}

// Damage ends in an error or in a profile, never in a crash, and ids stay in their bounds.
TEST_F(ProfileFileTest, AnyDamageIsSurvived) {
  const std::string whole = Whole();
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const Result<RankProfile> read = ReadRankProfile(Write(damaged));
    if (!read.ok()) continue;
    for (const Span& span : read->spans) {
      ASSERT_LE(span.subject, read->tasks.size());
      ASSERT_LE(span.group, read->groups.size());
      ASSERT_LE(span.begin_ns, span.end_ns);
    }
  }
}

TEST_F(ProfileFileTest, AFolderHasOneRun) {
  Write(ProfileHeader(Owner(2)));
  Write(ProfileHeader(Owner(0)), 0);
  const auto profiles = ReadProfiles(folder_.path());
  ASSERT_TRUE(profiles.ok()) << profiles.status().ToString();
  ASSERT_EQ(profiles->size(), 2u);
  EXPECT_EQ((*profiles)[0].owner.rank, 0);
  ProfileOwner other = Owner(1);
  other.world_size = 2;
  Write(ProfileHeader(other), 1);
  EXPECT_THAT(std::string(ReadProfiles(folder_.path()).status().message()),
              HasSubstr("different runs: rank 1 of 2"));
  EXPECT_EQ(ReadProfiles(folder_.path() + "/none").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace npumesh
