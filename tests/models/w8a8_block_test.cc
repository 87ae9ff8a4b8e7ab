// A block of int8 products: integers with ==, floats to the bit or the last place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/model_run.h"
#include "tests/models/w8a8_block.h"
#include "tests/unit/op_values.h"

namespace npumesh::models {
namespace {

using testing::ElementsAreArray;

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  const auto span = tensor.as<T>();
  return {span.begin(), span.end()};
}

class W8a8Block : public testing::TestWithParam<bool> {};

TEST_P(W8a8Block, IntegersAreThoseOfTheReference) {
  const QuantWeights weights = MakeQuantWeights();
  OnOneRank(BuildW8a8Block(weights), GetParam() ? kOptimised : kAsWritten,
            [&](NamedSession& session) -> Status {
              for (const int64_t tokens : {4, 1, 9}) {
                SCOPED_TRACE(fmt::format("{} tokens", tokens));
                const std::vector<Float16> x = BlockInput(tokens);
                const BlockResult expected = BlockReference(weights, x);
                // Nothing is near enough to a tie for float32 to round it the other way.
                EXPECT_GT(expected.nearest_tie, 1e-4);
                NPUMESH_ASSIGN_OR_RETURN(
                    const std::vector<Tensor> seen,
                    session.Run({{"x", Tensor::FromVector<Float16>(
                                           {DataType::kFloat16, {tokens, kBlockWidth}}, x)}}));
                EXPECT_THAT(Elements<int8_t>(seen[1]), ElementsAreArray(expected.q0));
                EXPECT_THAT(Elements<int8_t>(seen[2]), ElementsAreArray(expected.q1));
                EXPECT_THAT(Elements<float>(seen[3]), ElementsAreArray(expected.s1));
                EXPECT_THAT(Elements<int32_t>(seen[4]), ElementsAreArray(expected.a));
                EXPECT_THAT(Elements<int8_t>(seen[5]), ElementsAreArray(expected.q2));
                // Behind the exponential the last place of a float32 is free; that can move one
                // float16.
                for (size_t i = 0; i < expected.s2.size(); ++i) {
                  EXPECT_NEAR(seen[6].as<float>()[i], expected.s2[i], 1e-6 * expected.s2[i]);
                }
                const std::vector<double> y = ToDoubles(seen[0]);
                for (size_t i = 0; i < y.size(); ++i) {
                  const auto wanted = static_cast<double>(static_cast<float>(expected.y[i]));
                  EXPECT_NEAR(y[i], wanted, Ulp(DataType::kFloat16, wanted)) << i;
                }
              }
              return Status();
            });
}

INSTANTIATE_TEST_SUITE_P(, W8a8Block, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
