// RotaryEmbeddingFusionPass: each form has the bits of its operators one by one, and of a plain
// loop.
#include "runtime/base/float16.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

using testing::Contains;

// Rounds to the type, as an operator does that writes it.
float RoundedTo(DataType dtype, float value) {
  if (dtype == DataType::kFloat16) return static_cast<float>(Float16(value));
  return dtype == DataType::kBfloat16 ? static_cast<float>(Bfloat16(value)) : value;
}

class RotaryFusion : public FusionTest {
 protected:
  static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};

  // The two halves of the last axis, cut off by one of the operators that can.
  std::array<Value, 2> Halves(const std::string& type, Value x, const Shape& shape) {
    const int64_t half = shape.dims().back() / 2;
    if (type == "SplitV" || type == "Split") {
      std::vector<GraphBuilder::Input> inputs = {{"x", x}, {"split_dim", g_.Int(-1)}};
      if (type == "SplitV") inputs.emplace_back("size_splits", g_.Ints({half, -1}));
      const Value low = g_.Op(type, inputs, {{"num_split", AttrValue::Int(2)}}, {}, 2);
      return {low, g_.Port(low, 1)};
    }
    return {Slice(type, x, shape, 0), Slice(type, x, shape, half)};
  }

  // Half of the last axis, from `begin` on.
  Value Slice(const std::string& type, Value x, const Shape& shape, int64_t begin) {
    const int64_t half = shape.dims().back() / 2;
    std::vector<int64_t> first(shape.dims().size(), 0), size = shape.dims();
    first.back() = begin;
    size.back() = half;
    if (type == "Slice") {
      return g_.Op(type, {{"x", x}, {"offsets", g_.Ints(first)}, {"size", g_.Ints(size)}});
    }
    if (type == "StridedSliceV2") {
      return g_.Op(type, {{"x", x},
                          {"begin", g_.Ints({begin})},
                          {"end", g_.Ints({begin + half})},
                          {"axes", g_.Ints({-1})},
                          {"strides", g_.Ints({1})}});
    }
    // x[..., begin:begin + half], the first entry being the ellipsis.
    return g_.Op(type,
                 {{"x", x},
                  {"begin", g_.Ints({0, begin})},
                  {"end", g_.Ints({0, begin + half})},
                  {"strides", g_.Ints({1, 1})}},
                 {{"ellipsis_mask", AttrValue::Int(1)}});
  }

  Value Join(Value first, Value second) {
    return g_.Op("ConcatV2", {{"x0", first}, {"x1", second}, {"concat_dim", g_.Int(-1)}},
                 {{"N", AttrValue::Int(2)}});
  }
  Value Turned(const std::string& type, Value x, const Shape& shape) {
    const auto [low, high] = Halves(type, x, shape);
    return Join(One("Neg", high), low);
  }
  // Of the form `type`; `swapped` exchanges the operands of both products and the sum.
  Value Rotated(const std::string& type, Value x, const Shape& shape, Value cos, Value sin,
                bool swapped = false) {
    const Value turned = Turned(type, x, shape);
    const Value straight = swapped ? Two("Mul", cos, x) : Two("Mul", x, cos);
    const Value across = swapped ? Two("Mul", sin, turned) : Two("Mul", turned, sin);
    return swapped ? Two("Add", across, straight) : Two("Add", straight, across);
  }
  Value Rotated(Value x, const Shape& shape, Value cos, Value sin) {
    return Rotated("SplitV", x, shape, cos, sin);
  }

  // The steps with this pass alone.
  std::vector<std::string> Steps() {
    return Run([](std::string_view pass) { return pass == kRotaryFusionPass; }).steps;
  }
  // Nothing is fused, for the reason.
  void ExpectLeft(const std::string& why) {
    const Outcome outcome = Run([](std::string_view pass) { return pass == kRotaryFusionPass; });
    EXPECT_EQ(outcome.steps, Unfused().steps);
    EXPECT_THAT(outcome.said,
                Contains(testing::HasSubstr("not fused by RotaryEmbeddingFusionPass: " + why)));
  }
};

TEST_F(RotaryFusion, TakesEveryWayToCutTheHalves) {
  const Shape shape = {3, 5, 64};
  for (const DataType dtype : kTypes) {
    for (const char* type : {"SplitV", "Split", "Slice", "StridedSlice", "StridedSliceV2"}) {
      for (const bool swapped : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", Name(dtype), type, swapped));
        SetUpAnew();
        const Value x = In({dtype, shape});
        g_.Output(
            {Rotated(type, x, shape, Weight({dtype, {5, 64}}), Weight({dtype, {5, 64}}), swapped)});
        const bool splits = std::string_view(type).starts_with("Split");
        const std::string cuts = splits ? type : fmt::format("{}+{}", type, type);
        ExpectSame({cuts + "+Neg+ConcatV2+Mul+Mul+Add"});
      }
    }
  }
}

// Heads in front of the rows and after them, tables of which one row serves all and of which each
// serves one, and halves that fill vectors in part.
TEST_F(RotaryFusion, TakesTablesThatBroadcast) {
  const std::pair<Shape, Shape> shapes[] = {{{4, 7, 16}, {7, 16}},
                                            {{2, 7, 4, 16}, {1, 7, 1, 16}},
                                            {{2, 7, 4, 16}, {2, 7, 1, 16}},
                                            {{2, 4, 7, 16}, {2, 1, 7, 16}},
                                            {{2, 4, 7, 16}, {16}},
                                            {{3, 2, 16}, {3, 2, 16}},
                                            {{1, 12, 1, 128}, {1, 1, 1, 128}},
                                            {{5, 6}, {5, 6}},
                                            {{2, 3, 42}, {3, 42}},
                                            {{2}, {2}},
                                            {{3, 2, 70}, {1, 1, 70}}};
  for (const DataType dtype : kTypes) {
    for (const auto& [shape, table] : shapes) {
      SCOPED_TRACE(fmt::format("{} {} by {}", Name(dtype), shape, table));
      SetUpAnew();
      const Value x = In({dtype, shape});
      g_.Output({Rotated(x, shape, In({dtype, table}), In({dtype, table}))});
      ExpectSame({"SplitV+Neg+ConcatV2+Mul+Mul+Add"});
    }
  }
}

TEST_F(RotaryFusion, HasTheBitsOfAPlainLoop) {
  constexpr int64_t kHeads = 3, kRows = 4, kWidth = 20, kHalf = kWidth / 2;
  const Shape shape = {kHeads, kRows, kWidth};
  for (const DataType dtype : kTypes) {
    SCOPED_TRACE(Name(dtype));
    SetUpAnew();
    const Value x = In({dtype, shape});
    const Value cos = In({dtype, {kRows, kWidth}});
    g_.Output({Rotated(x, shape, cos, In({dtype, {kRows, kWidth}}))});
    const std::vector<double> of_x = Doubles(inputs_[0]);
    const std::vector<double> of_cos = Doubles(inputs_[1]), of_sin = Doubles(inputs_[2]);
    ASSERT_EQ(Steps().size(), 1u);
    const std::vector<double> seen = Doubles(Fused().outputs[0]);
    const auto product = [dtype = dtype](double a, double b) {
      return RoundedTo(dtype, static_cast<float>(a) * static_cast<float>(b));
    };
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t column = i % kWidth;
      const auto table = static_cast<size_t>(i % (kRows * kWidth));
      const bool low = column < kHalf;
      const double other = of_x[static_cast<size_t>(low ? i + kHalf : i - kHalf)];
      const float sum = product(of_x[static_cast<size_t>(i)], of_cos[table]) +
                        product(low ? -other : other, of_sin[table]);
      EXPECT_EQ(seen[static_cast<size_t>(i)], double{RoundedTo(dtype, sum)}) << "element " << i;
    }
  }
}

// Where both products are NaN, processors and compilers choose the one whose sign remains.
TEST_F(RotaryFusion, KeepsSignsOfZerosInfinitiesAndNan) {
  const float inf = INFINITY, nan = std::nanf("");
  const std::vector<float> numbers = {0.0f, -0.0f, inf, -inf, nan, 1, -2, 65504, 3e-8f, -6e-5f};
  for (const DataType dtype : kTypes) {
    SetUpAnew();
    // Each number beside each other one, and each of both in both tables.
    const auto count = static_cast<int64_t>(numbers.size());
    std::vector<float> x, table;
    for (const float first : numbers) {
      for (const float second : numbers) {
        x.insert(x.end(), {first, second});
        table.insert(table.end(), {first, 1});
      }
    }
    const Shape shape = {count * count, 2};
    const auto tensor = [&, dtype = dtype](const std::vector<float>& values) {
      Tensor made = Tensor::Allocate({dtype, shape});
      FindConvert(kFloat, dtype)(values.data(), made.mutable_data(), values.size());
      return made;
    };
    const Value rotated = In(tensor(x));
    g_.Output({Rotated(rotated, shape, In(tensor(table)), Weight({dtype, {1, 2}}))});
    ASSERT_EQ(Steps().size(), 1u);
    const std::vector<double> fused = Doubles(Fused().outputs[0]);
    const std::vector<double> plain = Doubles(Unfused().outputs[0]);
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_EQ(std::isnan(fused[i]), std::isnan(plain[i])) << "element " << i;
      if (std::isnan(plain[i])) continue;
      EXPECT_EQ(fused[i], plain[i]) << "element " << i;
      EXPECT_EQ(std::signbit(fused[i]), std::signbit(plain[i])) << "element " << i;
    }
  }
}

// Two tensors with the same tables, as q and k have them; x is read by others as well.
TEST_F(RotaryFusion, TakesQueriesAndKeysWithTheirTables) {
  const Shape shape = {2, 4, 8};
  const Value cos = In({kFloat, {4, 8}});
  const Value sin = In({kFloat, {4, 8}});
  const Value q = In({kFloat, shape});
  const Value k = In({kFloat, shape});
  g_.Output({Rotated(q, shape, cos, sin), Rotated(k, shape, cos, sin), One("Abs", q)});
  const std::string step = "SplitV+Neg+ConcatV2+Mul+Mul+Add";
  ExpectSame({step, step, "Abs"});
}

// The memory plan lets the step write where its x or one of its tables lies.
TEST_F(RotaryFusion, WritesWhereItReads) {
  const Shape shape = {3, 5, 42};
  for (const DataType dtype : kTypes) {
    for (const int made : {0, 1, 2}) {
      SetUpAnew();
      std::vector<Value> operands;
      for (int i = 0; i < 3; ++i) operands.push_back(In({dtype, shape}));
      Value& last_read = operands[static_cast<size_t>(made)];
      last_read = One("Abs", last_read);
      g_.Output({Rotated(operands[0], shape, operands[1], operands[2])});
      ExpectSame({"Abs", "SplitV+Neg+ConcatV2+Mul+Mul+Add"});
    }
  }
}

// As heads are made of a product: [rows, heads * width] becomes [heads, rows, width].
TEST_F(RotaryFusion, ReadsAcrossATransposeOfRows) {
  const std::pair<Shape, std::vector<int64_t>> cases[] = {
      {{5, 3, 42}, {1, 0, 2}}, {{2, 5, 3, 16}, {0, 2, 1, -1}}, {{3, 5, 1, 8}, {2, 1, 0, 3}}};
  for (const DataType dtype : kTypes) {
    for (const auto& [stored, order] : cases) {
      SCOPED_TRACE(fmt::format("{} {}", Name(dtype), stored));
      SetUpAnew();
      const Value x = g_.Op("Transpose", {{"x", In({dtype, stored})}, {"perm", g_.Ints(order)}});
      Shape shape = stored;
      for (int i = 0; i + 1 < stored.rank(); ++i)
        shape[i] = stored[static_cast<int>(order[static_cast<size_t>(i)])];
      const Shape table = {shape[stored.rank() - 2], shape.dims().back()};
      g_.Output({Rotated(x, shape, In({dtype, table}), In({dtype, table}))});
      ExpectSame({"Transpose+SplitV+Neg+ConcatV2+Mul+Mul+Add"});
    }
  }
}

TEST_F(RotaryFusion, LeavesOtherTransposes) {
  const std::string step = "SplitV+Neg+ConcatV2+Mul+Mul+Add";
  const Shape shape = {4, 6, 8};
  const auto turned = [&](std::vector<int64_t> order) {
    Shape stored = shape;
    for (int i = 0; i < 3; ++i) stored[static_cast<int>(order[static_cast<size_t>(i)])] = shape[i];
    return g_.Op("Transpose", {{"x", In({kFloat, stored})}, {"perm", g_.Ints(order)}});
  };
  const auto table = [&] { return In({kFloat, {6, 8}}); };
  g_.Output({Rotated(turned({0, 2, 1}), shape, table(), table())});  // columns lie apart
  ExpectSame({"Transpose", step});
  SetUpAnew();
  const Value shared = turned({1, 0, 2});
  g_.Output({Rotated(shared, shape, table(), table()), One("Abs", shared)});
  ExpectSame({"Transpose", step, "Abs"});
  SetUpAnew();
  const Value shown = turned({1, 0, 2});
  g_.Output({Rotated(shown, shape, table(), table()), shown});
  ExpectSame({"Transpose", step});
}

TEST_F(RotaryFusion, LeavesWhatIsReadBetween) {
  const Shape shape = {4, 8};
  const TensorType type{kFloat, shape};
  for (const int shown : {0, 1, 2, 3, 4}) {
    SetUpAnew();
    const Value x = In(type);
    const Value halves =
        g_.Op("SplitV", {{"x", x}, {"size_splits", g_.Ints({4, 4})}, {"split_dim", g_.Int(1)}},
              {{"num_split", AttrValue::Int(2)}}, {}, 2);
    const Value negated = One("Neg", g_.Port(halves, 1));
    const Value turned = Join(negated, halves);
    const Value straight = Two("Mul", x, In(type));
    const Value across = Two("Mul", turned, In(type));
    const Value between[] = {halves, negated, straight, turned, across};
    g_.Output({Two("Add", straight, across), between[shown]});
    if (shown < 3) ExpectLeft("others read what lies between");
    if (shown == 3) ExpectLeft("no product alone reads the joined halves");
    if (shown == 4) ExpectLeft("no sum alone reads the product with sin");
  }
}

TEST_F(RotaryFusion, LeavesHalvesThatAreNone) {
  const Shape shape = {4, 8};
  const TensorType type{kFloat, shape};
  const std::string why = "what it joins are not the halves of the last axis of one tensor";
  const auto rotate = [&](const std::function<Value(Value x, Value low, Value high)>& turn) {
    SetUpAnew();
    const Value x = In(type);
    const auto [low, high] = Halves("SplitV", x, shape);
    g_.Output({Two("Add", Two("Mul", x, In(type)), Two("Mul", turn(x, low, high), In(type)))});
    ExpectLeft(why);
  };
  rotate([&](Value, Value low, Value high) { return Join(One("Neg", low), high); });
  rotate([&](Value, Value, Value high) { return Join(One("Neg", high), high); });
  rotate([&](Value, Value, Value high) {
    return Join(One("Neg", high), Slice("Slice", In(type), shape, 0));
  });
  rotate([&](Value, Value, Value high) { return Join(One("Neg", high), In({kFloat, {4, 4}})); });
  rotate([&](Value x, Value low, Value) {  // every second column
    const Value odd = g_.Op("StridedSlice", {{"x", x},
                                             {"begin", g_.Ints({0, 1})},
                                             {"end", g_.Ints({4, 8})},
                                             {"strides", g_.Ints({1, 2})}});
    return Join(One("Neg", odd), low);
  });
  rotate([&](Value x, Value low, Value) {  // the rows upside down
    const Value back = g_.Op("StridedSlice",
                             {{"x", x},
                              {"begin", g_.Ints({-1, 4})},
                              {"end", g_.Ints({0, 8})},
                              {"strides", g_.Ints({-1, 1})}},
                             {{"end_mask", AttrValue::Int(1)}});
    return Join(One("Neg", back), low);
  });
}

// Along the rows instead of the columns, of a square.
TEST_F(RotaryFusion, LeavesHalvesOfAnotherAxis) {
  const TensorType type{kFloat, {2, 2}};
  const Value x = In(type);
  const Value low = g_.Op("Split", {{"x", x}, {"split_dim", g_.Int(0)}},
                          {{"num_split", AttrValue::Int(2)}}, {}, 2);
  const Value turned = g_.Op(
      "ConcatV2", {{"x0", One("Neg", g_.Port(low, 1))}, {"x1", low}, {"concat_dim", g_.Int(0)}},
      {{"N", AttrValue::Int(2)}});
  g_.Output({Two("Add", Two("Mul", x, In(type)), Two("Mul", turned, In(type)))});
  ExpectLeft("what it joins are not the halves of the last axis of one tensor");
}

TEST_F(RotaryFusion, LeavesOtherSums) {
  const Shape shape = {4, 8};
  const TensorType type{kFloat, shape};
  const auto rotate = [&](const std::string& why,
                          const std::function<Value(Value x, Value turned)>& end) {
    SetUpAnew();
    const Value x = In(type);
    g_.Output({end(x, Turned("SplitV", x, shape))});
    ExpectLeft(why);
  };
  const std::string no_cosine = "the other summand is no product of the tensor that it rotates";
  const std::string no_row = "a table does not give a row of its type for each row";
  rotate("no product alone reads the joined halves", [&](Value, Value turned) { return turned; });
  rotate("no product alone reads the joined halves",
         [&](Value, Value turned) { return Two("Mul", turned, turned); });
  rotate("no sum alone reads the product with sin", [&](Value x, Value turned) {
    return Two("Sub", Two("Mul", x, In(type)), Two("Mul", turned, In(type)));
  });
  rotate(no_cosine, [&](Value x, Value turned) {
    return Two("Add", One("Neg", x), Two("Mul", turned, In(type)));
  });
  rotate(no_cosine, [&](Value, Value turned) {
    return Two("Add", Two("Mul", In(type), In(type)), Two("Mul", turned, In(type)));
  });
  rotate(no_row, [&](Value x, Value turned) {  // a number for each row
    return Two("Add", Two("Mul", x, In({kFloat, {4, 1}})), Two("Mul", turned, In(type)));
  });
  rotate(no_row, [&](Value x, Value turned) {
    return Two("Add", Two("Mul", x, In(type)), Two("Mul", turned, Scalar(2)));
  });
  rotate(no_row, [&](Value x, Value turned) {  // tables with more rows than x
    const TensorType more{kFloat, {3, 4, 8}};
    return Two("Add", Two("Mul", x, In(more)), Two("Mul", turned, In(more)));
  });
}

TEST_F(RotaryFusion, LeavesIntegersAndNothing) {
  for (const auto& [type, why] :
       {std::pair(TensorType{DataType::kInt32, {4, 8}}, "it rotates no floats"),
        std::pair(TensorType{kFloat, {0, 8}}, "it rotates no elements")}) {
    SetUpAnew();
    const Value x = In(Tensor::Allocate(type));
    const Value cos = In(Tensor::Allocate(type));
    g_.Output({Rotated(x, type.shape, cos, In(Tensor::Allocate(type)))});
    ExpectLeft(why);
  }
}

TEST_F(RotaryFusion, ControlEdgesKeepItApart) {
  const Shape shape = {4, 8};
  const Value x = In({kFloat, shape});
  const Value turned = Turned("SplitV", x, shape);
  const Value other = One("Abs", x);
  g_.Order(turned, other);
  const Value cos = In({kFloat, shape});
  g_.Output({Two("Add", Two("Mul", x, cos), Two("Mul", turned, cos)), other});
  ExpectLeft("a control edge holds one of its operators");
}

// A pattern that does not begin is not spoken of: two parts are joined everywhere.
TEST_F(RotaryFusion, SaysNothingOfOtherJoins) {
  const Value x = In({kFloat, {4, 8}});
  g_.Output({Join(x, One("Neg", x)), Join(x, x)});
  const Outcome outcome = Fused();
  EXPECT_EQ(outcome.steps, Unfused().steps);
  EXPECT_THAT(outcome.said, testing::IsEmpty());
}

}  // namespace
}  // namespace npumesh
