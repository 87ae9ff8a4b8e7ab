// The calls of operator tests, once more as static kernels.
//
// With NPUMESH_TEST_STATIC_KERNELS every call that a test program ran, of an operator that says how
// it is computed as loops, is compiled when the program ends, all of them together, and has to give
// the outputs that the operator's own kernel gave: the same bits, a NaN for a NaN. The last line of
// the program says how many calls there were. tests/operator_static_kernels.py runs all programs.
//
// An object library, linked into every program below tests/unit/ops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/static_kernel/static_kernels.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/op_test.h"

namespace npumesh::op_test {
namespace {

// A call with all that it refers to.
struct StaticCall {
  std::string who;  // "Suite.Test: RmsNorm"
  Operator op;
  OpCall call;
  Node node;
  std::optional<OpContext> context;
  std::vector<Tensor> expected;
  LoopProgram program;
  std::vector<int> ports;  // of the outputs of the program
};

// The call as a program, on the rows of its output or of its first input; nullopt: it has none.
std::optional<LoopProgram> ProgramOf(const StaticCall& call, std::vector<int>* ports) {
  const OpContext& op = *call.context;
  for (const Shape& space : {op.out(0).shape, op.slots() > 0 ? op.in(0).shape : Shape()}) {
    if (space.elements() == 0) continue;
    LoopBuilder loop(space);
    std::vector<int> tensors(static_cast<size_t>(op.slots()));
    for (int slot = 0; slot < op.slots(); ++slot) tensors[static_cast<size_t>(slot)] = slot;
    loop.Begin(op, space, std::vector<LoopValue>(tensors.size(), -1), tensors);
    call.op.loop(op, loop);
    if (loop.result() < 0) continue;
    ports->clear();
    for (int port = 0; port < op.outputs(); ++port) {
      if (loop.result(port) < 0) continue;
      loop.Write(loop.result(port), op.out(port).dtype);
      ports->push_back(port);
    }
    LoopProgram program = loop.Finish();
    program.Collapse();
    return program;
  }
  return std::nullopt;
}

double ElementOf(const Tensor& tensor, size_t i) {
  double value = 0;
  const auto width = static_cast<size_t>(BitsOf(tensor.dtype())) / 8;
  FindConvert(tensor.dtype(), DataType::kDouble)(tensor.data() + i * width, &value, 1);
  return value;
}

bool Agree(const Tensor& seen, const Tensor& expected, size_t i) {
  const auto width = static_cast<size_t>(BitsOf(expected.dtype())) / 8;
  if (std::memcmp(seen.data() + i * width, expected.data() + i * width, width) == 0) return true;
  return std::isnan(ElementOf(seen, i)) && std::isnan(ElementOf(expected, i));
}

void ExpectAgreement(const StaticCall& call, int port, const Tensor& seen) {
  const Tensor& expected = call.expected[static_cast<size_t>(port)];
  const auto count = static_cast<size_t>(expected.type().shape.elements());
  for (size_t i = 0; i < count; ++i) {
    if (Agree(seen, expected, i)) continue;
    ADD_FAILURE() << call.who << ": output " << port << " element " << i
                  << " of its static kernel is " << ElementOf(seen, i) << ", expected "
                  << ElementOf(expected, i) << "\n"
                  << call.program.ToString();
    return;
  }
}

class StaticCalls final : public testing::Environment, public CallListener {
 public:
  void Ran(const Operator& op, const OpContext& context, const OpCall& call,
           const std::vector<Tensor>& outputs) override {
    if (op.loop == nullptr || !op.in_place.empty() || context.outputs() == 0) return;
    auto kept = std::make_unique<StaticCall>();
    kept->op = op;
    kept->call = call;
    kept->node = MakeNode(kept->op, kept->call);
    Result<OpContext> again = BindAndInfer(kept->op, kept->call, kept->node);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    kept->context.emplace(std::move(*again));
    std::optional<LoopProgram> program = ProgramOf(*kept, &kept->ports);
    if (!program) return;
    kept->program = std::move(*program);
    kept->expected = outputs;
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    kept->who = fmt::format("{}.{}: {}", test->test_suite_name(), test->name(), call.type);
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(kept));
  }

  void TearDown() override {
    call_listeners().clear();
    std::vector<StaticRegion> regions;
    std::vector<StaticOperator> operators;
    for (const auto& call : calls_) {
      operators.push_back({&call->op, &*call->context});
      regions.push_back({call->program, {operators.back()}});
    }
    if (!regions.empty()) RunAll(regions, operators);
    fmt::print("static kernels: {} calls\n", calls_.size());
  }

 private:
  void RunAll(const std::vector<StaticRegion>& regions,
              const std::vector<StaticOperator>& operators) {
    const TemporaryFolder folder;
    StaticKernelOptions options;
    options.build_dir = folder.path();
    options.store_root = folder.Path("store");
    Result<std::unique_ptr<StaticKernels>> source = StaticKernels::Create(std::move(options));
    ASSERT_TRUE(source.ok()) << source.status().ToString();
    const std::vector<StaticKernel> kernels = (*source)->Make(regions, operators);
    for (size_t i = 0; i < kernels.size(); ++i) {
      ASSERT_NE(kernels[i].entry, nullptr) << calls_[i]->who << " could not be built";
      RunOne(*calls_[i], kernels[i]);
    }
  }

  static void RunOne(const StaticCall& call, const StaticKernel& kernel) {
    const OpContext& op = *call.context;
    std::vector<const void*> in(static_cast<size_t>(op.slots()), nullptr);
    for (int slot = 0; slot < op.slots(); ++slot) {
      if (!op.has(slot)) continue;
      const OpInput& input = call.call.inputs[static_cast<size_t>(op.input_index(slot))];
      in[static_cast<size_t>(slot)] = input.value.data();
    }
    std::vector<Tensor> outputs;
    std::vector<void*> out;
    for (const int port : call.ports) {
      outputs.push_back(Tensor::Allocate(op.out(port)));
      out.push_back(outputs.back().mutable_data());
    }
    GuardedBytes scratch(kernel.scratch_bytes);
    kernel.entry(in.data(), out.data(), scratch.data());
    EXPECT_TRUE(scratch.guard_is_whole()) << call.who << " wrote behind its scratch memory";
    for (size_t i = 0; i < outputs.size(); ++i) ExpectAgreement(call, call.ports[i], outputs[i]);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<StaticCall>> calls_;
};

// Before main: the environment belongs to GoogleTest.
const bool kListens = [] {
  if (std::getenv("NPUMESH_TEST_STATIC_KERNELS") == nullptr) return false;
  auto* const calls = new StaticCalls;
  testing::AddGlobalTestEnvironment(calls);
  call_listeners().push_back(calls);
  return true;
}();

}  // namespace
}  // namespace npumesh::op_test
