// A small residual network: inference with a dynamic batch, and training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

// What a session starts from.
Feeds StartOf(const Parameters& parameters, const Parameters& statistics) {
  Feeds feeds;
  for (const Parameter& p : statistics.all()) feeds[p.name] = TensorOf(p);
  for (const Parameter& p : parameters.all()) {
    feeds[p.name] = TensorOf(p);
    feeds[p.name + ".accum"] = Tensor::Allocate({DataType::kFloat, p.shape});
  }
  return feeds;
}

// The loss, the gradients, and what has become of parameters and statistics.
Status CheckStep(NamedSession& session, const std::vector<Tensor>& outputs,
                 const LossAndGradients& expected, const Parameters& parameters,
                 const Parameters& statistics) {
  NPUMESH_RETURN_IF_ERROR(CheckClose(outputs[0], {expected.loss}, 1e-5, "loss"));
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const std::string& name = parameters.all()[i].name;
    // A bias in front of a normalisation has no gradient but rounding.
    if (name == "b2.b") continue;
    // Normalisation by a batch divides by small deviations, in every layer.
    NPUMESH_RETURN_IF_ERROR(
        CheckClose(outputs[i + 1], expected.gradients.at(name), 5e-5, "gradient of " + name));
  }
  for (const Parameters* all : {&parameters, &statistics}) {
    for (const Parameter& p : all->all()) {
      NPUMESH_ASSIGN_OR_RETURN(const Tensor seen, session.Read(p.name));
      NPUMESH_RETURN_IF_ERROR(CheckClose(seen, p.values, 2e-5, p.name));
    }
  }
  return Status();
}

// One step for each of `batches`; the graph takes any number of images when they differ.
void Train(MomentumForm form, double weight_decay, const RunChoice& choice,
           const std::vector<int64_t>& batches = {4, 4, 4, 4}) {
  const bool alike = std::set(batches.begin(), batches.end()).size() == 1;
  Momentum rule;
  rule.weight_decay = weight_decay;
  Parameters parameters = CnnParameters(kSeed), statistics = CnnStatistics(kSeed);
  OnOneRank(
      BuildCnnStep(parameters, statistics, rule, form, alike ? batches[0] : -1), choice,
      [&](NamedSession& session) -> Status {
        Feeds feeds = StartOf(parameters, statistics);
        double last_loss = 1e9;
        for (const int64_t images : batches) {
          const std::vector<double> pixels = CnnImages(images, 3);
          std::vector<int64_t> labels;
          for (int64_t i = 0; i < images; ++i) labels.push_back((i * 3 + 1) % kClasses);
          feeds["image"] = TensorOf({images, kImageChannels, kImageSide, kImageSide}, pixels);
          feeds["label"] = Tensor::FromVector<int64_t>({DataType::kInt64, {images}}, labels);
          const LossAndGradients expected = Differentiate(parameters, [&](const ParameterReals& p) {
            return CnnLoss(p, pixels, labels, &statistics);
          });
          rule.Step(parameters, expected);
          NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(feeds));
          NPUMESH_RETURN_IF_ERROR(CheckStep(session, outputs, expected, parameters, statistics)
                                      .WithContext(fmt::format("{} images", images)));
          EXPECT_TRUE(!alike || expected.loss < last_loss) << expected.loss;
          last_loss = expected.loss;
          feeds.clear();
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

TEST_P(Cnn, TrainsOnBatchesOfAnySize) {
  Train(MomentumForm::kMomentum, 0, choice(), {4, 2, 5, 4});
}

TEST(CnnOrders, UpdatesInPlaceComeAfterTheirReaders) {
  for (const RunChoice& choice : kOrders) {
    Train(MomentumForm::kMomentum, 0, choice);
    Train(MomentumForm::kPlain, 0.01, choice);
  }
}

INSTANTIATE_TEST_SUITE_P(, Cnn, testing::Bool(),
                         [](const auto& info) { return info.param ? "Optimised" : "AsWritten"; });

}  // namespace
}  // namespace npumesh::models
