// Records of tuning: round trip, and bytes that are none.
#include "graph/tuning/tuning_records.h"

#include <gmock/gmock.h>

#include "graph/tuning/machine.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/tuning/tuning_fixture.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

TuningRecord SomeRecord() {
  TuningRecord record;
  record.key = std::string(64, 'a');
  record.step = "MatMul float[2,3] float[3,4] -> float[2,4]";
  record.candidates = {{{}, 45.25, 101, ""},
                       {{{"product of floats", "widened"}, {"oneDNN", "gemm:jit"}}, 31, 101, ""},
                       {{{"product of floats", "panels"}}, 0, 0, "it fails"}};
  record.winner = 1;
  record.instructions = "x86-64-v3";
  record.cpu = "Some CPU";
  record.npumesh = "0.1.0";
  record.created = "2026-11-22T19:20:02Z";
  return record;
}

TEST(TuningRecords, ComeBackAsTheyWere) {
  const TemporaryFolder folder;
  TuningRecords records(folder.path());
  const TuningRecord record = SomeRecord();
  EXPECT_FALSE(records.Find(record.key));
  const auto turn = records.Take(record.key, nullptr, std::chrono::milliseconds(0));
  ASSERT_TRUE(turn.ok()) << turn.status().ToString();
  EXPECT_TRUE(turn->lock);
  ASSERT_TRUE(records.Publish(record).ok());
  const std::optional<TuningRecord> found = records.Find(record.key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ToText(), record.ToText());
  EXPECT_EQ(found->best().decisions, record.candidates[1].decisions);
  EXPECT_EQ(found->candidates[2].failure, "it fails");
}

TEST(TuningRecords, APublishedRecordEndsTheWait) {
  const TemporaryFolder folder;
  TuningRecords records(folder.path());
  const TuningRecord record = SomeRecord();
  auto first = records.Take(record.key, nullptr, std::chrono::milliseconds(0));
  ASSERT_TRUE(first.ok() && first->lock);
  ASSERT_TRUE(records.Publish(record).ok());
  const auto second = records.Take(record.key, nullptr, std::chrono::seconds(30));
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->record);
  EXPECT_FALSE(second->lock);
  // It does not count for one that cannot use it.
  first->lock.reset();
  const auto third = records.Take(record.key, &record, std::chrono::milliseconds(0));
  ASSERT_TRUE(third.ok());
  EXPECT_FALSE(third->record);
  EXPECT_TRUE(third->lock);
}

TEST(TuningRecords, CutShortAtEachByte) {
  const TuningRecord record = SomeRecord();
  const std::string text = record.ToText();
  ASSERT_TRUE(TuningRecord::Parse(text, record.key).ok());
  // Without the line feed at its end it is whole.
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    const auto parsed = TuningRecord::Parse(text.substr(0, length), record.key);
    ASSERT_FALSE(parsed.ok()) << length;
    EXPECT_EQ(parsed.status().code(), Code::kCorrupt);
  }
}

TEST(TuningRecords, WhatIsNoRecordSaysWhy) {
  const std::string key(64, 'a');
  const std::string good = R"({"decisions": {}, "microseconds": 1.5, "runs": 3})";
  const auto document = [&](const std::string& rest) {
    return R"({"format": 1, "key": ")" + key + "\", " + rest + "}";
  };
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "it is no JSON object"},
      {"{}", "it is no record of format 1"},
      {R"({"format": 2})", "it is no record of format 1"},
      {R"({"format": 1, "key": "b"})", "it has the key of another step"},
      {document(R"("winner": 0)"), "it has no candidates"},
      {document(R"("candidates": [], "winner": 0)"), "it has no candidates"},
      {document(R"("candidates": [3], "winner": 0)"), "a candidate has no decisions"},
      {document(R"("candidates": [{"decisions": {"a": 1}}], "winner": 0)"),
       "a decision is no text"},
      {document(R"("candidates": [{"decisions": {}}], "winner": 0)"), "a candidate has no time"},
      {document(R"("candidates": [{"decisions": {}, "microseconds": -1, "runs": 3}])"),
       "a candidate has no time"},
      {document(R"("candidates": [{"decisions": {}, "microseconds": 1, "runs": -3}])"),
       "a candidate has no time"},
      {document("\"candidates\": [" + good + "]"), "it names no winner"},
      {document("\"candidates\": [" + good + "], \"winner\": -1"), "it names no winner"},
      {document("\"candidates\": [" + good + "], \"winner\": 1"), "the winner is no candidate"},
      {document(R"("candidates": [{"decisions": {"a": "b"}, "microseconds": 1, "runs": 1}],)"
                R"("winner": 0)"),
       "the first candidate is not the ordinary one"},
  };
  for (const auto& [text, answer] : cases) {
    const auto parsed = TuningRecord::Parse(text, key);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message(), answer) << text;
  }
  EXPECT_TRUE(
      TuningRecord::Parse(document("\"candidates\": [" + good + "], \"winner\": 0"), key).ok());
}

TEST(TuningRecords, AForeignFileIsToldOnce) {
  const TemporaryFolder folder;
  TuningRecords records(folder.path());
  const TuningRecord record = SomeRecord();
  ASSERT_TRUE(MakeFolders(records.folder(), FileKind::kData).ok());
  const std::string other(64, 'b');
  ASSERT_TRUE(WriteFile(records.PathOf(other), record.ToText(), FileKind::kData).ok());
  testing::AdviceLog advice;
  EXPECT_FALSE(records.Find(other));
  EXPECT_FALSE(records.Find(other));
  ASSERT_EQ(advice.said().size(), 1u);
  EXPECT_THAT(advice.said()[0], HasSubstr(records.PathOf(other) +
                                          " is passed over, and measured anew: it has the key of "
                                          "another step"));
}

TEST(TuningMachine, HasTheModelNameOfItsFirstProcessor) {
  EXPECT_EQ(ModelNameIn("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\n"
                        "processor\t: 1\nmodel name\t: Another\n"),
            "Some CPU @ 2.00GHz");
  EXPECT_EQ(ModelNameIn("processor: 0\n"), "");
  EXPECT_EQ(ModelNameIn("model name"), "");
  EXPECT_EQ(ModelNameIn("model name:  "), "");
  EXPECT_EQ(ModelNameIn(""), "");
}

}  // namespace
}  // namespace npumesh
