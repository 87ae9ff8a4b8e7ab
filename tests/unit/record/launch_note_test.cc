// What the command that started the ranks leaves beside their records.
#include "launch/record/launch_note.h"

#include <gmock/gmock.h>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LaunchNote, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  LaunchNote note;
  note.exit_code = 4;
  note.timeout_s = 40;
  note.signal = 2;
  note.deaths = {{1, 9}, {-1, 11}};
  note.end_realtime_ns = 1'700'000'000'000'000'000;
  ASSERT_TRUE(WriteLaunchNote(folder.path(), note).ok());
  const auto read = ReadLaunchNote(folder.path());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->exit_code, 4);
  EXPECT_EQ((*read)->timeout_s, 40);
  EXPECT_EQ((*read)->signal, 2);
  EXPECT_THAT((*read)->deaths, ElementsAre(RankDeath{1, 9}, RankDeath{-1, 11}));
  EXPECT_EQ((*read)->end_realtime_ns, note.end_realtime_ns);
  EXPECT_TRUE((*read)->ended_from_outside());
  ASSERT_TRUE(RemoveLaunchNote(folder.path()).ok());
  EXPECT_FALSE(ReadLaunchNote(folder.path())->has_value());
  EXPECT_TRUE(RemoveLaunchNote(folder.path()).ok());
}

TEST(LaunchNote, NeedsNoFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(WriteLaunchNote(folder.Path("none"), {}).ok());
  EXPECT_TRUE(RemoveLaunchNote(folder.Path("none")).ok());
  EXPECT_FALSE(ReadLaunchNote(folder.Path("none"))->has_value());
  EXPECT_TRUE(folder.List().empty());
}

TEST(LaunchNote, ForeignFilesAreRefusedOrHaveNothingToSay) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFile(folder.Path("launch.json"), text, FileKind::kData).ok());
    return ReadLaunchNote(folder.path());
  };
  for (const char* text : {"", "[]", "{}", "{\"version\": 2}", "{\"version\": \"1\"}"}) {
    EXPECT_EQ(read(text).status().code(), Code::kCorrupt) << text;
    EXPECT_THAT(std::string(read(text).status().message()), HasSubstr("launch.json")) << text;
  }
  for (const char* text :
       {R"({"version": 1})", R"({"version": 1, "deaths": 3, "signal": 1e99, "timeout_s": -1})",
        R"({"version": 1, "deaths": [7, {"rank": 1}, {"rank": 1, "signal": 65}]})"}) {
    const auto note = read(text);
    ASSERT_TRUE(note.ok()) << note.status().ToString();
    EXPECT_FALSE((*note)->ended_from_outside()) << text;
    EXPECT_TRUE((*note)->deaths.empty()) << text;
  }
}

TEST(SignalText, HasTheNamePeopleKnow) {
  EXPECT_EQ(SignalText(9), "SIGKILL");
  EXPECT_EQ(SignalText(63), "signal 63");
}

}  // namespace
}  // namespace npumesh
