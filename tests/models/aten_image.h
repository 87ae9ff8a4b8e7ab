// aten calls on images, as TorchAir's converters lower them: NCHW, said by layout hints.
#ifndef NPUMESH_TESTS_MODELS_ATEN_IMAGE_H_
#define NPUMESH_TESTS_MODELS_ATEN_IMAGE_H_

#include <optional>

#include "tests/models/aten_graph.h"

namespace npumesh::models {

struct ConvolutionShape {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t groups = 1;
  int64_t pad() const { return kernel / 2; }
};

Value Convolution(AtenGraph& g, Value x, Value filter, std::optional<Value> bias,
                  const ConvolutionShape& shape);
// convolution_backward, one call for each gradient it is asked for.
Value ConvolutionOfInput(AtenGraph& g, Value dy, Value x, Value filter,
                         const ConvolutionShape& shape);
Value ConvolutionOfFilter(AtenGraph& g, Value dy, Value x, Value filter,
                          const ConvolutionShape& shape);
Value ConvolutionOfBias(AtenGraph& g, Value dy);

struct BatchNormValues {
  Value gamma, beta, mean, variance;
};
inline constexpr double kBatchNormEpsilon = 1e-5;
inline constexpr double kBatchNormMomentum = 0.1;
Value BatchNormInference(AtenGraph& g, Value x, const BatchNormValues& values);
// _native_batch_norm_legit_functional, then copy_ of the new running statistics. Ports: y, running
// mean, running variance, saved mean, saved 1 / sqrt(variance + epsilon).
Value BatchNormTraining(AtenGraph& g, Value x, const BatchNormValues& values);
// Ports: dx, dgamma, dbeta.
Value BatchNormBackward(AtenGraph& g, Value dy, Value x, const BatchNormValues& values,
                        Value forward);

// 3 x 3 windows, stride 2, padding 1.
Value MaxPool(AtenGraph& g, Value x);
// The converter finds the positions again: what the forward hands on is not an index.
Value MaxPoolBackward(AtenGraph& g, Value dy, Value x);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_ATEN_IMAGE_H_
