// Tables of candidates: the first without an objection, and what the others objected.
#include "graph/ops/core/choice.h"

#include <gtest/gtest.h>

#include "graph/ops/core/operator.h"

namespace npumesh {
namespace {

struct Weights {
  int rows = 0;
  bool constant = true;
};

std::string UnlessConstant(const Weights& facts) {
  return facts.constant ? "" : "x is no constant";
}
std::string UnlessFew(const Weights& facts) {
  return facts.rows <= 4 ? "" : std::to_string(facts.rows) + " rows";
}

constexpr Candidate<const Weights> kTable[] = {
    {"packed", UnlessConstant}, {"few rows", UnlessFew}, {"loops"}};

std::string Chosen(const Weights& facts) {
  return Choose(kTable, facts).ToString();
}

TEST(KernelChoice, IsTheFirstWithoutObjection) {
  EXPECT_EQ(Chosen({9, true}), "packed");
  EXPECT_EQ(Chosen({4, false}), "few rows; not packed: x is no constant");
  EXPECT_EQ(Chosen({9, false}), "loops; not packed: x is no constant; not few rows: 9 rows");
}

TEST(KernelChoice, TheLastIsNotAsked) {
  constexpr Candidate<const Weights> kGrumpy[] = {{"first", UnlessConstant},
                                                  {"last", UnlessConstant}};
  const Weights facts{1, false};
  EXPECT_EQ(Choose(kGrumpy, facts).ToString(), "last; not first: x is no constant");
}

TEST(KernelChoice, AsksNobodyBehindTheOneItTakes) {
  struct Count {
    int asked = 0;
  };
  const auto ask = [](Count& count) { return ++count.asked == 1 ? "no" : std::string(); };
  const Candidate<Count> table[] = {{"a", ask}, {"b", ask}, {"c", ask}, {"d"}};
  Count count;
  EXPECT_EQ(Choose(table, count).name, "b");
  EXPECT_EQ(count.asked, 2);
}

// Prefers one option and notes what was decided.
class OnePreference final : public KernelTuning {
 public:
  explicit OnePreference(std::string option) : option_(std::move(option)) {}
  std::string Preferred(std::string_view) override { return option_; }
  void Decided(std::string_view decision, std::vector<std::string> options,
               std::string_view taken) override {
    noted = std::string(decision) + ":";
    for (const std::string& option : options) noted += " " + option + ",";
    noted += " taken " + std::string(taken);
  }
  std::string noted;

 private:
  std::string option_;
};

constexpr Candidate<const Weights> kTuned[] = {
    {"packed", UnlessConstant}, {"few rows", nullptr, UnlessFew}, {"loops", UnlessConstant}};

std::string TunedTo(const std::string& option, const Weights& facts, std::string* noted = nullptr) {
  OnePreference tuning(option);
  const std::string text = Choose(kTuned, facts, &tuning, "weights").ToString();
  if (noted != nullptr) *noted = tuning.noted;
  return text;
}

TEST(KernelChoice, IsWhatMeasuringPrefers) {
  std::string noted;
  EXPECT_EQ(TunedTo("loops", {9, true}, &noted), "loops");
  EXPECT_EQ(noted, "weights: packed, few rows, loops, taken loops");
  // What the rule expects to be slower may be taken.
  EXPECT_EQ(TunedTo("few rows", {9, false}), "few rows");
  const Weights facts{9, false};
  EXPECT_EQ(Choose(kTuned, facts, nullptr, "weights").ToString(),
            "loops; not packed: x is no constant; not few rows: 9 rows");
}

TEST(KernelChoice, APreferenceThatCannotBeLeavesTheOrdinaryChoice) {
  std::string noted;
  EXPECT_EQ(TunedTo("packed", {4, false}, &noted), "few rows; not packed: x is no constant");
  EXPECT_EQ(noted, "weights: packed, few rows, loops, taken few rows");
  // The last one is asked, too, before it is preferred.
  EXPECT_EQ(TunedTo("loops", {4, false}), "few rows; not packed: x is no constant");
  EXPECT_EQ(TunedTo("gone", {4, true}), "packed");
}

TEST(KernelChoice, SaysWhatWasMeasured) {
  KernelChoice choice{.name = "packed", .refused = {}, .tuned = "31.0 us, against 45.2 us"};
  EXPECT_EQ(choice.ToString(), "packed; tuned: 31.0 us, against 45.2 us");
  choice.name.clear();
  EXPECT_EQ(choice.ToString(), "tuned: 31.0 us, against 45.2 us");
}

TEST(KernelTuning, SizesAreOptionsToo) {
  constexpr int64_t kSizes[] = {16, 64};
  OnePreference large("64"), unknown("32");
  EXPECT_EQ(TunedSize(&large, "width", kSizes, 16), 64);
  EXPECT_EQ(large.noted, "width: 16, 64, taken 64");
  EXPECT_EQ(TunedSize(&unknown, "width", kSizes, 16), 16);
  EXPECT_EQ(TunedSize(nullptr, "width", kSizes, 16), 16);
}

TEST(KernelChoice, TakesFurtherDecisions) {
  const Weights facts{9, true};
  KernelChoice choice = Choose(kTable, facts);
  choice.Decide("packed twice", "once is enough");
  choice.Decide("threads", "");
  EXPECT_EQ(choice.ToString(), "packed, threads; not packed twice: once is enough");
  KernelChoice whole{"two products", {}};
  whole.Join(choice);
  whole.Join({});
  EXPECT_EQ(whole.ToString(), "two products, packed, threads; not packed twice: once is enough");
  EXPECT_EQ(KernelChoice().ToString(), "");
}

TEST(KernelChoice, StaysWithTheKernel) {
  const std::unique_ptr<Kernel> kernel = MakeKernel([](const KernelArgs&) { return Status(); });
  EXPECT_EQ(kernel->choice().name, "");
  const Weights facts{4, false};
  kernel->set_choice(Choose(kTable, facts));
  EXPECT_EQ(kernel->choice().name, "few rows");
  ASSERT_EQ(kernel->choice().refused.size(), 1u);
  EXPECT_EQ(kernel->choice().refused[0].candidate, "packed");
  EXPECT_EQ(kernel->choice().refused[0].why, "x is no constant");
}

}  // namespace
}  // namespace npumesh
