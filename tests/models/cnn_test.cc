// A small residual network: inference with a dynamic batch, and training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/cnn.h"
#include "tests/models/model_run.h"

namespace npumesh::models {
namespace {

constexpr uint64_t kSeed = 11;

// Relative to the largest logit. float32 sums of up to 54 terms; 16 bits round each of the 7 layers
// to 2^-11 of its size.
double ToleranceOf(DataType dtype) {
  return dtype == DataType::kFloat ? 2e-6 : 4e-3;
}

std::vector<double> ValuesOf(const Reals& reals) {
  std::vector<double> values;
  for (const Real& real : reals) values.push_back(real.value);
  return values;
}

void InferSeveralBatches(DataType dtype, const RunChoice& choice) {
  const Parameters parameters = CnnParameters(kSeed), statistics = CnnStatistics(kSeed);
  OnOneRank(
      BuildCnnInference(parameters, statistics, dtype), choice,
      [&](NamedSession& session) -> Status {
        for (const int64_t images : {1, 3, 8, 3, 2, 1}) {
          const std::vector<double> pixels = CnnImages(images, 40 + images);
          const Tensor image =
              TensorOf({images, kImageChannels, kImageSide, kImageSide}, pixels, dtype);
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                                   session.Run({{"image", image}}));
          EXPECT_EQ(outputs[0].type(), (TensorType{dtype, {images, kClasses}}));
          const Reals expected = CnnLogits(parameters.Constants(), statistics.Constants(), pixels);
          NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], ValuesOf(expected), ToleranceOf(dtype),
                                             fmt::format("logits of {}", images)));
        }
        EXPECT_EQ(session.session().stats().plans, 4u);  // of 1, 3, 8 and 2 images
        return Status();
      });
}

void Train(MomentumForm form, double weight_decay, const RunChoice& choice) {
  constexpr int64_t kImages = 4;
  Momentum rule;
  rule.weight_decay = weight_decay;
  Parameters parameters = CnnParameters(kSeed), statistics = CnnStatistics(kSeed);
  const std::vector<double> pixels = CnnImages(kImages, 3);
  const std::vector<int64_t> labels = {1, 4, 0, 1};
  OnOneRank(BuildCnnStep(parameters, statistics, rule, form, kImages), choice,
            [&](NamedSession& session) -> Status {
              Feeds feeds = {
                  {"image", TensorOf({kImages, kImageChannels, kImageSide, kImageSide}, pixels)},
                  {"label", Tensor::FromVector<int64_t>({DataType::kInt64, {kImages}}, labels)}};
              const Feeds batch = feeds;
              for (const Parameter& p : statistics.all()) feeds[p.name] = TensorOf(p);
              for (const Parameter& p : parameters.all()) {
                feeds[p.name] = TensorOf(p);
                feeds[p.name + ".accum"] = Tensor::Allocate({DataType::kFloat, p.shape});
              }
              double last_loss = 1e9;
              for (int step = 0; step < 4; ++step) {
                const LossAndGradients expected =
                    Differentiate(parameters, [&](const ParameterReals& p) {
                      return CnnLoss(p, pixels, labels, &statistics);
                    });
                NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                                         session.Run(step == 0 ? feeds : batch));
                NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], {expected.loss}, 1e-5, "loss"));
                EXPECT_LT(expected.loss, last_loss) << "step " << step;
                last_loss = expected.loss;
                // Normalisation by a batch divides by small deviations, in every layer.
                for (size_t i = 0; i < parameters.all().size(); ++i) {
                  const std::string& name = parameters.all()[i].name;
                  // A bias in front of a normalisation has no gradient but rounding.
                  if (name == "b2.b") continue;
                  NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[i + 1], expected.gradients.at(name),
                                                     5e-5, "gradient of " + name));
                }
                rule.Step(parameters, expected);
                for (const Parameters* all : {&parameters, &statistics}) {
                  for (const Parameter& p : all->all()) {
                    NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session.Read(p.name));
                    NPUMESH_RETURN_IF_ERROR(CheckClose(seen, p.values, 2e-5, p.name));
                  }
                }
              }
              return Status();
            });
}

TEST(CnnReference, GradientsAreThoseOfCentralDifferences) {
  const Parameters parameters = CnnParameters(kSeed);
  const std::vector<double> pixels = CnnImages(2, 3);
  const LossFunction loss = [&](const ParameterReals& p) { return CnnLoss(p, pixels, {1, 4}); };
  ExpectCentralDifferences(parameters, loss, Differentiate(parameters, loss), 2);
}

class Cnn : public testing::TestWithParam<bool> {
 protected:
  RunChoice choice() const { return GetParam() ? kOptimised : kAsWritten; }
};

TEST_P(Cnn, InfersBatchesOfAnySize) {
  InferSeveralBatches(DataType::kFloat, choice());
}

TEST_P(Cnn, InfersInFloat16) {
  InferSeveralBatches(DataType::kFloat16, choice());
}

TEST_P(Cnn, TrainsWithSgd) {
  Train(MomentumForm::kSgd, 0.01, choice());
}

TEST_P(Cnn, TrainsWithApplyMomentum) {
  Train(MomentumForm::kMomentum, 0, choice());
}

TEST_P(Cnn, TrainsWithMomentumOfSingleOperators) {
  Train(MomentumForm::kPlain, 0.01, choice());
}

INSTANTIATE_TEST_SUITE_P(, Cnn, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
