// The tolerance "close" of `npumesh run --check`, from both sides: whatever is correct matches,
// computed in other orders, by other ranks, fused or not, accumulated in float64, or by a reference
// in double; and what is wrong differs: an element, a row, a shard, a weight, a bias.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "graph/compare/golden/reference_ops.h"
#include "graph/ops/builtin_ops.h"
#include "launch/run/tensor_check.h"
#include "launch/run/tolerance.h"
#include "tests/models/llama_prefill.h"
#include "tests/models/model_run.h"
#include "tests/models/moe_layer.h"
#include "tests/models/recommender.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh::models {
namespace {

// One way to compute a model.
struct Way {
  const char* name;
  int ranks = 1;
  bool fuses = false;
  NodeOrder order = NodeOrder::kStable;
  bool reference_ops = false;
};

// The first output of one rank, and what lies before it.
struct Computed {
  Tensor output;
  RoundingPath rounding;
};

Result<Computed> ComputeOnRank(World& world, Model model, const Way& way, const Feeds& feeds) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory, DeviceMemory::Create(world));
  const OpRegistry& registry = way.reference_ops ? ReferenceOps() : BuiltinOps();
  RoundingEstimate estimate;
  SessionOptions options;
  options.registry = &registry;
  options.compile.order = way.order;
  if (way.fuses) options.compile.fuses = [](std::string_view) { return true; };
  options.compile.observer = [&estimate](std::string_view stage, const Model& typed) {
    if (stage == "AfterInfershape") estimate.Note(typed);
  };
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, *memory, std::move(model), std::move(options)));
  NamedSession named(*session, world.rank());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, named.Run(feeds));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<RoundingPath> roundings,
                           estimate.OutputsOf(session->model(), registry, world.size()));
  return Computed{outputs[0], roundings[0]};
}

// By rank.
std::vector<Computed> Compute(const Way& way, const BuildRank& build, const Feeds& feeds) {
  std::vector<Computed> all(static_cast<size_t>(way.ranks));
  ExpectAllOk(RunRanks(way.ranks, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(Model model, build(world.rank()));
    NPUMESH_ASSIGN_OR_RETURN(all[static_cast<size_t>(world.rank())],
                             ComputeOnRank(world, std::move(model), way, feeds));
    return Status();
  }));
  return all;
}

// How much of what is allowed the worst element needs; above 1 the check differs.
double Used(const Tensor& output, const Tensor& golden, const RoundingPath& rounding) {
  const AppliedTolerance tolerance = CloseTolerance(rounding, golden);
  const Difference found = CompareTensors(output, golden, tolerance.value);
  EXPECT_EQ(found.reason, "");
  const double used = found.needs_atol / tolerance.value.atol;
  EXPECT_EQ(found.matches, used <= 1) << used;
  return used;
}

Tensor WithValues(const Tensor& like, const std::vector<double>& values) {
  return TensorOf(like.shape(), values, like.dtype());
}

struct PrefillSize {
  const char* name;
  PrefillConfig config;
  int64_t length;
};

std::vector<PrefillSize> Sizes() {
  PrefillConfig small;
  PrefillConfig wide{.layers = 1, .hidden = 256, .heads = 8, .key_heads = 4, .ffn = 384};
  PrefillConfig deep{.layers = 6, .hidden = 32, .heads = 8, .key_heads = 4, .ffn = 24};
  return {{"small", small, 12}, {"wide", wide, 20}, {"deep", deep, 7}};
}

struct PrefillModel {
  PrefillConfig config;
  Parameters weights;
  std::vector<double> x;
  Feeds feeds;

  PrefillModel(const PrefillSize& size, DataType dtype)
      : config(size.config), weights(WeightsOf(size, dtype)), x(InputOf(size, dtype)) {
    config.dtype = dtype;
    std::vector<int64_t> positions(static_cast<size_t>(size.length));
    std::iota(positions.begin(), positions.end(), 0);
    const TensorType integers{DataType::kInt64, {1, size.length}};
    feeds = {{"hidden_states", TensorOf({1, size.length, config.hidden}, x, dtype)},
             {"position_ids", Tensor::FromVector<int64_t>(integers, positions)}};
  }

  BuildRank Build(int ranks) const {
    return [this, ranks](int rank) { return BuildPrefill(config, weights, rank, ranks); };
  }
  Tensor Golden() const {
    return TensorOf({1, static_cast<int64_t>(x.size()) / config.hidden, config.hidden},
                    PrefillReference(config, weights, x, 0), config.dtype);
  }

 private:
  static Parameters WeightsOf(const PrefillSize& size, DataType dtype) {
    PrefillConfig config = size.config;
    config.dtype = dtype;
    Parameters weights = PrefillWeights(config, 31);
    // Values of the order of 1 whatever the width.
    const double shrink = std::sqrt(32.0 / static_cast<double>(config.hidden));
    for (const Parameter& p : weights.all()) {
      if (p.shape.rank() < 2) continue;
      for (double& value : weights.at(p.name).values) value *= shrink;
      weights.at(p.name).values = ValuesIn(TensorOf(weights.at(p.name), dtype));
    }
    return weights;
  }
  static std::vector<double> InputOf(const PrefillSize& size, DataType dtype) {
    PrefillConfig config = size.config;
    config.dtype = dtype;
    return PrefillInput(config, size.length);
  }
};

std::string NameOf(const testing::TestParamInfo<std::tuple<PrefillSize, DataType>>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param).name, Name(std::get<1>(info.param)));
}

constexpr Way kWays[] = {{"as written"},
                         {"fused", 1, true},
                         {"reverse order", 1, false, NodeOrder::kReverse},
                         {"float64 sums", 1, false, NodeOrder::kStable, true},
                         {"two ranks", 2, true},
                         {"four ranks", 4, false}};

class CloseTransformer : public testing::TestWithParam<std::tuple<PrefillSize, DataType>> {
 protected:
  const PrefillModel model_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

class CloseFloat32 : public CloseTransformer {};

// Every way against a reference in double, and against every other way.
TEST_P(CloseTransformer, CorrectResultsMatch) {
  const Tensor golden = model_.Golden();
  std::vector<std::pair<std::string, Tensor>> seen = {{"reference", golden}};
  double most = 0;
  for (const Way& way : kWays) {
    for (const Computed& computed : Compute(way, model_.Build(way.ranks), model_.feeds)) {
      for (const auto& [name, other] : seen) {
        const double used = Used(computed.output, other, computed.rounding);
        EXPECT_LE(used, 1) << way.name << " against " << name;
        most = std::max(most, used);
      }
      seen.emplace_back(way.name, computed.output);
    }
  }
  RecordProperty("used", fmt::format("{:.3f}", most));
}

TEST_P(CloseTransformer, WrongResultsDiffer) {
  const Computed right = Compute(kWays[0], model_.Build(1), model_.feeds)[0];
  const Tensor golden = model_.Golden();
  const int64_t hidden = model_.config.hidden;
  std::vector<double> values = ValuesIn(right.output);

  std::vector<double> swapped = values;
  std::swap_ranges(swapped.begin(), swapped.begin() + hidden, swapped.begin() + hidden);
  EXPECT_GT(Used(WithValues(golden, swapped), golden, right.rounding), 1) << "two rows swapped";

  std::vector<double> zero = values;
  const auto largest = std::max_element(
      zero.begin(), zero.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
  *largest = 0;
  EXPECT_GT(Used(WithValues(golden, zero), golden, right.rounding), 1) << "an element is zero";

  std::vector<double> shifted(values.size());
  std::rotate_copy(values.begin(), values.begin() + 1, values.end(), shifted.begin());
  EXPECT_GT(Used(WithValues(golden, shifted), golden, right.rounding), 1) << "shifted by one";
}

// Half of the elements are larger than the median: each of them, wrong by a hundredth.
TEST_P(CloseFloat32, OneWrongElementDiffers) {
  const Computed right = Compute(kWays[0], model_.Build(1), model_.feeds)[0];
  const Tensor golden = model_.Golden();
  const std::vector<double> values = ValuesIn(right.output);
  std::vector<double> magnitudes;
  for (const double value : values) magnitudes.push_back(std::abs(value));
  std::nth_element(magnitudes.begin(), magnitudes.begin() + magnitudes.size() / 2,
                   magnitudes.end());
  const double median = magnitudes[magnitudes.size() / 2];
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) < median) continue;
    std::vector<double> wrong = values;
    wrong[i] *= 1.01;
    ASSERT_GT(Used(WithValues(golden, wrong), golden, right.rounding), 1) << i;
  }
}

// A rank that has the shard of another one.
TEST_P(CloseTransformer, AWrongShardDiffers) {
  const Tensor golden = model_.Golden();
  const BuildRank build = [&](int) { return BuildPrefill(model_.config, model_.weights, 0, 2); };
  for (const Computed& wrong : Compute({"wrong shard", 2}, build, model_.feeds)) {
    EXPECT_GT(Used(wrong.output, golden, wrong.rounding), 1);
  }
}

// One weight of one layer: two rows changed places, or it is not there.
TEST_P(CloseTransformer, AWrongWeightDiffers) {
  const Tensor golden = model_.Golden();
  const std::string first = "0.";
  for (const char* name : {"v", "o", "gate", "up", "down"}) {
    for (const bool swapped : {true, false}) {
      Parameters weights = model_.weights;
      Parameter& weight = weights.at(first + name);
      const int64_t width = weight.shape[1];
      if (swapped) {
        std::swap_ranges(weight.values.begin(), weight.values.begin() + width,
                         weight.values.begin() + width);
      } else {
        std::fill(weight.values.begin(), weight.values.end(), 0);
      }
      // Two of 256 rows are a small error, which 16 bits do not show in the sums of "wide".
      if (swapped && std::get<1>(GetParam()) != DataType::kFloat) continue;
      const BuildRank build = [&](int) { return BuildPrefill(model_.config, weights, 0, 1); };
      const Computed wrong = Compute({"wrong weight"}, build, model_.feeds)[0];
      EXPECT_GT(Used(wrong.output, golden, wrong.rounding), 1)
          << name << (swapped ? " swapped" : " absent");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CloseTransformer,
                         testing::Combine(testing::ValuesIn(Sizes()),
                                          testing::Values(DataType::kFloat, DataType::kFloat16,
                                                          DataType::kBfloat16)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(, CloseFloat32,
                         testing::Combine(testing::ValuesIn(Sizes()),
                                          testing::Values(DataType::kFloat)),
                         NameOf);

std::vector<double> Probabilities(const Parameters& parameters, const Clicks& clicks) {
  std::vector<double> values;
  for (const Real& logit : RecommenderLogits(parameters.Constants(), clicks)) {
    values.push_back(Sigmoid(logit).value);
  }
  return values;
}

TEST(CloseRecommender, CorrectMatchesAndAMissingBiasDiffers) {
  const Parameters parameters = RecommenderParameters(21);
  const Clicks clicks = MakeClicks(40, 3);
  const Feeds feeds = FeedsOf(clicks, false);
  for (const Way& way : {kWays[0], kWays[1], kWays[3]}) {
    const Computed right = Compute(
        way, [&](int) { return BuildRecommender(parameters); }, feeds)[0];
    const Tensor golden = WithValues(right.output, Probabilities(parameters, clicks));
    EXPECT_LE(Used(right.output, golden, right.rounding), 1) << way.name;
    for (const char* bias : {"bb", "b1", "b2"}) {
      Parameters without = parameters;
      for (double& value : without.at(bias).values) value = 0;
      const Computed wrong = Compute(
          way, [&](int) { return BuildRecommender(without); }, feeds)[0];
      EXPECT_GT(Used(wrong.output, golden, wrong.rounding), 1) << bias;
    }
  }
}

TEST(CloseMoe, CorrectMatchesAndOtherTokensDiffer) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const Parameters weights = MoeWeights(dtype, {3}, 41);
    const std::vector<double> tokens = MoeTokens(dtype, 5, 50);
    const Feeds feeds = {{"x", TensorOf({5, kMoeWidth}, tokens, dtype)}};
    const BuildRank build = [&](int rank) {
      return BuildMoeLayer(MoeForm::kDispatch, dtype, weights, 5, rank, 4);
    };
    for (const Computed& right : Compute({"four ranks", 4}, build, feeds)) {
      const Tensor golden = WithValues(right.output, MoeReference(weights, tokens).y);
      EXPECT_LE(Used(right.output, golden, right.rounding), 1) << Name(dtype);
      std::vector<double> wrong = ValuesIn(golden);
      std::rotate(wrong.begin(), wrong.begin() + kMoeWidth, wrong.end());
      EXPECT_GT(Used(WithValues(golden, wrong), golden, right.rounding), 1) << Name(dtype);
    }
  }
}

}  // namespace
}  // namespace npumesh::models
