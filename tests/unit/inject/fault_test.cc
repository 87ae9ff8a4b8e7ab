#include "graph/inject/fault.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "runtime/base/float16.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseFault, Corrupt) {
  const Result<Fault> fault = ParseFault("corrupt:rank=2,op=layer0/MatMul_3,element=7,step=1");
  ASSERT_TRUE(fault.ok()) << fault.status().ToString();
  EXPECT_EQ(fault->kind, Fault::Kind::kCorrupt);
  EXPECT_EQ(fault->rank, 2);
  EXPECT_EQ(fault->op, "layer0/MatMul_3");
  EXPECT_EQ(fault->element, 7);
  EXPECT_EQ(fault->step, 1u);
  EXPECT_EQ(fault->output, 0);
}

TEST(ParseFault, OtherKinds) {
  EXPECT_EQ(ParseFault("delay:rank=1,op=A,ms=500")->delay, std::chrono::milliseconds(500));
  EXPECT_EQ(ParseFault("kill:rank=1")->kind, Fault::Kind::kKill);
  EXPECT_EQ(ParseFault("kill:rank=1")->op, "");
  EXPECT_EQ(ParseFault("exit:rank=0,op=B,code=9")->exit_code, 9);
  EXPECT_EQ(ParseFault("exit:rank=0,op=a=b")->op, "a=b");
}

TEST(ParseFault, Errors) {
  struct Case {
    const char* text;
    const char* words;
  };
  const std::vector<Case> cases = {
      {"", "expected corrupt:, delay:, kill: or exit:"},
      {"kill", "expected corrupt:"},
      {"explode:rank=1", "\"explode:rank=1\""},
      {"kill:", "\"\" is no field"},
      {"kill:op=A", "rank is missing"},
      {"corrupt:rank=1", "op is missing"},
      {"corrupt:rank=1,op=", "op: expected a node name"},
      {"delay:rank=1,op=A", "ms is missing"},
      {"delay:rank=1,op=A,element=3", "\"element=3\" is no field; delay takes"},
      {"kill:rank=1,rank=2", "rank is given twice"},
      {"kill:rank=-1", "rank"},
      {"kill:rank=1,", "\"\" is no field"},
      {"kill:rank", "\"rank\" is no field"},
      {"exit:rank=1,code=256", "code"},
      {"corrupt:rank=1,op=A,element=x", "element"},
  };
  for (const Case& c : cases) {
    const Status status = ParseFault(c.text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(c.words)) << c.text;
  }
}

TEST(ElementToHit, IsDecidedBySeedRankAndOperator) {
  Fault fault = *ParseFault("corrupt:rank=2,op=A");
  const int64_t first = *ElementToHit(fault, 1'000'000, 7);
  EXPECT_EQ(*ElementToHit(fault, 1'000'000, 7), first);
  EXPECT_NE(*ElementToHit(fault, 1'000'000, 8), first);
  fault.op = "B";
  EXPECT_NE(*ElementToHit(fault, 1'000'000, 7), first);
  std::set<int64_t> hit;
  for (uint64_t seed = 0; seed < 64; ++seed) hit.insert(*ElementToHit(fault, 4, seed));
  EXPECT_THAT(hit, ElementsAre(0, 1, 2, 3));
}

TEST(ElementToHit, AsAskedFor) {
  const Fault fault = *ParseFault("corrupt:rank=2,op=A,element=3");
  EXPECT_EQ(*ElementToHit(fault, 4, 7), 3);
  EXPECT_THAT(ElementToHit(fault, 3, 7).status().message(), HasSubstr("has 3 elements"));
}

template <typename T>
std::vector<T> Corrupted(DataType dtype, std::vector<T> values, int64_t element) {
  const TensorType type{dtype, {static_cast<int64_t>(values.size())}};
  EXPECT_TRUE(CorruptElement(type, values.data(), element).ok());
  return values;
}

TEST(CorruptElement, FloatsGetTheLargestMagnitudeWithTheOtherSign) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Corrupted<float>(DataType::kFloat, {1, -8, 2}, 2), ElementsAre(1, -8, -8));
  EXPECT_THAT(Corrupted<float>(DataType::kFloat, {1, -8, 2}, 1), ElementsAre(1, 8, 2));
  EXPECT_THAT(Corrupted<float>(DataType::kFloat, {0, 0}, 0), ElementsAre(1, 0));
  EXPECT_THAT(Corrupted<float>(DataType::kFloat, {kNan, 3}, 0), ElementsAre(3, 3));
  EXPECT_THAT(Corrupted<double>(DataType::kDouble, {0.5, 4}, 0), ElementsAre(-4, 4));
  EXPECT_EQ(Corrupted<Float16>(DataType::kFloat16, {Float16(65504), Float16(1)}, 1)[1],
            Float16(-65504));
  EXPECT_EQ(Corrupted<Bfloat16>(DataType::kBfloat16, {Bfloat16(3)}, 0)[0], Bfloat16(-3));
}

TEST(CorruptElement, IntegersAndBooleansChangeOneBit) {
  EXPECT_THAT(Corrupted<int64_t>(DataType::kInt64, {4, 6}, 1), ElementsAre(4, 7));
  EXPECT_THAT(Corrupted<uint8_t>(DataType::kBool, {1, 0}, 0), ElementsAre(0, 0));
}

TEST(CorruptElement, PackedTypesAreRefused) {
  uint8_t byte = 0;
  EXPECT_EQ(CorruptElement({DataType::kInt4, {2}}, &byte, 0).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace npumesh
