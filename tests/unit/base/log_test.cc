#include "runtime/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/logger.h"

namespace npumesh {
namespace {

std::vector<std::string> LinesOf(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    SetLogLevel(LogLevel::kError);
    SetLogRank(-1);
  }
};

TEST_F(LogTest, LineHasTheDocumentedFormat) {
  SetLogLevel(LogLevel::kInfo);
  SetLogRank(3);
  const auto lines = LinesOf([] { NPUMESH_INFO("run graph {}", 7); });
  ASSERT_EQ(lines.size(), 1u);
  const std::regex format(R"(\[INFO\] NPUMESH\((\d+),unit_base\) rank 3:)"
                          R"(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} )"
                          R"(\[log_test\.cc:(\d+)\](\d+) run graph 7)");
  std::smatch match;
  ASSERT_TRUE(std::regex_match(lines[0], match, format)) << lines[0];
  EXPECT_EQ(match[1], std::to_string(getpid()));
  EXPECT_EQ(match[3], std::to_string(gettid()));
}

TEST_F(LogTest, ThreadWithoutRankPrintsNone) {
  SetLogRank(5);
  std::vector<std::string> lines = LinesOf([] {
    std::thread([] { NPUMESH_ERROR("from a thread"); }).join();
    NPUMESH_ERROR("from the rank");
  });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], testing::HasSubstr(",unit_base):"));
  EXPECT_THAT(lines[1], testing::HasSubstr(",unit_base) rank 5:"));
  EXPECT_EQ(LogRank(), 5);
}

TEST_F(LogTest, EachLineOfAMessageCarriesThePrefix) {
  const auto lines = LinesOf([] { NPUMESH_ERROR("first\nsecond\n\nfourth\n"); });
  ASSERT_EQ(lines.size(), 4u);
  const std::string prefix = lines[0].substr(0, lines[0].size() - std::string("first").size());
  EXPECT_EQ(lines[1], prefix + "second");
  EXPECT_EQ(lines[2], prefix);
  EXPECT_EQ(lines[3], prefix + "fourth");
}

TEST_F(LogTest, LevelsFilterAsTheReferenceSays) {
  // Rows: level set; columns: DEBUG, INFO, WARNING, ERROR, EVENT.
  const bool enabled[5][5] = {{true, true, true, true, false},
                              {false, true, true, true, false},
                              {false, false, true, true, false},
                              {false, false, false, true, false},
                              {false, false, false, true, true}};
  for (int set = 0; set < 5; ++set) {
    SetLogLevel(static_cast<LogLevel>(set));
    for (int asked = 0; asked < 5; ++asked) {
      EXPECT_EQ(LogEnabled(static_cast<LogLevel>(asked)), enabled[set][asked]) << set << asked;
    }
  }
}

TEST_F(LogTest, LevelWordsAreTheVendors) {
  SetLogLevel(LogLevel::kDebug);
  auto lines = LinesOf([] {
    NPUMESH_DEBUG("x");
    NPUMESH_INFO("x");
    NPUMESH_WARNING("x");
    NPUMESH_ERROR("x");
    NPUMESH_EVENT("x");
    SetLogLevel(LogLevel::kEvent);
    NPUMESH_EVENT("x");
  });
  ASSERT_EQ(lines.size(), 5u);
  const char* words[] = {"[DEBUG] ", "[INFO] ", "[WARNING] ", "[ERROR] ", "[EVENT] "};
  for (size_t i = 0; i < 5; ++i) EXPECT_THAT(lines[i], testing::StartsWith(words[i]));
}

TEST_F(LogTest, DisabledArgumentsAreNotEvaluated) {
  int calls = 0;
  NPUMESH_DEBUG("{}", ++calls);
  EXPECT_EQ(calls, 0);
}

TEST_F(LogTest, PercentAndBracesAreJustText) {
  const auto lines = LinesOf([] { NPUMESH_ERROR("{}", "100% of {x} %v"); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith(" 100% of {x} %v"));
}

TEST_F(LogTest, OnceMeansOnceForEachText) {
  SetLogLevel(LogLevel::kWarning);
  const auto lines = LinesOf([] {
    for (int i = 0; i < 4; ++i) NPUMESH_WARNING_ONCE("odd option {}", i % 2);
  });
  EXPECT_EQ(lines.size(), 2u);
}

// A longer write into a pipe that ranks share may be torn apart by another rank's.
TEST_F(LogTest, ALongLineGoesOnBehindAnotherPrefix) {
  const std::string umlauts = [] {
    std::string text = "x";
    while (text.size() < 9000) text += "\u00e4";
    return text;
  }();
  const auto lines = LinesOf([&] { NPUMESH_ERROR("{}\nlast", umlauts); });
  ASSERT_EQ(lines.size(), 4u);
  const size_t prefix = lines[3].size() - std::string("last").size();
  std::string joined;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(lines[i].size() + 1, 4096u);
    EXPECT_EQ(lines[i].substr(0, prefix), lines[3].substr(0, prefix));
    joined += lines[i].substr(prefix);
    EXPECT_NE(static_cast<unsigned char>(lines[i][prefix]) & 0xC0, 0x80) << "inside a character";
  }
  EXPECT_EQ(joined, umlauts);
}

TEST_F(LogTest, TheLoggerObjectWritesTheSameLog) {
  const Logger logger;
  const auto lines = LinesOf([&] {
    logger.Info("hidden");
    logger.SetLevel(LogLevel::kInfo);
    logger.Debug("hidden");
    logger.Info("shown");
    logger.Warning("shown");
    logger.Error("shown");
    for (int i = 0; i < 3; ++i) logger.WarningOnce("said once");
    NPUMESH_INFO("shown");
    logger.SetLevel(LogLevel::kEvent);
    logger.Event("shown");
    logger.Warning("hidden");
  });
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[0], testing::StartsWith("[INFO] "));
  EXPECT_THAT(lines[0], testing::HasSubstr("[log_test.cc:"));
  EXPECT_THAT(lines[3], testing::EndsWith(" said once"));
  EXPECT_THAT(lines[5], testing::StartsWith("[EVENT] "));
  for (const std::string& line : lines)
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("hidden")));
}

TEST_F(LogTest, AWarningThatWasHiddenIsStillToBeSaid) {
  const Logger logger;
  const auto lines = LinesOf([&] {
    logger.WarningOnce("at first hidden");
    logger.SetLevel(LogLevel::kWarning);
    logger.WarningOnce("at first hidden");
  });
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(LogTest, ThreadsNeverMixTheirLines) {
  const auto lines = LinesOf([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        SetLogRank(t);
        for (int i = 0; i < 50; ++i)
          NPUMESH_ERROR("{}", std::string(300, static_cast<char>('a' + t)));
      });
    }
    for (auto& thread : threads) thread.join();
  });
  ASSERT_EQ(lines.size(), 200u);
  for (const auto& line : lines) {
    EXPECT_TRUE(std::regex_match(line, std::regex(R"(\[ERROR\] \S+ rank \d:.* (.)\1{299})")))
        << line;
  }
}

}  // namespace
}  // namespace npumesh
