// Training steps of a small decoder: loss, gradients and weights against the reference, step after
// step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/decoder_training.h"
#include "tests/models/model_run.h"
#include "tests/models/training_optimizer.h"

namespace npumesh::models {
namespace {

// A float32 rounds to 2^-24 of its size. Gradients went through sums of some hundred terms; weights
// also through Adam's division, which enlarges the error of a small gradient, and what weights have
// gathered comes back in the gradients of later steps.
constexpr double kOfGradients = 4e-6;
constexpr double kOfWeights = 2e-5;
constexpr int kSteps = 4;

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

// What a step must give.
struct Expected {
  TrainingBatch batch;  // of all ranks
  LossAndGradients at;
  Parameters after;
};

std::vector<Expected> ReferenceSteps(const TrainingConfig& config, const Parameters& start) {
  Parameters parameters = start;
  AdamW adam = config.adam;
  std::vector<Expected> steps;
  for (int step = 0; step < kSteps; ++step) {
    TrainingBatch batch = MakeBatch(config, config.batch * config.data_parallel, step);
    LossAndGradients at = Differentiate(parameters, DecoderLoss(config, batch));
    adam.Step(parameters, at);
    steps.push_back({std::move(batch), std::move(at), parameters});
  }
  return steps;
}

// The sequences of one rank.
TrainingBatch OwnPart(const TrainingConfig& config, const TrainingBatch& whole, int rank) {
  if (config.data_parallel == 1) return whole;
  const auto own = [&](const std::vector<int64_t>& values) {
    const auto first = values.begin() + rank * config.tokens();
    return std::vector<int64_t>(first, first + config.tokens());
  };
  return {own(whole.tokens), own(whole.targets), whole.offsets};
}

// What a rank's session starts from.
Feeds StartOf(const TrainingConfig& config, const Parameters& parameters, int rank) {
  const std::vector<Parameter> own = ShardsOf(config, parameters, rank);
  Feeds start = OptimizerStart(config, own);
  for (const Parameter& shard : own) start[shard.name] = TensorOf(shard);
  return start;
}

Status CheckStep(NamedSession& session, const TrainingConfig& config, const Expected& expected,
                 const std::vector<Tensor>& outputs, double of_gradients) {
  if (config.data_parallel == 1) {
    NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], {expected.at.loss}, kOfWeights, "loss"));
  }
  size_t next = 1;
  for (const Parameter& after : expected.after.all()) {
    const Parameter gradient{after.name, after.shape, expected.at.gradients.at(after.name)};
    NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[next++],
                                       ShardOf(config, gradient, session.rank()).values,
                                       of_gradients, "gradient of " + after.name));
    NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session.Read(after.name));
    NPUMESH_RETURN_IF_ERROR(
        CheckClose(seen, ShardOf(config, after, session.rank()).values, kOfWeights, after.name));
  }
  return Status();
}

// Four steps beside the reference, and one plan for all of them.
void Train(const TrainingConfig& config, const RunChoice& choice) {
  const Parameters start = DecoderParameters(config, 5);
  const std::vector<Expected> expected = ReferenceSteps(config, start);
  const auto build = [&](int rank) { return BuildDecoderStep(config, start, rank); };
  OnEachRank(config.data_parallel * config.tensor_parallel, build, choice,
             [&](NamedSession& session) -> Status {
               for (int step = 0; step < kSteps; ++step) {
                 const Expected& wanted = expected[static_cast<size_t>(step)];
                 Feeds feeds = FeedsOf(config, OwnPart(config, wanted.batch, session.rank()));
                 if (step == 0) feeds.merge(StartOf(config, start, session.rank()));
                 NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
                 const double bound = step == 0 ? kOfGradients : kOfWeights;
                 NPUMESH_RETURN_IF_ERROR(CheckStep(session, config, wanted, outputs, bound)
                                             .WithContext(fmt::format("step {}", step)));
               }
               EXPECT_EQ(session.session().stats().plans, 1u);
               return Status();
             });
  // With dropout each step asks another question.
  for (size_t i = 1; config.keep == 1 && i < expected.size(); ++i) {
    EXPECT_LT(expected[i].at.loss, expected[i - 1].at.loss) << "step " << i;
  }
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

// The masks are those of the generator, by seed and offset, forward and backward.
TEST_P(DecoderTraining, WithDropout) {
  TrainingConfig config;
  config.keep = 0.75;
  Train(config, choice());
}

TEST_P(DecoderTraining, DataParallelOnTwoRanks) {
  TrainingConfig config;
  config.data_parallel = 2;
  Train(config, choice());
}

TEST_P(DecoderTraining, DataParallelOnFourRanks) {
  TrainingConfig config;
  config.batch = 1;
  config.data_parallel = 4;
  config.form = OptimizerForm::kForeach;
  Train(config, choice());
}

TEST_P(DecoderTraining, TensorParallelOnTwoRanks) {
  TrainingConfig config;
  config.tensor_parallel = 2;
  Train(config, choice());
}

TEST_P(DecoderTraining, FullyShardedOnTwoRanks) {
  TrainingConfig config;
  config.data_parallel = 2;
  config.fully_sharded = true;
  Train(config, choice());
}

TEST_P(DecoderTraining, WithFusedAttention) {
  TrainingConfig config;
  config.fused_attention = true;
  Train(config, choice());
}

// bfloat16 has 8 bits: the loss and the gradients of one step, against those of double; what
// Adam makes of them in four steps, by the loss.
void TrainInMixedPrecision(TrainingConfig config, const RunChoice& choice) {
  config.mixed = true;
  config.form = OptimizerForm::kForeach;
  const Parameters start = DecoderParameters(config, 5);
  const std::vector<Expected> expected = ReferenceSteps(config, start);
  OnOneRank(BuildDecoderStep(config, start, 0), choice, [&](NamedSession& session) -> Status {
    for (size_t step = 0; step < expected.size(); ++step) {
      Feeds feeds = FeedsOf(config, expected[step].batch);
      if (step == 0) feeds.merge(StartOf(config, start, 0));
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
      NPUMESH_RETURN_IF_ERROR(
          CheckClose(outputs[0], {expected[step].at.loss}, 2e-2, fmt::format("loss {}", step)));
      for (size_t i = 0; step == 0 && i < start.all().size(); ++i) {
        const std::string& name = start.all()[i].name;
        EXPECT_EQ(outputs[i + 1].dtype(), DataType::kFloat) << name;
        NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[i + 1], expected[0].at.gradients.at(name), 5e-2,
                                           "gradient of " + name));
      }
    }
    return Status();
  });
}

TEST_P(DecoderTraining, InMixedPrecision) {
  TrainingConfig config;
  config.keep = 0.75;
  TrainInMixedPrecision(config, choice());
}

TEST_P(DecoderTraining, InMixedPrecisionWithFusedAttention) {
  TrainingConfig config;
  config.fused_attention = true;
  TrainInMixedPrecision(config, choice());
}

// Twice the same offsets give the same bits, others do not.
TEST_P(DecoderTraining, DropoutIsReproducible) {
  TrainingConfig config;
  config.keep = 0.5;
  const Parameters start = DecoderParameters(config, 5);
  const auto loss_at = [&](int step) {
    double loss = 0;
    OnOneRank(BuildDecoderStep(config, start, 0), choice(), [&](NamedSession& session) -> Status {
      Feeds feeds = FeedsOf(config, MakeBatch(config, config.batch, step));
      feeds.merge(StartOf(config, start, 0));
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
      loss = ValuesIn(outputs[0])[0];
      return Status();
    });
    return loss;
  };
  const double loss = loss_at(3);
  EXPECT_EQ(loss, loss_at(3));
  EXPECT_NE(loss, loss_at(4));
}

TEST(DecoderTrainingOrders, UpdatesInPlaceComeAfterTheirReaders) {
  for (const RunChoice& choice : kOrders) {
    Train({}, choice);
    TrainingConfig config;
    config.form = OptimizerForm::kForeach;
    Train(config, choice);
  }
}

INSTANTIATE_TEST_SUITE_P(, DecoderTraining, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
