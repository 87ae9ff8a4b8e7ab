// Harness for tests of single operators: builds a node from the schema, infers, makes the kernel,
// runs it and returns the outputs.
//
//   Result<std::vector<Tensor>> out = RunOp({.type = "Add", .inputs = {{"x1", a}, {"x2", b}}});
//
// Beyond running, every call checks what all kernels promise: outputs are written completely and
// nothing behind them is touched, inputs are left alone (unless the operator works in place), an
// operator marked `elementwise` gives the same bytes when its output lies over an input, and a
// second run of the same kernel repeats the first. Inference with unknown dimensions and ranks in
// place of the call's claims nothing that is not so (op_unknown.h). Sizes are those that the
// operator's axes say (graph/ops/core/axes.h).
//
// Inputs that an operator updates without an output port follow the outputs, in the order of
// Operator::in_place.
//
// A call that fits into a line is a case of tests/operators.
#ifndef NPUMESH_TESTS_UNIT_OP_TEST_H_
#define NPUMESH_TESTS_UNIT_OP_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/values/thread_parts.h"
#include "tests/unit/op_evidence.h"

namespace npumesh {

// Whether infer and make_kernel see the value of an input.
enum class Known : uint8_t {
  kIfNeeded,  // when the operator lists the port in `value_inputs`
  kYes,
  kNo,
};

struct OpInput {
  std::string port;  // "x0", "x1" ... for the elements of a dynamic input "x"
  Tensor value;
  Known known = Known::kIfNeeded;
};

struct OpCall {
  std::string type;
  std::vector<OpInput> inputs;
  std::vector<std::pair<std::string, AttrValue>> attrs = {};
  int outputs = 0;  // 0: one for each port of the schema
  GroupProvider* groups = nullptr;
  int threads = 1;
};

// A tensor from a list: Make<float>(DataType::kFloat, {2, 2}, {1, 2, 3, 4}). T is the storage type.
template <typename T>
Tensor Make(DataType dtype, Shape shape, const std::vector<T>& values) {
  EXPECT_EQ(static_cast<size_t>(shape.elements()), values.size()) << shape.ToString();
  return Tensor::FromVector<T>({dtype, std::move(shape)}, values);
}
inline Tensor MakeInts(const std::vector<int64_t>& values) {
  return Make<int64_t>(DataType::kInt64, {static_cast<int64_t>(values.size())}, values);
}

// Hears of every call that ran; see static_calls.cc and float64_calls.cc.
class CallListener {
 public:
  virtual ~CallListener() = default;
  // From any thread: ranks are threads.
  virtual void Ran(const Operator& op, const OpContext& context, const OpCall& call,
                   const std::vector<Tensor>& outputs) = 0;
};
// Changed before and after the tests alone.
std::vector<CallListener*>& call_listeners();

bool SameBytes(const Tensor& a, const Tensor& b);

namespace op_test {

Node MakeNode(const Operator& op, const OpCall& call);

// The node's context with types, values and inferred outputs.
Result<OpContext> BindAndInfer(const Operator& op, const OpCall& call, const Node& node);

// Bytes with a guard behind them, all filled with a pattern that no kernel writes by chance.
class GuardedBytes {
 public:
  explicit GuardedBytes(uint64_t bytes) : bytes_(bytes), room_(kLine + bytes + kGuard, kPattern) {
    const auto address = reinterpret_cast<uintptr_t>(room_.data());
    data_ = room_.data() + (kLine - address % kLine) % kLine;
  }
  GuardedBytes(const std::byte* copy, uint64_t bytes) : GuardedBytes(bytes) {
    if (bytes > 0) std::memcpy(data_, copy, bytes);
  }

  std::byte* data() { return data_; }
  bool guard_is_whole() const {
    return std::all_of(data_ + bytes_, data_ + bytes_ + kGuard,
                       [](std::byte b) { return b == kPattern; });
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kGuard = 128;
  static constexpr std::byte kPattern{0xa5};

  uint64_t bytes_;
  std::vector<std::byte> room_;
  std::byte* data_;
};

// One run. `over`: input slot whose storage output 0 takes over, -1 none.
Result<std::vector<Tensor>> RunOnce(const Operator& op, const OpCall& call,
                                    const OpContext& context, Kernel* kernel, int over);

}  // namespace op_test

// Output types only.
Result<std::vector<TensorType>> InferOp(const OpRegistry& registry, const OpCall& call);

// The outputs, or the first error of binding, inference, kernel making or running.
Result<std::vector<Tensor>> RunOp(const OpRegistry& registry, const OpCall& call);

// The single output of a call that must succeed.
Tensor RunOne(const OpRegistry& registry, const OpCall& call);

// The error of a call that must fail.
Status FailOf(const OpRegistry& registry, const OpCall& call);

// KernelChoice::ToString of the kernel that the call makes, which is not run.
std::string ChoiceOf(const OpRegistry& registry, const OpCall& call);

// The message of a call that must fail with `code` names the node and contains every one of
// `words`.
void ExpectFails(const OpRegistry& registry, const OpCall& call, Code code,
                 const std::vector<std::string>& words);

// The same of the operators that npumesh brings with it.
Result<std::vector<TensorType>> InferOp(const OpCall& call);
Result<std::vector<Tensor>> RunOp(const OpCall& call);
Tensor RunOne(const OpCall& call);
Status FailOf(const OpCall& call);
std::string ChoiceOf(const OpCall& call);
void ExpectFails(const OpCall& call, Code code, const std::vector<std::string>& words);

// The outputs of a call that must succeed. After a failure eight empty tensors, so that a test that
// takes one of them by its number goes on.
std::vector<Tensor> Results(const OpCall& call);

template <typename T>
std::vector<T> ValuesOf(const Tensor& tensor) {
  const auto span = tensor.as<T>();
  return {span.begin(), span.end()};
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_TEST_H_
