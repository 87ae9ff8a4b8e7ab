// The Foreach family: every member of a list against the operator that is applied to it.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_types.h"

namespace npumesh {
namespace {

Tensor Number(double value, DataType dtype = kF32) {
  return FromDoubles(dtype, {1}, {value});
}

// Tensors of these shapes, positive.
using Shapes = std::vector<Shape>;
const Shapes kSeveral = {Shape{2, 3}, Shape{4}, Shape{}}, kOne(3, Shape{3, 17});

std::vector<Tensor> List(DataType dtype, double seed, const Shapes& shapes = kSeveral) {
  std::vector<Tensor> list;
  for (const Shape& shape : shapes) {
    list.push_back(Scaled(Waves(dtype, shape, seed++), 0.4, 0.5));
  }
  return list;
}

// What lists are made of: lists of one shape have a static kernel.
struct Lists {
  DataType dtype;
  Shapes shapes;
};
const Lists kLists[] = {{kF32, kSeveral}, {kF16, kSeveral}, {kF32, kOne}, {kF16, kOne}};

void Feed(OpCall& call, const std::string& port, const std::vector<Tensor>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    call.inputs.push_back({port + std::to_string(i), list[i]});
  }
}

OpCall ListCall(const std::string& type, int outputs) {
  return {.type = type, .inputs = {}, .attrs = {}, .outputs = outputs};
}

TEST(Foreach, UnaryMembersAreThoseOfTheOperator) {
  const std::pair<const char*, const char*> cases[] = {
      {"ForeachAbs", "Abs"},    {"ForeachACos", "Acos"}, {"ForeachAtan", "Atan"},
      {"ForeachExp", "Exp"},    {"ForeachErfc", "Erfc"}, {"ForeachLog1p", "Log1p"},
      {"ForeachNeg", "Neg"},    {"ForeachSqrt", "Sqrt"}, {"ForeachReciprocal", "Reciprocal"},
      {"ForeachTanh", "Tanh"},  {"ForeachSign", "Sign"}, {"ForeachSigmoid", "Sigmoid"},
      {"ForeachLog", "Log"},    {"ForeachSinh", "Sinh"}, {"ForeachCopy", "TensorMove"},
      {"ForeachAcos", "Acos"},  {"ForeachAsin", "Asin"}, {"ForeachErf", "Erf"},
      {"ForeachASin", "Asin"},  {"ForeachATan", "Atan"}, {"ForeachCos", "Cos"},
      {"ForeachSin", "Sin"},    {"ForeachTan", "Tan"},   {"ForeachCosh", "Cosh"},
      {"ForeachExpm1", "Expm1"}};
  for (const auto& [dtype, shapes] : kLists) {
    const std::vector<Tensor> x = List(dtype, 1, shapes);
    for (const auto& [type, element] : cases) {
      OpCall call = ListCall(type, 3);
      Feed(call, "x", x);
      const std::vector<Tensor> y = Outputs(call);
      ASSERT_EQ(y.size(), 3u) << type;
      for (size_t i = 0; i < 3; ++i) {
        const OpCall one = {.type = element, .inputs = {{"x", x[i]}}};
        EXPECT_TRUE(SameBytes(y[i], RunOne(one))) << type << " " << i;
      }
    }
  }
}

TEST(Foreach, LogarithmsOfOtherBases) {
  for (const auto& [type, base] :
       {std::pair("ForeachLog2", 2.0), std::pair("ForeachLog10", 10.0)}) {
    OpCall call = ListCall(type, 1);
    Feed(call, "x", {FromDoubles(kF32, {3}, {1, base, base * base * base})});
    EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{0, 1, 3}));
  }
}

// One number for all, one for each, and another list; float32 numbers beside halves do not widen.
TEST(Foreach, BinaryMembers) {
  struct Case {
    const char* name;
    double (*formula)(double a, double b);
  };
  const Case cases[] = {{"Add", [](double a, double b) { return a + b; }},
                        {"Sub", [](double a, double b) { return a - b; }},
                        {"Mul", [](double a, double b) { return a * b; }},
                        {"Div", [](double a, double b) { return a / b; }},
                        {"Maximum", [](double a, double b) { return std::max(a, b); }},
                        {"Minimum", [](double a, double b) { return std::min(a, b); }},
                        {"Pow", [](double a, double b) { return std::pow(a, b); }}};
  for (const auto& [dtype, shapes] : kLists) {
    const double tolerance = dtype == kF32 ? 1e-6 : 1e-3;
    const std::vector<Tensor> x1 = List(dtype, 1, shapes), x2 = List(dtype, 5, shapes);
    const std::vector<double> numbers = {0.5, 2, 0.25};
    for (const Case& test : cases) {
      const std::string type = std::string("Foreach") + test.name;
      OpCall scalar = ListCall(type + "Scalar", 3), scalars = ListCall(type + "ScalarList", 3),
             list = ListCall(type + "List", 3);
      Feed(scalar, "x", x1);
      scalar.inputs.push_back({"scalar", Number(0.5)});
      Feed(scalars, "x", x1);
      scalars.inputs.push_back({"scalars", FromDoubles(kF32, {3}, numbers)});
      Feed(list, "x1", x1);
      Feed(list, "x2", x2);
      if (test.name[0] == 'A' || test.name[0] == 'S') list.inputs.push_back({"alpha", Number(1)});
      const std::vector<Tensor> one = Outputs(scalar), each = Outputs(scalars), two = Outputs(list);
      for (size_t i = 0; i < 3; ++i) {
        const std::vector<double> a = ToDoubles(x1[i]), b = ToDoubles(x2[i]);
        std::vector<double> by_one, by_each, by_two;
        for (size_t e = 0; e < a.size(); ++e) {
          by_one.push_back(test.formula(a[e], 0.5));
          by_each.push_back(test.formula(a[e], numbers[i]));
          by_two.push_back(test.formula(a[e], b[e]));
        }
        EXPECT_EQ(one[i].dtype(), dtype);
        ExpectNear(one[i], by_one, tolerance, type);
        ExpectNear(each[i], by_each, tolerance, type);
        ExpectNear(two[i], by_two, tolerance, type);
      }
    }
  }
}

TEST(Foreach, AlphaScalesTheSecondList) {
  const auto ints = [](const std::vector<int32_t>& values) {
    return Make<int32_t>(DataType::kInt32, {static_cast<int64_t>(values.size())}, values);
  };
  for (const auto& [type, sign] :
       {std::pair("ForeachAddList", 1.0), std::pair("ForeachSubList", -1.0)}) {
    OpCall call = ListCall(type, 2);
    Feed(call, "x1", {ints({10, 20}), ints({5})});
    Feed(call, "x2", {ints({1, 2}), ints({3})});
    call.inputs.push_back({"alpha", ints({4})});
    const std::vector<Tensor> y = Outputs(call);
    EXPECT_EQ(ToDoubles(y[0]), (std::vector<double>{10 + sign * 4, 20 + sign * 8}));
    EXPECT_EQ(ToDoubles(y[1]), (std::vector<double>{5 + sign * 12}));
  }
}

TEST(Foreach, PowOfANumber) {
  OpCall call = ListCall("ForeachPowScalarAndTensor", 2);
  call.inputs.push_back({"scalar", Number(2)});
  Feed(call, "x", {FromDoubles(kF16, {3}, {0, 1, 3}), FromDoubles(kF16, {1}, {-1})});
  const std::vector<Tensor> y = Outputs(call);
  EXPECT_TRUE(SameBytes(y[0], FromDoubles(kF16, {3}, {1, 2, 8})));
  EXPECT_TRUE(SameBytes(y[1], FromDoubles(kF16, {1}, {0.5})));
}

TEST(Foreach, ThreeLists) {
  const auto one = [](double value) {
    return std::vector<Tensor>{Number(value), Number(value + 1)};
  };
  const auto run = [&](const std::string& type, const Tensor& numbers) {
    OpCall call = ListCall(type, 2);
    Feed(call, "x1", one(1));
    Feed(call, "x2", one(6));
    Feed(call, "x3", one(2));
    call.inputs.push_back({type.ends_with("Scalar") ? "scalar" : "scalars", numbers});
    std::vector<double> result;
    for (const Tensor& y : Outputs(call)) result.push_back(ToDoubles(y)[0]);
    return result;
  };
  const Tensor each = FromDoubles(kF32, {2}, {2, 3});
  EXPECT_EQ(run("ForeachAddcmulScalar", Number(2)), (std::vector<double>{1 + 2 * 12, 2 + 2 * 21}));
  EXPECT_EQ(run("ForeachAddcmulScalarList", each), (std::vector<double>{1 + 2 * 12, 2 + 3 * 21}));
  EXPECT_EQ(run("ForeachAddcmulList", each), (std::vector<double>{1 + 2 * 12, 2 + 3 * 21}));
  EXPECT_EQ(run("ForeachAddcdivScalar", Number(0.5)),
            (std::vector<double>{2.5, static_cast<float>(2 + 3.5 / 3)}));
  EXPECT_EQ(run("ForeachAddcdivScalarList", each)[0], 7);
  EXPECT_EQ(run("ForeachAddcdivList", each)[1], 9);
}

TEST(Foreach, LerpGoesBetweenLists) {
  for (const char* type : {"ForeachLerpScalar", "ForeachLerpList"}) {
    OpCall call = ListCall(type, 1);
    Feed(call, "x1", {FromDoubles(kF32, {2}, {1, 8})});
    Feed(call, "x2", {FromDoubles(kF32, {2}, {5, 0})});
    call.inputs.push_back({"weight", Number(0.25)});
    EXPECT_EQ(ToDoubles(Outputs(call)[0]), (std::vector<double>{2, 6}));
  }
}

TEST(Foreach, NormOfEachTensor) {
  const std::vector<Tensor> x = {FromDoubles(kF32, {2, 2}, {3, 0, -4, 0}),
                                 FromDoubles(kF32, {1}, {-2})};
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<double, std::vector<double>> cases[] = {
      {2, {5, 2}}, {1, {7, 2}}, {0, {2, 1}}, {infinity, {4, 2}}, {-infinity, {0, 2}}};
  for (const auto& [p, expected] : cases) {
    OpCall call = ListCall("ForeachNorm", 2);
    Feed(call, "x", x);
    call.inputs.push_back({"scalar", Number(p)});
    const std::vector<Tensor> y = Outputs(call);
    EXPECT_EQ(y[0].shape(), Shape());
    EXPECT_EQ(ToDoubles(y[0]), std::vector<double>{expected[0]}) << p;
    EXPECT_EQ(ToDoubles(y[1]), std::vector<double>{expected[1]}) << p;
  }
}

TEST(Foreach, RoundsByMode) {
  const std::vector<double> x = {-2.5, -0.75, 0.5, 1.5, 2.25};
  const std::vector<std::vector<double>> by_mode = {{-2, -1, 0, 2, 2},
                                                    {-3, -1, 0, 1, 2},
                                                    {-2, 0, 1, 2, 3},
                                                    {-3, -1, 1, 2, 2},
                                                    {-2, 0, 0, 1, 2},
                                                    {-3, -1, 1, 1, 3},
                                                    {-0.5, -0.75, 0.5, 0.5, 0.25}};
  for (int mode = 1; mode <= 7; ++mode) {
    OpCall call = ListCall("ForeachRoundOffNumber", 1);
    Feed(call, "x", {FromDoubles(kF16, {5}, x)});
    call.inputs.push_back(
        {"roundMode", Make<int8_t>(DataType::kInt8, {1}, {static_cast<int8_t>(mode)})});
    EXPECT_EQ(ToDoubles(Outputs(call)[0]), by_mode[static_cast<size_t>(mode - 1)]) << mode;
  }
}

TEST(Foreach, RefusesListsThatDoNotFit) {
  OpCall call = ListCall("ForeachMulList", 2);
  Feed(call, "x1", {Number(1), Number(2)});
  Feed(call, "x2", {Number(1)});
  ExpectFails(call, Code::kInvalidArgument, {"\"x2\" has 1 entries, the list has 2"});
  call = ListCall("ForeachAbs", 3);
  Feed(call, "x", {Number(1), Number(2)});
  ExpectFails(call, Code::kCorrupt, {"3 outputs", "2 tensors"});
  call = ListCall("ForeachMulScalar", 1);
  Feed(call, "x", {Make<int32_t>(DataType::kInt32, {1}, {1})});
  call.inputs.push_back({"scalar", Number(0.5)});
  ExpectFails(call, Code::kUnsupported, {"entry 0 is int32[1]", "float32"});
  call.inputs.back().value = FromDoubles(kF32, {2}, {1, 2});
  ExpectFails(call, Code::kInvalidArgument, {"\"scalar\" has 2 entries"});
}

// The forms that update their first list give what the other forms return.
void ExpectSameInBothForms(const Operator& op, const Shapes& shapes) {
  const std::string updating(op.schema.type), plain = updating.substr(0, updating.size() - 7);
  OpCall call = ListCall(updating, 0);
  for (size_t i = 0; i < op.schema.inputs.size(); ++i) {
    const std::string port(op.schema.inputs[i].name);
    if (op.schema.inputs[i].kind == PortKind::kDynamic) {
      Feed(call, port, List(kF16, 1 + 4 * static_cast<double>(i), shapes));
    } else {
      call.inputs.push_back(
          {port, port == "scalars" ? FromDoubles(kF32, {3}, {0.5, 2, 0.25}) : Number(0.5)});
    }
  }
  const std::vector<Tensor> updated = Outputs(call);
  ASSERT_EQ(updated.size(), 3u) << updating;
  call.type = plain;
  call.outputs = 3;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor expected = plain == "ForeachZero" ? Scaled(updated[i], 0, 0) : Outputs(call)[i];
    EXPECT_TRUE(SameBytes(updated[i], expected)) << updating << " " << i;
  }
}

TEST(Foreach, InPlaceMembersAreThoseOfTheOtherForm) {
  int seen = 0;
  for (const std::string_view name : BuiltinOps().Types()) {
    if (!name.starts_with("Foreach") || !name.ends_with("Inplace")) continue;
    const Operator& op = *BuiltinOps().Find(name);
    EXPECT_TRUE(op.schema.outputs.empty()) << name;
    for (const Shapes& shapes : {kSeveral, kOne}) ExpectSameInBothForms(op, shapes);
    ++seen;
  }
  EXPECT_EQ(seen, 42);
}

TEST(Foreach, InPlaceNeedsRoomForTheResult) {
  OpCall call = ListCall("ForeachMulListInplace", 0);
  Feed(call, "x1", {Number(1)});
  Feed(call, "x2", {FromDoubles(kF32, {2}, {1, 2})});
  ExpectFails(call, Code::kInvalidArgument,
              {"entry 0 is float32[1]", "cannot hold a result of float32[2]"});
  call.outputs = 1;
  ExpectFails(call, Code::kCorrupt, {"1 outputs", "1 tensors, which it updates"});
}

TEST(Foreach, BinaryOpByCode) {
  const auto ints = [](const std::vector<int32_t>& values) {
    return Make<int32_t>(DataType::kInt32, {static_cast<int64_t>(values.size())}, values);
  };
  const std::vector<std::vector<double>> floats = {{3, 6}, {-1, 2}, {2, 8}, {0.5, 2}};
  const std::vector<std::vector<double>> integers = {{-5, 7}, {-9, 7}, {-14, 0}, {-3, 0}};
  for (int code = 0; code < 4; ++code) {
    OpCall call = ListCall("ForeachBinaryOp", 2);
    Feed(call, "x1", {FromDoubles(kF16, {2}, {1, 4}), ints({-7, 7})});
    Feed(call, "x2", {FromDoubles(kF16, {2}, {2, 2}), ints({2, 0})});
    call.attrs = {{"op_code", AttrValue::Int(code)}};
    const std::vector<Tensor> y = Outputs(call);
    EXPECT_EQ(ToDoubles(y[0]), floats[static_cast<size_t>(code)]) << code;
    EXPECT_EQ(ToDoubles(y[1]), integers[static_cast<size_t>(code)]) << code;
  }
  OpCall call = ListCall("ForeachBinaryOp", 1);
  Feed(call, "x1", {Number(1)});
  Feed(call, "x2", {Number(1)});
  call.attrs = {{"op_code", AttrValue::Int(4)}};
  ExpectFails(call, Code::kInvalidArgument, {"op_code is 4"});
}

TEST(Foreach, UnscalesGradientsAndSeesWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DataType dtype : {kF32, kF16, DataType::kBfloat16}) {
    for (const bool finite : {true, false}) {
      OpCall call = ListCall("ForeachNonFiniteCheckAndUnscale", 0);
      Feed(call, "scaled_grads",
           {FromDoubles(dtype, {2, 2}, {8, -4, 2, 0}),
            FromDoubles(dtype, {3}, {1, finite ? 16 : -infinity, 6}), FromDoubles(dtype, {}, {4})});
      call.inputs.push_back({"found_inf", Number(0)});
      call.inputs.push_back({"inv_scale", Number(0.25)});
      const std::vector<Tensor> updated = Outputs(call);
      ASSERT_EQ(updated.size(), 4u);
      EXPECT_EQ(ToDoubles(updated[0]), (std::vector<double>{2, -1, 0.5, 0}));
      EXPECT_EQ(ToDoubles(updated[1]), (std::vector<double>{0.25, finite ? 4 : -infinity, 1.5}));
      EXPECT_EQ(ToDoubles(updated[2]), std::vector<double>{1});
      EXPECT_EQ(ToDoubles(updated[3]), std::vector<double>{finite ? 0.0 : 1.0});
    }
  }
  OpCall call = ListCall("ForeachNonFiniteCheckAndUnscale", 0);
  Feed(call, "scaled_grads", {Number(1, DataType::kDouble)});
  call.inputs.push_back({"found_inf", Number(0)});
  call.inputs.push_back({"inv_scale", Number(0.25)});
  ExpectFails(call, Code::kUnsupported, {"entry 0", "float64"});
  call.inputs[0].value = Number(1);
  call.inputs[1].value = Number(1, kF16);
  ExpectFails(call, Code::kInvalidArgument, {"found_inf is float16"});
}

}  // namespace
}  // namespace npumesh
