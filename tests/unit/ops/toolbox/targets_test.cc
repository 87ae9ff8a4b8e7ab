// Every instruction set of this machine gives the same bits, wherever an element lies in a block.
#include "hwy/targets.h"
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

class TargetsTest : public testing::Test {
 protected:
  ~TargetsTest() override { Use(0); }

  // Lets Highway believe that the machine has only `targets`; 0: what it really has.
  static void Use(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

const char* const kUnary[] = {"Neg",     "Abs",   "Square", "Sign",     "Sqrt",  "Rsqrt",
                              "Floor",   "Ceil",  "Exp",    "Expm1",    "Log",   "Log1p",
                              "Sin",     "Cos",   "Erf",    "Relu",     "Tanh",  "Gelu",
                              "Sigmoid", "Swish", "GeluV2", "FastGelu", "SwiGlu"};
const char* const kBinary[] = {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "FloorDiv"};

bool SameNumbers(const Tensor& a, const Tensor& b) {
  return WithStorage(a.dtype(), [&](auto tag) {
    const auto x = a.as<decltype(tag)>();
    const auto y = b.as<decltype(tag)>();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](auto p, auto q) { return Same(p, q); });
  });
}

template <typename T>
std::vector<OpCall> Calls(DataType dtype) {
  std::vector<T> x = AnyBits<T>(3000, 31);
  if constexpr (std::is_same_v<T, float>) {
    for (size_t i = 1500; i < x.size(); ++i) x[i] = static_cast<float>(i % 400) * 0.37f - 70.0f;
    const std::vector<float> special = SpecialFloats();
    std::copy(special.begin(), special.end(), x.begin() + 700);
  }
  const Tensor a = Make<T>(dtype, {3000}, x);
  const Tensor b = Make<T>(dtype, {3000}, AnyBits<T>(3000, 32));
  std::vector<OpCall> calls;
  for (const char* type : kUnary) calls.push_back({.type = type, .inputs = {{"x", a}}});
  for (const char* type : kBinary)
    calls.push_back({.type = type, .inputs = {{"x1", a}, {"x2", b}}});
  return calls;
}

TEST_F(TargetsTest, AllTargetsGiveTheSameBits) {
  std::vector<OpCall> calls = Calls<float>(kF32);
  for (OpCall& call : Calls<Float16>(kF16)) calls.push_back(std::move(call));
  for (OpCall& call : Calls<Bfloat16>(kBf16)) calls.push_back(std::move(call));
  std::vector<Tensor> best;
  for (const OpCall& call : calls) best.push_back(RunOne(call));
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    Use(target);
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_TRUE(SameNumbers(RunOne(calls[i]), best[i]))
          << calls[i].type << " " << Name(best[i].dtype()) << " on " << hwy::TargetName(target);
    }
    Use(0);
  }
}

TEST_F(TargetsTest, AnElementDoesNotDependOnItsPlace) {
  for (const char* type : kUnary) {
    if (std::string_view(type) == "SwiGlu") continue;
    std::vector<float> x = AnyBits<float>(67, 33);
    const Tensor whole = RunOne({.type = type, .inputs = {{"x", Make<float>(kF32, {67}, x)}}});
    for (size_t i = 0; i < x.size(); ++i) {
      const Tensor single =
          RunOne({.type = type, .inputs = {{"x", Make<float>(kF32, {1}, {x[i]})}}});
      EXPECT_TRUE(Same(single.as<float>()[0], whole.as<float>()[i])) << type << "(" << x[i] << ")";
    }
  }
}

}  // namespace
}  // namespace npumesh
