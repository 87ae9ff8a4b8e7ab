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
