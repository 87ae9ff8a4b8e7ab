// Whole models as a user meets them: exported, validated and run by the command, bit for bit what a
// session gives.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <numeric>

#include "tests/models/cnn.h"
#include "tests/models/decoder_training.h"
#include "tests/models/llama_prefill.h"
#include "tests/models/model_package.h"
#include "tests/models/moe_layer.h"
#include "tests/models/recommender.h"
#include "tests/models/training_optimizer.h"
#include "tests/models/w8a8_block.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh::models {
namespace {

void RunAsCommand(const PackagedModel& model) {
  const TestFolder folder;
  WritePackage(model, folder.path());
  const std::string package = folder / "package";
  const CommandRun valid = RunAlone({"validate", package});
  EXPECT_EQ(valid.code, 0) << valid.out << valid.err;
  // As many threads as the session of WritePackage has: without AVX-512 oneDNN splits some sums by
  // them, which moves the last bit.
  setenv("NPUMESH_NUM_THREADS", "1", 1);
  const CommandRun run = RunRanksOf(
      model.ranks, {"run", package, "--inputs", folder / "inputs", "--check", folder / "golden",
                    "--steps", std::to_string(kPackagedSteps), "--rtol", "0", "--atol", "0"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

Tensor Integers(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::FromVector<int64_t>({DataType::kInt64, shape}, values);
}

void TrainDecoder(const TrainingConfig& config) {
  const Parameters start = DecoderParameters(config, 5);
  RunAsCommand({config.tensor_parallel, false,
                [=](int rank) { return BuildDecoderStep(config, start, rank); },
                [=](int rank, int step) {
                  const TrainingBatch batch = MakeBatch(config, config.batch, step);
                  Feeds feeds = {
                      {"tokens", Integers({config.batch, config.sequence}, batch.tokens)},
                      {"targets", Integers({config.tokens()}, batch.targets)}};
                  if (config.keep < 1)
                    feeds["offsets"] = Integers({config.dropouts()}, batch.offsets);
                  if (step > 0) return feeds;
                  std::vector<Parameter> own;
                  for (const Parameter& whole : start.all())
                    own.push_back(ShardOf(config, whole, rank));
                  feeds.merge(OptimizerStart(config, own));
                  for (const Parameter& shard : own) feeds[shard.name] = TensorOf(shard);
                  return feeds;
                }});
}

TEST(ModelsCli, DecoderTrainingWithDropout) {
  TrainingConfig config;
  config.keep = 0.75;
  TrainDecoder(config);
}

TEST(ModelsCli, DecoderTrainingTensorParallel) {
  TrainingConfig config;
  config.tensor_parallel = 2;
  config.form = OptimizerForm::kForeach;
  TrainDecoder(config);
}

TEST(ModelsCli, CnnInference) {
  RunAsCommand({1, true, [](int) { return BuildCnnInference(CnnParameters(1), CnnStatistics(2)); },
                [](int, int step) {
                  const int64_t images = step == 1 ? 5 : 2;
                  const Shape shape = {images, kImageChannels, kImageSide, kImageSide};
                  return Feeds{{"image", TensorOf(shape, CnnImages(images, 3))}};
                }});
}

TEST(ModelsCli, CnnTraining) {
  constexpr int64_t kImages = 3;
  const Parameters parameters = CnnParameters(1), statistics = CnnStatistics(2);
  RunAsCommand({1, false,
                [=](int) {
                  return BuildCnnStep(parameters, statistics, {}, MomentumForm::kMomentum, kImages);
                },
                [=](int, int step) {
                  const Shape shape = {kImages, kImageChannels, kImageSide, kImageSide};
                  Feeds feeds = {{"image", TensorOf(shape, CnnImages(kImages, 3))},
                                 {"label", Integers({kImages}, {0, 2, 4})}};
                  if (step > 0) return feeds;
                  for (const Parameter& p : statistics.all()) feeds[p.name] = TensorOf(p);
                  for (const Parameter& p : parameters.all()) {
                    feeds[p.name] = TensorOf(p);
                    feeds[p.name + ".accum"] = Tensor::Allocate({DataType::kFloat, p.shape});
                  }
                  return feeds;
                }});
}

TEST(ModelsCli, RecommenderInference) {
  RunAsCommand({1, true, [](int) { return BuildRecommender(RecommenderParameters(1)); },
                [](int, int step) { return FeedsOf(MakeClicks(3 + step, 2, step == 2), false); }});
}

TEST(ModelsCli, RecommenderTraining) {
  const Parameters parameters = RecommenderParameters(1);
  const Adagrad rule;
  RunAsCommand({1, true,
                [=](int) { return BuildRecommenderStep(parameters, rule, ClickLoss::kWithLogits); },
                [=](int, int step) {
                  Feeds feeds = FeedsOf(MakeClicks(3 + step, 2), true);
                  for (const Parameter& p : parameters.all()) {
                    if (step > 0) break;
                    const std::vector<double> sums(p.values.size(), rule.start);
                    feeds[p.name] = TensorOf(p);
                    feeds[p.name + ".accum"] = TensorOf(p.shape, sums);
                  }
                  return feeds;
                }});
}

TEST(ModelsCli, LlamaPrefillOnFourRanks) {
  PrefillConfig config;
  config.dtype = DataType::kBfloat16;
  const Parameters weights = PrefillWeights(config, 31);
  RunAsCommand({4, true, [=](int rank) { return BuildPrefill(config, weights, rank, 4); },
                [=](int, int step) {
                  const int64_t length = step == 1 ? 9 : 4;
                  std::vector<int64_t> positions(static_cast<size_t>(length));
                  std::iota(positions.begin(), positions.end(), 0);
                  return Feeds{
                      {"hidden_states", TensorOf({1, length, config.hidden},
                                                 PrefillInput(config, length), config.dtype)},
                      {"position_ids", Integers({1, length}, positions)}};
                }});
}

TEST(ModelsCli, MoeOnFourRanks) {
  for (const MoeForm form : {MoeForm::kDispatch, MoeForm::kAllToAll}) {
    const DataType dtype = DataType::kFloat16;
    const Parameters weights = MoeWeights(dtype, {3}, 41);
    RunAsCommand({4, form == MoeForm::kAllToAll,
                  [=](int rank) { return BuildMoeLayer(form, dtype, weights, 5, rank, 4); },
                  [=](int rank, int step) {
                    const auto seed = static_cast<uint64_t>(70 + rank + 9 * step);
                    return Feeds{{"x", TensorOf({5, kMoeWidth}, MoeTokens(dtype, 5, seed), dtype)}};
                  }});
  }
}

TEST(ModelsCli, W8a8Block) {
  RunAsCommand({1, true, [](int) { return BuildW8a8Block(MakeQuantWeights()); },
                [](int, int step) {
                  const int64_t tokens = step == 1 ? 6 : 2;
                  return Feeds{
                      {"x", Tensor::FromVector<Float16>({DataType::kFloat16, {tokens, kBlockWidth}},
                                                        BlockInput(tokens))}};
                }});
}

}  // namespace
}  // namespace npumesh::models
