// Training steps of a small decoder: loss, gradients and weights against the reference, step after
// step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/decoder_training.h"
#include "tests/models/model_run.h"
#include "tests/models/training_optimizer.h"

namespace npumesh::models {
namespace {

// A float32 rounds to 2^-24 of its size; what is compared went through sums of some hundred terms
// and, in weights, through Adam's division, which enlarges the error of a gradient of size 1e-3 by
// 10. Both stay below these bounds by a factor of 4 or more.
constexpr double kOfGradients = 4e-6;
constexpr double kOfWeights = 2e-5;

std::vector<double> AsDoubles(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

Feeds FeedsOf(const TrainingConfig& config, const TrainingBatch& batch) {
  Feeds feeds = {
      {"tokens",
       TensorOf({config.batch, config.sequence}, AsDoubles(batch.tokens), DataType::kInt64)},
      {"targets", TensorOf({config.tokens()}, AsDoubles(batch.targets), DataType::kInt64)}};
  if (config.keep < 1) {
    feeds["offsets"] = TensorOf({config.dropouts()}, AsDoubles(batch.offsets), DataType::kInt64);
  }
  return feeds;
}

std::vector<Parameter> ShardsOf(const TrainingConfig& config, const Parameters& all, int rank) {
  std::vector<Parameter> shards;
  for (const Parameter& whole : all.all()) shards.push_back(ShardOf(config, whole, rank));
  return shards;
}

// One rank's walk through several steps beside the reference.
class Walk {
 public:
  Walk(NamedSession& session, const TrainingConfig& config)
      : session_(session), config_(config), reference_(DecoderParameters(config, 5)) {
    start_ = OptimizerStart(config, ShardsOf(config, reference_, session.rank()));
    for (const Parameter& own : ShardsOf(config, reference_, session.rank())) {
      start_[own.name] = TensorOf(own);
    }
  }

  Status Step(int step) {
    const int64_t sequences = config_.batch * config_.data_parallel;
    const TrainingBatch whole = MakeBatch(config_, sequences, step);
    const LossAndGradients expected = Differentiate(reference_, DecoderLoss(config_, whole));
    Feeds feeds = FeedsOf(config_, OwnPart(whole));
    if (step == 0) feeds.insert(start_.begin(), start_.end());
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session_.Run(feeds));
    if (config_.data_parallel == 1) {
      NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], {expected.loss}, kOfGradients, "loss"));
    }
    size_t next = 1;
    for (const Parameter& p : reference_.all()) {
      Parameter gradient{p.name, p.shape, expected.gradients.at(p.name)};
      NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[next++],
                                         ShardOf(config_, gradient, session_.rank()).values,
                                         kOfGradients, "gradient of " + p.name));
    }
    AdamW& adam = config_.adam;
    adam.Step(reference_, expected);
    losses_.push_back(expected.loss);
    return CheckWeights();
  }

  Status CheckWeights() {
    for (const Parameter& own : ShardsOf(config_, reference_, session_.rank())) {
      NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session_.Read(own.name));
      NPUMESH_RETURN_IF_ERROR(CheckClose(seen, own.values, kOfWeights, own.name));
    }
    return Status();
  }

  const std::vector<double>& losses() const { return losses_; }

 private:
  TrainingBatch OwnPart(const TrainingBatch& whole) const {
    if (config_.data_parallel == 1) return whole;
    const auto own = [&](const std::vector<int64_t>& values) {
      const auto first = values.begin() + session_.rank() * config_.tokens();
      return std::vector<int64_t>(first, first + config_.tokens());
    };
    return {own(whole.tokens), own(whole.targets), whole.offsets};
  }

  NamedSession& session_;
  TrainingConfig config_;
  Parameters reference_;
  Feeds start_;
  std::vector<double> losses_;
};

// Four steps; the loss falls at each.
void Train(const TrainingConfig& config, const RunChoice& choice) {
  const int ranks = config.data_parallel * config.tensor_parallel;
  const Parameters parameters = DecoderParameters(config, 5);
  const auto build = [&](int rank) { return BuildDecoderStep(config, parameters, rank); };
  OnEachRank(ranks, build, choice, [&](NamedSession& session) -> Status {
    Walk walk(session, config);
    for (int step = 0; step < 4; ++step) {
      NPUMESH_RETURN_IF_ERROR(walk.Step(step).WithContext(fmt::format("step {}", step)));
    }
    for (size_t i = 1; i < walk.losses().size(); ++i) {
      if (walk.losses()[i] < walk.losses()[i - 1]) continue;
      return Error(Code::kInternal, "the loss rises from {} to {}", walk.losses()[i - 1],
                   walk.losses()[i]);
    }
    return session.session().stats().plans == 1
               ? Status()
               : Error(Code::kInternal, "{} plans", session.session().stats().plans);
  });
}

class DecoderTraining : public testing::TestWithParam<bool> {
 protected:
  RunChoice choice() const { return GetParam() ? kOptimised : kAsWritten; }
};

TEST(DecoderReference, GradientsAreThoseOfCentralDifferences) {
  for (const double keep : {1.0, 0.75}) {
    TrainingConfig config;
    config.keep = keep;
    const Parameters parameters = DecoderParameters(config, 5);
    const LossFunction loss = DecoderLoss(config, MakeBatch(config, config.batch, 0));
    ExpectCentralDifferences(parameters, loss, Differentiate(parameters, loss));
  }
}

TEST_P(DecoderTraining, WithApplyAdamW) {
  Train({}, choice());
}

TEST_P(DecoderTraining, WithAdamWOfSingleOperators) {
  TrainingConfig config;
  config.form = OptimizerForm::kForeach;
  Train(config, choice());
}

INSTANTIATE_TEST_SUITE_P(, DecoderTraining, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
