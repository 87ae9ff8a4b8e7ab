// Hostile records: any bytes give an error or a report, never a crash.
#include <gtest/gtest.h>

#include "launch/record/timeline.h"
#include "runtime/base/text/json.h"
#include "tests/fuzz/mutator.h"
#include "tests/unit/record/records.h"

namespace npumesh::testing {
namespace {

// Two ranks, one of them from these bytes: everything that can be asked about them.
bool Digest(const std::string& bytes) {
  const Result<RankRecord> record = ParseRecord(bytes, "fuzz.npr");
  if (!record.ok()) {
    EXPECT_NE(record.status().message(), "");
    return false;
  }
  std::vector<RankRecord> records = {*record};
  if (record->rank != 0) {
    records.insert(records.begin(), RecordOf(0, record->world_size));
    AddGroup(records[0], kTp, "tp", "0-1");
    AddCall(records[0], kTp, 1, 5000);
  }
  const Result<Joined> joined = Join(records);
  if (!joined.ok()) return false;
  EXPECT_NE(JoinedText(records, *joined), "");
  EXPECT_TRUE(nlohmann::json::accept(TimelineJson(records, *joined)));
  return true;
}

std::string Seed() {
  RankRecord record = RecordOf(1, 2);
  AddGroup(record, kTp, "tp", "0-1");
  AddGroup(record, kDp, "dp", "0-1");
  for (uint64_t call = 1; call < 8; ++call) AddCall(record, kTp, call, 5000);
  AddCall(record, kDp, 1, 9000);
  CutAt(record, flight::Stage::kRunning);
  return ToBytes(record);
}

TEST(RecordFuzz, TruncatedAnywhere) {
  const std::string seed = Seed();
  ASSERT_TRUE(Digest(seed));
  for (size_t length = 0; length < seed.size(); length += 7) {
    EXPECT_FALSE(Digest(seed.substr(0, length))) << length;
  }
}

TEST(RecordFuzz, EveryByteOfTheHeaderAndOfEachKindOfPart) {
  const std::string seed = Seed();
  const size_t first_call = sizeof(flight::RecordHeader) + 16 * sizeof(flight::GroupRow);
  for (const auto& [from, to] : {std::pair<size_t, size_t>{0, 600},
                                 {first_call, first_call + 2 * sizeof(flight::CallEntry)}}) {
    for (size_t at = from; at < to; ++at) {
      for (const int value : {0, 1, 0xff}) {
        std::string bytes = seed;
        bytes[at] = static_cast<char>(value);
        Digest(bytes);
      }
    }
  }
}

TEST(RecordFuzz, Mutated) {
  const std::string seed = Seed();
  fuzz::Mutator mutator(5);
  for (int i = 0; i < 1000; ++i) Digest(mutator.Mutate(seed, {seed}));
  for (int i = 0; i < 1000; ++i) Digest(mutator.RandomBytes(1024));
}

}  // namespace
}  // namespace npumesh::testing
