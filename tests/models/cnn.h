// A small residual network, for inference with a dynamic batch and for a training step.
//
//   x = max_pool(relu(bn(conv3x3(image))))                          [N, 6, 4, 4] of [N, 3, 8, 8]
//   x = relu(bn(conv3x3(relu(bn(conv3x3(x))))) + x)
//   x = relu(bn(depthwise3x3(relu(bn(conv3x3 stride 2(x))))) + bn(conv1x1 stride 2(x)))
//   logits = mean over the image of x, times fc^T, plus the bias    [N, 5]
#ifndef NPUMESH_TESTS_MODELS_CNN_H_
#define NPUMESH_TESTS_MODELS_CNN_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/models/parameters.h"

namespace npumesh::models {

inline constexpr int64_t kImageSide = 8;
inline constexpr int64_t kImageChannels = 3;
inline constexpr int64_t kClasses = 5;

// One convolution with its normalisation; `name` begins the names of its parameters.
struct CnnUnit {
  std::string name;
  int64_t inputs, outputs, kernel, stride, groups;
  bool bias;
};
const CnnUnit& UnitOf(const std::string& name);

// Filters, gammas, betas, the bias of the depthwise convolution, fc.w, fc.b.
Parameters CnnParameters(uint64_t seed);
// "<unit>.mean" and "<unit>.var": running statistics.
Parameters CnnStatistics(uint64_t seed);

// `images` images, exact in float16.
std::vector<double> CnnImages(int64_t images, uint64_t seed);

enum class MomentumForm {
  kSgd,       // SGD
  kMomentum,  // ApplyMomentum
  kPlain,     // torch.optim.SGD: mul, add, copy_
};

// Input "image" [-1, 3, 8, 8] of `dtype`; output: logits. Weights are constants.
Result<Model> BuildCnnInference(const Parameters& parameters, const Parameters& statistics,
                                DataType dtype = DataType::kFloat);
// Inputs "image" and "label" (int64), RefData for each parameter p "p" and "p.accum", and for each
// statistic. Outputs: the loss, then the gradient of each parameter in order. `images`: -1 for any
// number of them.
Result<Model> BuildCnnStep(const Parameters& parameters, const Parameters& statistics,
                           const Momentum& rule, MomentumForm form, int64_t images);

// With the running statistics; logits [N, 5].
Reals CnnLogits(const ParameterReals& parameters, const ParameterReals& statistics,
                const std::vector<double>& images);
// With those of the batch. If `moved` is given, the running statistics move there.
Real CnnLoss(const ParameterReals& parameters, const std::vector<double>& images,
             const std::vector<int64_t>& labels, Parameters* moved = nullptr);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_CNN_H_
