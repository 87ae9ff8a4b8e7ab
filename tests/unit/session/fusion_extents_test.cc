// Every fused pattern with every extent 0, 1 and more: fused and as written agree.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/ops/toolbox/values/cast.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using Extents = std::vector<int64_t>;

struct Pattern {
  std::string name;
  Extents extents;  // where none is 0 or 1
  std::function<void(GraphBuilder&, const Extents&, DataType)> write;
  double tolerance;  // of the largest value, in float32
};

Value Scaled(GraphBuilder& g, Value x) {
  return g.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(0.5f)}});
}

Value Softmax(GraphBuilder& g, Value x) {
  return g.Op("SoftmaxV2", {{"x", x}}, {{"axes", AttrValue::Ints({-1})}});
}

// extents: batch, heads, query rows, key rows, width of keys, width of values.
void Attention(GraphBuilder& g, const Extents& e, DataType type) {
  const Value q = g.Data("q", {type, {e[0], e[1], e[2], e[4]}});
  const Value k = g.Data("k", {type, {e[0], e[1], e[3], e[4]}});
  const Value v = g.Data("v", {type, {e[0], e[1], e[3], e[5]}});
  const Value scores =
      g.Op("BatchMatMulV2", {{"x1", q}, {"x2", k}},
           {{"adj_x1", AttrValue::Bool(false)}, {"adj_x2", AttrValue::Bool(true)}});
  g.Output({g.Op("BatchMatMulV2", {{"x1", Softmax(g, Scaled(g, scores))}, {"x2", v}})});
}

// Heads are split and brought in front by Reshape and Transpose; a mask is added.
void AttentionOfModels(GraphBuilder& g, const Extents& e, DataType type) {
  const auto heads = [&](const char* name, int64_t rows, int64_t width) {
    const Value x = g.Data(name, {type, {e[0], rows, e[1] * width}});
    const Value split = g.Op("Reshape", {{"x", x}, {"shape", g.Ints({e[0], rows, e[1], width})}});
    return g.Op("Transpose", {{"x", split}, {"perm", g.Ints({0, 2, 1, 3})}});
  };
  const Value q = heads("q", e[2], e[4]);
  const Value k =
      g.Op("Transpose", {{"x", heads("k", e[3], e[4])}, {"perm", g.Ints({0, 1, 3, 2})}});
  const Value v = heads("v", e[3], e[5]);
  const Value mask = g.Data("mask", {type, {e[0], 1, e[2], e[3]}});
  const Value scores = Scaled(g, g.Op("BatchMatMulV2", {{"x1", q}, {"x2", k}}));
  const Value masked = g.Op("Add", {{"x1", scores}, {"x2", mask}});
  const Value sums = g.Op("BatchMatMulV2", {{"x1", Softmax(g, masked)}, {"x2", v}});
  g.Output({g.Op("Transpose", {{"x", sums}, {"perm", g.Ints({0, 2, 1, 3})}})});
}

// All queries share one row of keys and values, repeated by a broadcast.
void AttentionOfRepeatedRows(GraphBuilder& g, const Extents& e, DataType type) {
  const auto repeated = [&](const char* name, int64_t rows, int64_t width) {
    const Value x = g.Data(name, {type, {e[0], 1, 1, width}});
    return g.Op("BroadcastTo", {{"x", x}, {"shape", g.Ints({e[0], e[1], rows, width})}});
  };
  const Value scores =
      g.Op("BatchMatMulV2", {{"x1", repeated("q", e[2], e[4])}, {"x2", repeated("k", e[3], e[4])}},
           {{"adj_x2", AttrValue::Bool(true)}});
  g.Output({g.Op("BatchMatMulV2",
                 {{"x1", Softmax(g, Scaled(g, scores))}, {"x2", repeated("v", e[3], e[5])}})});
}

// What is added to the scores is the scores:
// a step cannot read what it computes.
void AttentionShiftedByItself(GraphBuilder& g, const Extents& e, DataType type) {
  const Value q = g.Data("q", {type, {e[0], e[1], e[2], e[4]}});
  const Value k = g.Data("k", {type, {e[0], e[1], e[3], e[4]}});
  const Value v = g.Data("v", {type, {e[0], e[1], e[3], e[5]}});
  const Value scores =
      Scaled(g, g.Op("BatchMatMulV2", {{"x1", q}, {"x2", k}}, {{"adj_x2", AttrValue::Bool(true)}}));
  const Value twice = g.Op("Add", {{"x1", scores}, {"x2", scores}});
  g.Output({g.Op("BatchMatMulV2", {{"x1", Softmax(g, twice)}, {"x2", v}})});
}

// extents: rows, columns.
void RmsNorm(GraphBuilder& g, const Extents& e, DataType) {
  const Value x = g.Data("x", {DataType::kFloat, {e[0], e[1]}});
  const Value gamma = g.Data("gamma", {DataType::kFloat, {e[1]}});
  const Value mean =
      g.Op("ReduceMean", {{"x", g.Op("Mul", {{"x1", x}, {"x2", x}})}, {"axes", g.Ints({-1})}},
           {{"keep_dims", AttrValue::Bool(true)}});
  const Value root =
      g.Op("Rsqrt", {{"x", g.Op("Adds", {{"x", mean}}, {{"value", AttrValue::Float(1e-6f)}})}});
  const Value normal = g.Op("Mul", {{"x1", x}, {"x2", root}});
  g.Output({g.Op("Mul", {{"x1", normal}, {"x2", gamma}})});
}

// extents: rows, inner, columns.
void ProductBiasActivation(GraphBuilder& g, const Extents& e, DataType type) {
  const Value product = g.Op("MatMulV2", {{"x1", g.Data("x", {type, {e[0], e[1]}})},
                                          {"x2", g.Data("w", {type, {e[1], e[2]}})}});
  const Value sum = g.Op("Add", {{"x1", product}, {"x2", g.Data("bias", {type, {e[2]}})}});
  g.Output({g.Op("Relu", {{"x", sum}})});
}

// extents: rows, columns.
void Chain(GraphBuilder& g, const Extents& e, DataType type) {
  const Value x = g.Data("x", {type, {e[0], e[1]}});
  const Value row = g.Data("row", {type, {e[1]}});
  const Value column = g.Data("column", {type, {e[0], 1}});
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", row}});
  g.Output({g.Op("Sigmoid", {{"x", g.Op("Mul", {{"x1", sum}, {"x2", column}})}})});
}

std::vector<float> AsFloats(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.type().shape.elements()));
  FindConvert(tensor.dtype(), DataType::kFloat)(tensor.data(), values.data(),
                                                static_cast<int64_t>(values.size()));
  return values;
}

Tensor Filled(const TensorType& type, int seed) {
  std::vector<float> values(static_cast<size_t>(type.shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(seed) + 0.7f * static_cast<float>(i));
  }
  Tensor tensor = Tensor::Allocate(type);
  FindConvert(DataType::kFloat, type.dtype)(values.data(), tensor.mutable_data(),
                                            static_cast<int64_t>(values.size()));
  return tensor;
}

struct Outcome {
  Status status;
  std::vector<float> values;
};

Outcome RunPattern(const Pattern& pattern, const Extents& extents, DataType type, bool fused) {
  Outcome outcome;
  SessionOptions options;
  if (fused) options.compile.fuses = [](std::string_view) { return true; };
  GraphBuilder graph;
  pattern.write(graph, extents, type);
  RunInSession(graph, options, [&](Session& session) {
    std::vector<Tensor> inputs;
    for (const InputSpec& input : session.inputs()) {
      inputs.push_back(Filled(input.declared, static_cast<int>(inputs.size())));
    }
    const Result<std::vector<Tensor>> outputs = session.Run(inputs);
    outcome.status = outputs.status();
    if (outputs.ok()) outcome.values = AsFloats((*outputs)[0]);
  });
  return outcome;
}

void ExpectAgreement(const Pattern& pattern, const Extents& extents, DataType type) {
  SCOPED_TRACE(fmt::format("{} of {} in {}", pattern.name, fmt::join(extents, " x "), Name(type)));
  const Outcome written = RunPattern(pattern, extents, type, false);
  const Outcome fused = RunPattern(pattern, extents, type, true);
  ASSERT_EQ(written.status.ok(), fused.status.ok())
      << written.status.ToString() << " against " << fused.status.ToString();
  ASSERT_EQ(written.values.size(), fused.values.size());
  // Scores in 16 bits are rounded four times on the way (docs/fusion.md, "How exact").
  const double unit = type == DataType::kFloat16 ? 4 * std::ldexp(1.0, -11) : 1.0;
  const double allowed = type == DataType::kFloat ? pattern.tolerance : unit;
  for (size_t i = 0; i < written.values.size(); ++i) {
    if (std::isnan(written.values[i])) {
      EXPECT_TRUE(std::isnan(fused.values[i])) << "element " << i;
    } else {
      ASSERT_NEAR(written.values[i], fused.values[i], allowed) << "element " << i;
    }
  }
}

const std::vector<Pattern>& Patterns() {
  static const std::vector<Pattern> patterns = {
      {"attention", {2, 3, 4, 5, 8, 6}, Attention, 1e-6},
      {"attention as models write it", {2, 3, 4, 5, 8, 6}, AttentionOfModels, 1e-6},
      {"attention of repeated rows", {2, 3, 4, 5, 8, 6}, AttentionOfRepeatedRows, 1e-6},
      {"attention shifted by itself", {2, 3, 4, 5, 8, 6}, AttentionShiftedByItself, 1e-6},
      {"RMS norm", {3, 8}, RmsNorm, 1e-6},
      {"product, bias and activation", {3, 8, 5}, ProductBiasActivation, 0},
      {"chain", {3, 8}, Chain, 0},
  };
  return patterns;
}

// Each extent alone, and each pair of them, is 0 or 1.
TEST(FusionExtents, FusedAndAsWrittenAgreeWhereExtentsAreSmall) {
  for (const Pattern& pattern : Patterns()) {
    for (const DataType type : {DataType::kFloat, DataType::kFloat16}) {
      ExpectAgreement(pattern, pattern.extents, type);
      for (const int64_t small : {0, 1}) {
        for (size_t i = 0; i < pattern.extents.size(); ++i) {
          for (size_t j = i; j < pattern.extents.size(); ++j) {
            Extents extents = pattern.extents;
            extents[i] = extents[j] = small;
            ExpectAgreement(pattern, extents, type);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
