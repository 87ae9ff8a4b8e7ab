// AttentionFusionPass on graphs as exporters write them: views and casts between the products,
// heads that share keys, operands that are transposed or scaled, masks that select.
//
// In 16 bits a fused attention rounds once, the graph as written at every operator. Queries and
// keys are small integers here, so that all scores are exact in either way, and values are
// positive. What is left is, with the unit roundoff u of the type, an error of u from each
// probability and of u from rounding the sum in the graph as written, and of u in the fused one;
// probabilities below the normal numbers of float16 add 150 * 2^-25 * 4. In float32 the error is
// that of attention_test.
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

constexpr double kExactScores = 0x1p-18;  // float32: only sums and exponentials round
constexpr float kInf = INFINITY;

double BoundOf(DataType dtype) {
  if (dtype == DataType::kFloat) return kExactScores;
  return 4 * (dtype == DataType::kFloat16 ? 0x1p-11 : 0x1p-8);
}

class AttentionForms : public FusionTest {
 protected:
  // Integers from `least` to `least + count - 1`.
  Value Integers(const TensorType& type, int least, int count) {
    std::vector<float> values(static_cast<size_t>(type.shape.elements()));
    uint32_t seed = static_cast<uint32_t>(inputs_.size()) + 7;
    for (float& value : values) {
      seed = seed * 1664525 + 1013904223;
      value =
          static_cast<float>(least + static_cast<int>((seed >> 16) % static_cast<uint32_t>(count)));
    }
    Tensor tensor = Tensor::Allocate(type);
    if (type.dtype == kFloat) {
      std::memcpy(tensor.mutable_data(), values.data(), tensor.bytes());
    } else {
      FindConvert(kFloat, type.dtype)(values.data(), tensor.mutable_data(), values.size());
    }
    return In(std::move(tensor));
  }
  Value Query(const TensorType& type) { return Integers(type, -1, 3); }
  Value Values(const TensorType& type) { return Integers(type, 1, 4); }
  // True where (row + column) % 3 is not 1, and never in row 1 when `blind`.
  Value Booleans(const Shape& shape, bool blind) {
    Tensor tensor = Tensor::Allocate({DataType::kBool, shape});
    const int64_t columns = shape.dims().back();
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t row = i / columns;
      const bool seen = (row + i % columns) % 3 != 1 && !(blind && row == 1);
      tensor.mutable_data()[i] = static_cast<std::byte>(seen);
    }
    return In(std::move(tensor));
  }

  Value Product(Value a, Value b, bool adj_x2 = false) {
    return g_.Op("BatchMatMul", {{"x1", a}, {"x2", b}}, {{"adj_x2", AttrValue::Bool(adj_x2)}});
  }
  Value Reshape(Value x, const std::vector<int64_t>& shape) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(shape)}});
  }
  Value Transpose(Value x, const std::vector<int64_t>& perm) {
    return g_.Op("Transpose", {{"x", x}, {"perm", g_.Ints(perm)}});
  }
  Value Expand(Value x, const std::vector<int64_t>& shape, const std::string& type) {
    return g_.Op(type, {{"x", x}, {"shape", g_.Ints(shape)}});
  }
  Value Unsqueeze(Value x, int64_t axis) {
    return g_.Op("Unsqueeze", {{"x", x}}, {{"axes", AttrValue::Ints({axis})}});
  }
  Value Softmax(Value x) { return One("SoftmaxV2", x); }
  Value Select(Value condition, Value a, Value b) {
    return g_.Op("SelectV2", {{"condition", condition}, {"then", a}, {"else", b}});
  }

  // One step with the outputs of the graph without fusion.
  void ExpectOneStep(double bound) {
    const std::vector<std::string> steps = Fused().steps;
    ASSERT_EQ(steps.size(), 1u) << testing::PrintToString(steps);
    EXPECT_THAT(steps[0], HasSubstr("SoftmaxV2"));
    ExpectNear(steps, bound);
  }
  void ExpectNotFused() {
    for (const std::string& step : Fused().steps) {
      EXPECT_TRUE(step == "SoftmaxV2" || step.find("SoftmaxV2") == std::string::npos) << step;
    }
  }
};

// transformers' repeat_kv: each head of k and v stands for three of q.
TEST_F(AttentionForms, TakesGroupedQueries) {
  for (const DataType dtype : {kFloat, kHalf, DataType::kBfloat16}) {
    for (const std::string type : {"BroadcastTo", "Expand"}) {
      SCOPED_TRACE(type + " " + std::string(Name(dtype)));
      SetUpAnew();
      const auto repeated = [&](Value x, int64_t width) {
        const Value expanded = Expand(Unsqueeze(x, 2), {2, 2, 3, 150, width}, type);
        return Reshape(expanded, {2, 6, 150, width});
      };
      const Value q = Query({dtype, {2, 6, 70, 16}});
      const Value k = repeated(Query({dtype, {2, 2, 150, 16}}), 16);
      const Value v = repeated(Values({dtype, {2, 2, 150, 24}}), 24);
      const Value scores = Two("Mul", Product(q, Transpose(k, {0, 1, 3, 2})), Scalar(0.25f, dtype));
      const Value mask = Integers({dtype, {2, 1, 70, 150}}, -2, 3);
      g_.Output({Product(Softmax(Two("Add", scores, mask)), v)});
      ExpectOneStep(BoundOf(dtype));
    }
  }
}

TEST_F(AttentionForms, TakesOneKeyForAllHeads) {
  const Value scores = Product(Query({kFloat, {2, 5, 9, 8}}), Query({kFloat, {2, 1, 7, 8}}), true);
  g_.Output({Product(Softmax(scores), Values({kFloat, {2, 1, 7, 4}}))});
  ExpectOneStep(BoundOf(kFloat));
}

TEST_F(AttentionForms, TakesKeysThatAreSharedBesideValuesThatAreNot) {
  const Value scores = Product(Query({kFloat, {4, 9, 8}}), Query({kFloat, {1, 7, 8}}), true);
  g_.Output({Product(Softmax(scores), Values({kFloat, {4, 7, 4}}))});
  ExpectOneStep(BoundOf(kFloat));
}

TEST_F(AttentionForms, TakesOneQueryForManyKeys) {
  const Value scores = Product(Query({kFloat, {1, 3, 9, 8}}), Query({kFloat, {2, 3, 7, 8}}), true);
  g_.Output({Product(Softmax(scores), Values({kFloat, {2, 3, 7, 4}}))});
  ExpectOneStep(BoundOf(kFloat));
}

// As TorchAir writes matmul of four dimensions.
TEST_F(AttentionForms, TakesViewsBetweenTheProducts) {
  for (const DataType dtype : {kFloat, kHalf, DataType::kBfloat16}) {
    SCOPED_TRACE(std::string(Name(dtype)));
    SetUpAnew();
    const Value q = Reshape(Query({dtype, {2, 3, 70, 16}}), {6, 70, 16});
    const Value k = Transpose(Query({dtype, {2, 3, 150, 16}}), {0, 1, 3, 2});
    const Value scores = Reshape(Product(q, Reshape(k, {6, 16, 150})), {2, 3, 70, 150});
    const Value mask = Integers({dtype, {70, 150}}, -2, 3);
    const Value added =
        Two("Add", Two("RealDiv", scores, Scalar(4, dtype)), Unsqueeze(Unsqueeze(mask, 0), 0));
    const Value weights = Reshape(Softmax(added), {6, 70, 150});
    const Value seen = Product(weights, Reshape(Values({dtype, {2, 3, 150, 24}}), {6, 150, 24}));
    g_.Output({Reshape(seen, {2, 3, 70, 24})});
    ExpectOneStep(BoundOf(dtype));
  }
}

// Softmax in float32, as transformers does in models of 16 bits.
TEST_F(AttentionForms, TakesCastsAroundTheSoftmax) {
  for (const DataType dtype : {kHalf, DataType::kBfloat16}) {
    SCOPED_TRACE(std::string(Name(dtype)));
    SetUpAnew();
    const Value scores = Product(Query({dtype, {3, 70, 16}}), Query({dtype, {3, 150, 16}}), true);
    const Value weights = Cast(Softmax(Cast(scores, kFloat)), dtype);
    g_.Output({Product(weights, Values({dtype, {3, 150, 24}}))});
    ExpectOneStep(BoundOf(dtype));
  }
}

// [B, S, N, D] turned into [B, N, S, D] in front of the products; k once more.
TEST_F(AttentionForms, TakesTransposedOperands) {
  const auto heads = [&](Value x) { return Transpose(x, {0, 2, 1, 3}); };
  const Value q = heads(Query({kFloat, {2, 70, 3, 16}}));
  const Value k = heads(Query({kFloat, {2, 150, 3, 16}}));
  const Value v = heads(Values({kFloat, {2, 150, 3, 24}}));
  const Value scores = Product(q, Transpose(k, {0, 1, 3, 2}));
  g_.Output({Product(Softmax(scores), v)});
  ExpectOneStep(BoundOf(kFloat));
}

// A query that lies in columns has to be transposed before.
TEST_F(AttentionForms, LeavesATransposeThatMovesTheWidth) {
  const Value q = Transpose(Query({kFloat, {2, 8, 9}}), {0, 2, 1});
  const Value scores = Product(q, Query({kFloat, {2, 7, 8}}), true);
  g_.Output({Product(Softmax(scores), Values({kFloat, {2, 7, 4}}))});
  ExpectNear({"Transpose", "BatchMatMul+SoftmaxV2+BatchMatMul"}, BoundOf(kFloat));
}

// Others read the keys in the form that the product reads, so it exists in any case.
TEST_F(AttentionForms, ReadsWhatOthersReadToo) {
  const Value k = Transpose(Query({kFloat, {2, 150, 3, 16}}), {0, 2, 1, 3});
  const Value scores = Product(Query({kFloat, {2, 3, 70, 16}}), k, true);
  g_.Output({Product(Softmax(scores), Values({kFloat, {2, 3, 150, 24}})), One("Neg", k)});
  ExpectNear({"Transpose", "BatchMatMul+SoftmaxV2+BatchMatMul", "Neg"}, BoundOf(kFloat));
}

TEST_F(AttentionForms, TakesTheScaleWhereverItStands) {
  for (const DataType dtype : {kFloat, kHalf}) {
    for (const std::string where : {"query", "key", "both", "divided query", "scores twice"}) {
      SCOPED_TRACE(where + " " + std::string(Name(dtype)));
      SetUpAnew();
      const auto half = [&](Value x) {
        return g_.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(0.5f)}});
      };
      Value q = Query({dtype, {2, 3, 70, 16}});
      Value k = Query({dtype, {2, 3, 150, 16}});
      if (where == "query" || where == "both") q = half(q);
      if (where == "divided query") q = Two("RealDiv", q, Scalar(4, dtype));
      if (where == "key" || where == "both") k = Two("Mul", Scalar(0.5f, dtype), k);
      Value scores = Product(q, Transpose(k, {0, 1, 3, 2}));
      if (where == "scores twice") scores = half(half(scores));
      g_.Output({Product(Softmax(scores), Values({dtype, {2, 3, 150, 24}}))});
      ExpectOneStep(BoundOf(dtype));
    }
  }
}

TEST_F(AttentionForms, TakesMasksThatSelect) {
  const std::pair<DataType, Shape> masks[] = {
      {kFloat, {70, 150}}, {kHalf, {2, 1, 70, 150}}, {DataType::kBfloat16, {2, 3, 70, 150}}};
  for (const auto& [dtype, shape] : masks) {
    for (const std::string form : {"keep", "drop", "fill", "fill behind a shift"}) {
      SCOPED_TRACE(form + " " + shape.ToString() + " " + std::string(Name(dtype)));
      SetUpAnew();
      const Value q = Query({dtype, {2, 3, 70, 16}});
      Value scores = Product(q, Query({dtype, {2, 3, 150, 16}}), true);
      if (form == "fill behind a shift") {
        scores = Two("Add", scores, Integers({dtype, {70, 150}}, -2, 3));
      }
      const Value mask = Booleans(shape, false);
      const Value low = Scalar(form == "drop" ? -kInf : -60000.0f, dtype);
      if (form == "keep") {
        scores = Select(mask, scores, low);
      } else if (form == "drop") {
        scores = Select(mask, low, scores);
      } else {
        scores = g_.Op("MaskedFill", {{"x", scores}, {"mask", mask}, {"value", low}});
      }
      g_.Output({Product(Softmax(scores), Values({dtype, {2, 3, 150, 24}}))});
      ExpectOneStep(BoundOf(dtype));
    }
  }
}

// A row that sees nothing is NaN where the mask is -inf, and the mean of v where it is a number.
TEST_F(AttentionForms, ARowThatSeesNothingIsWhatTheSoftmaxMakesOfIt) {
  for (const float low : {-kInf, -1e9f}) {
    SetUpAnew();
    const Value scores = Product(Query({kFloat, {1, 3, 8}}), Query({kFloat, {1, 200, 8}}), true);
    const Value masked = Select(Booleans({3, 200}, true), scores, Scalar(low));
    g_.Output({Product(Softmax(masked), Values({kFloat, {1, 200, 4}}))});
    const Outcome fused = Fused();
    ASSERT_EQ(fused.steps.size(), 1u);
    const std::vector<double> values = Doubles(inputs_[3]);
    const std::vector<double> seen = Doubles(fused.outputs[0]);
    for (size_t column = 0; column < 4; ++column) {
      double mean = 0;
      for (size_t i = 0; i < 200; ++i) mean += values[4 * i + column] / 200;
      EXPECT_FALSE(std::isnan(seen[column]));
      if (low == -kInf) {
        EXPECT_TRUE(std::isnan(seen[4 + column]));
      } else {
        EXPECT_NEAR(seen[4 + column], mean, 0x1p-18 * mean);
      }
    }
  }
}

// Fused, 16 bits are as good as one rounding of the exact result.
TEST_F(AttentionForms, SixteenBitsRoundOnce) {
  constexpr size_t kRows = 20, kColumns = 150, kWidth = 16;
  for (const DataType dtype : {kHalf, DataType::kBfloat16}) {
    SCOPED_TRACE(std::string(Name(dtype)));
    SetUpAnew();
    const Value query = Query({dtype, {1, kRows, kWidth}});
    const Value key = Query({dtype, {1, kColumns, kWidth}});
    const Value value = Values({dtype, {1, kColumns, kWidth}});
    const Value scaled = Two("Mul", Product(query, key, true), Scalar(0.3f, dtype));
    g_.Output({Product(Softmax(scaled), value)});
    const Outcome fused = Fused();
    ASSERT_EQ(fused.steps.size(), 1u);
    const std::vector<double> q = Doubles(inputs_[0]), k = Doubles(inputs_[1]),
                              v = Doubles(inputs_[2]), seen = Doubles(fused.outputs[0]);
    const double scale = dtype == kHalf ? 0.300048828125 : 0.30078125;  // 0.3 in the type
    const double unit = dtype == kHalf ? 0x1p-11 : 0x1p-8;
    for (size_t row = 0; row < kRows; ++row) {
      std::vector<double> weights(kColumns);
      double sum = 0;
      for (size_t column = 0; column < kColumns; ++column) {
        double score = 0;
        for (size_t i = 0; i < kWidth; ++i) score += q[row * kWidth + i] * k[column * kWidth + i];
        sum += weights[column] = std::exp(scale * score);
      }
      for (size_t i = 0; i < kWidth; ++i) {
        double exact = 0;
        for (size_t column = 0; column < kColumns; ++column) {
          exact += weights[column] / sum * v[column * kWidth + i];
        }
        EXPECT_NEAR(seen[row * kWidth + i], exact, (unit + 0x1p-18) * exact);
      }
    }
  }
}

TEST_F(AttentionForms, LeavesWhatTheKernelDoesNotCompute) {
  const TensorType type{kFloat, {2, 8, 8}};
  const Value q = Query(type), k = Query(type), v = Values(type);
  const auto scores = [&] { return Product(q, k, true); };
  const auto half = [&](Value x) {
    return g_.Op("Muls", {{"x", x}}, {{"value", AttrValue::Float(0.5f)}});
  };
  const Value mask = Booleans({8, 8}, false);
  const Value shift = Query({kFloat, {8, 8}});
  const Value low = Scalar(-kInf);
  const Value row = Query({kFloat, {8}});
  const Value read_twice = scores();
  std::vector<Value> outputs = {read_twice};
  for (const Value x : {
           half(Two("Add", scores(), shift)),                     // scaled behind the shift
           half(Select(mask, scores(), low)),                     // scaled behind the mask
           Two("Add", Select(mask, scores(), low), shift),        // shifted behind the mask
           Two("Add", Two("Add", scores(), shift), Query(type)),  // two shifts
           Select(mask, scores(), row),                           // filled with no single number
           Select(mask, low, half(Select(mask, scores(), low))),
           Select(Booleans({8, 1}, false), scores(), low),  // the same for all columns
           Two("Mul", scores(), row),                       // a scale for each column
           Two("RealDiv", Scalar(2), scores()),             // not divided, but the divisor
           Cast(Cast(scores(), kHalf), kFloat),             // rounded on purpose
           One("Relu", scores()),
           read_twice,
       }) {
    outputs.push_back(Product(Softmax(x), v));
  }
  outputs.push_back(Product(Reshape(Softmax(scores()), {2, 4, 16}), Values({kFloat, {2, 16, 8}})));
  outputs.push_back(
      Product(Softmax(Reshape(scores(), {2, 4, 16})), Values({kFloat, {2, 16, 8}})));  // other rows
  outputs.push_back(Product(Softmax(scores()), Values({kFloat, {3, 2, 8, 8}})));       // repeated
  outputs.push_back(Product(One("Neg", Softmax(scores())), v));
  g_.Output(outputs);
  ExpectNotFused();
}

}  // namespace
}  // namespace npumesh
