// Gradients against central differences of the forward operator in float64.
#ifndef NPUMESH_TESTS_UNIT_OP_GRADIENT_H_
#define NPUMESH_TESTS_UNIT_OP_GRADIENT_H_

#include <cmath>
#include <string>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "tests/unit/op_values.h"

namespace npumesh {

// Values between -1 and 1 without pattern: no two alike, none at a kink.
Tensor Waves(DataType dtype, Shape shape, double seed = 1);

// values * factor + offset, in the same type and shape.
Tensor Scaled(const Tensor& tensor, double factor, double offset);

// `gradient` is that of sum(dy * output of `forward`) by the float64 input `port`.
void ExpectGradient(OpCall forward, const std::string& port, const Tensor& dy,
                    const Tensor& gradient, double tolerance = 1e-6, int output = 0);

// The outputs of a call that must succeed.
std::vector<Tensor> Outputs(const OpCall& call);

// Every element within `tolerance` of what is expected, relative to values above 1.
void ExpectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance,
                const std::string& what = "");

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_GRADIENT_H_
