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

}  // namespace
}  // namespace npumesh
