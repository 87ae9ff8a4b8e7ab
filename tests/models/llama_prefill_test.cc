// Prefill of several lengths in one session, on 1, 2 and 4 ranks, in three dtypes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/models/llama_prefill.h"
#include "tests/models/model_run.h"

namespace npumesh::models {
namespace {

// Relative to the largest hidden state, of the order of 4. In 16 bits each of some 20 operators
// between input and output rounds to half a unit, 2^-12 or 2^-9 of its result; roundings are as
// often up as down.
double ToleranceOf(DataType dtype) {
  if (dtype == DataType::kFloat16) return 4e-3;
  return dtype == DataType::kBfloat16 ? 3e-2 : 2e-6;
}

struct PrefillCase {
  int ranks;
  DataType dtype;
  bool optimised;
  bool symbol_input = false;
};

class LlamaPrefill : public testing::TestWithParam<PrefillCase> {};

TEST_P(LlamaPrefill, AnyLengthInOneSession) {
  PrefillConfig config;
  config.dtype = GetParam().dtype;
  config.symbol_input = GetParam().symbol_input;
  const Parameters weights = PrefillWeights(config, 31);
  const int ranks = GetParam().ranks;
  const auto build = [&](int rank) { return BuildPrefill(config, weights, rank, ranks); };
  OnEachRank(
      ranks, build, GetParam().optimised ? kOptimised : kAsWritten,
      [&](NamedSession& session) -> Status {
        for (const int64_t length : {5, 1, 12, 2, 5}) {
          const int64_t first = length == 2 ? 7 : 0;  // positions need not begin at 0
          std::vector<int64_t> positions(static_cast<size_t>(length));
          std::iota(positions.begin(), positions.end(), first);
          const std::vector<double> x = PrefillInput(config, length);
          const TensorType integers{DataType::kInt64, {1, length}};
          Feeds feeds = {{"hidden_states", TensorOf({1, length, config.hidden}, x, config.dtype)},
                         {"position_ids", Tensor::FromVector<int64_t>(integers, positions)}};
          if (config.symbol_input) {
            feeds["s0"] = Tensor::FromVector<int64_t>({DataType::kInt64, Shape()}, {length});
          }
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
          EXPECT_EQ(outputs[0].type(), (TensorType{config.dtype, {1, length, config.hidden}}));
          NPUMESH_RETURN_IF_ERROR(
              CheckClose(outputs[0], PrefillReference(config, weights, x, first),
                         ToleranceOf(config.dtype), fmt::format("length {}", length)));
        }
        EXPECT_EQ(session.session().stats().plans, 4u);
        return Status();
      });
}

std::vector<PrefillCase> Cases() {
  std::vector<PrefillCase> cases;
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    cases.push_back({1, dtype, false});
    for (const int ranks : {1, 2, 4}) cases.push_back({ranks, dtype, true});
  }
  cases.push_back({2, DataType::kFloat, true, true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, LlamaPrefill, testing::ValuesIn(Cases()), [](const auto& info) {
  return fmt::format("{}Ranks{}{}{}", info.param.ranks, Name(info.param.dtype),
                     info.param.optimised ? "Optimised" : "AsWritten",
                     info.param.symbol_input ? "BySymbol" : "");
});

}  // namespace
}  // namespace npumesh::models
