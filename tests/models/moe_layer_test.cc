// A mixture of experts over four ranks, with loads that differ and experts that get nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/model_run.h"
#include "tests/models/moe_layer.h"

namespace npumesh::models {
namespace {

constexpr int kRanks = 4;

struct MoeCase {
  const char* name;
  MoeForm form;
  DataType dtype;
  std::vector<int64_t> starved;  // experts
};

// Three roundings of 16 bits between x and an expert's result, one of the sum; the largest |y| is
// some 2 or 3.
double ToleranceOf(DataType dtype) {
  return dtype == DataType::kFloat16 ? 2e-3 : 1.5e-2;
}

uint64_t SeedOf(int rank, int step) {
  return static_cast<uint64_t>(50 + rank + 10 * step);
}

class MoeLayer : public testing::TestWithParam<std::tuple<MoeCase, bool>> {
 protected:
  MoeCase scene() const { return std::get<0>(GetParam()); }
  RunChoice choice() const { return std::get<1>(GetParam()) ? kOptimised : kAsWritten; }
};

// Loads of all experts by the tokens of all ranks.
std::vector<int64_t> AllLoads(const MoeCase& scene, const Parameters& weights,
                              const std::vector<int64_t>& tokens, int step) {
  std::vector<int64_t> loads(kExperts);
  for (int rank = 0; rank < kRanks; ++rank) {
    const MoeResult one = MoeReference(
        weights, MoeTokens(scene.dtype, tokens[static_cast<size_t>(rank)], SeedOf(rank, step)));
    // Else rounding could choose another expert.
    EXPECT_GT(one.narrowest, 1e-4);
    for (size_t e = 0; e < loads.size(); ++e) loads[e] += one.loads[e];
  }
  return loads;
}

TEST_P(MoeLayer, GivesWhatEachTokensExpertsMake) {
  const MoeCase scene = this->scene();
  const Parameters weights = MoeWeights(scene.dtype, scene.starved, 41);
  // Tokens by rank; only all_to_all takes another number at each step.
  std::vector<std::vector<int64_t>> steps = {{5, 5, 5, 5}, {5, 5, 5, 5}};
  if (scene.form == MoeForm::kAllToAll) steps.push_back({7, 1, 0, 3});
  std::vector<std::vector<int64_t>> loads;
  for (size_t step = 0; step < steps.size(); ++step) {
    loads.push_back(AllLoads(scene, weights, steps[step], static_cast<int>(step)));
    for (const int64_t expert : scene.starved) {
      EXPECT_EQ(loads[step][static_cast<size_t>(expert)], 0);
    }
  }
  const auto build = [&](int rank) {
    return BuildMoeLayer(scene.form, scene.dtype, weights, 5, rank, kRanks);
  };
  OnEachRank(kRanks, build, choice(), [&](NamedSession& session) -> Status {
    for (size_t step = 0; step < steps.size(); ++step) {
      const int64_t count = steps[step][static_cast<size_t>(session.rank())];
      const std::vector<double> tokens =
          MoeTokens(scene.dtype, count, SeedOf(session.rank(), static_cast<int>(step)));
      NPUMESH_ASSIGN_OR_RETURN(
          const std::vector<Tensor> outputs,
          session.Run({{"x", TensorOf({count, kMoeWidth}, tokens, scene.dtype)}}));
      EXPECT_EQ(outputs[0].type(), (TensorType{scene.dtype, {count, kMoeWidth}}));
      const auto seen = outputs[1].as<int64_t>();
      const auto own = loads[step].begin() + session.rank() * kExperts / kRanks;
      EXPECT_THAT(std::vector<int64_t>(seen.begin(), seen.end()),
                  testing::ElementsAreArray(own, own + kExperts / kRanks));
      NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], MoeReference(weights, tokens).y,
                                         ToleranceOf(scene.dtype), fmt::format("step {}", step)));
    }
    return Status();
  });
}

std::vector<MoeCase> Cases() {
  std::vector<MoeCase> cases;
  for (const MoeForm form : {MoeForm::kDispatch, MoeForm::kAllToAll}) {
    const bool dispatch = form == MoeForm::kDispatch;
    for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
      const bool half = dtype == DataType::kFloat16;
      cases.push_back({half ? (dispatch ? "DispatchFloat16" : "AllToAllFloat16")
                            : (dispatch ? "DispatchBfloat16" : "AllToAllBfloat16"),
                       form,
                       dtype,
                       {3}});
    }
    // Rank 2 has nothing to do.
    cases.push_back(
        {dispatch ? "DispatchIdleRank" : "AllToAllIdleRank", form, DataType::kFloat16, {4, 5}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, MoeLayer, testing::Combine(testing::ValuesIn(Cases()), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "Optimised" : "AsWritten");
                         });

}  // namespace
}  // namespace npumesh::models
