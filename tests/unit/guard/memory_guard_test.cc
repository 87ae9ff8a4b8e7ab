// A guard over runs of one rank: operators that write one byte somewhere, with the byte known.
#include "graph/guard/memory_guard.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"
#include "graph/session/session_config.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What the operator Stray does after y = x; x and target are its inputs, target optional. `old` is
// what the last element of y was before.
using Mistake = std::function<void(const KernelArgs& args, int64_t elements, int64_t old)>;

class StrayKernel final : public Kernel {
 public:
  StrayKernel(const Mistake& mistake, int64_t elements) : mistake_(mistake), elements_(elements) {}
  uint64_t scratch_bytes() const override { return 64; }
  Status Run(const KernelArgs& args) override {
    const auto* x = static_cast<const int64_t*>(args.in[0]);
    auto* y = static_cast<int64_t*>(args.out[0]);
    const int64_t old = y[elements_ - 1];
    std::copy_n(x, elements_, y);
    mistake_(args, elements_, old);
    return Status();
  }

 private:
  const Mistake& mistake_;
  int64_t elements_;
};

Operator Stray(const Mistake& mistake, bool elementwise) {
  return {.schema = {"Stray", {{"x"}, {"target", PortKind::kOptional}}, {{"y"}}, {}},
          .infer =
              [](OpContext& op) {
                op.set_out(0, op.in("x"));
                return Status();
              },
          .make_kernel = [&mistake](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
            return std::unique_ptr<Kernel>(
                std::make_unique<StrayKernel>(mistake, op.in("x").shape.elements()));
          },
          .axes = elementwise ? Axes("[..]") : Axes()};
}

struct Guarded {
  Status status;
  uint64_t steps = 0;
  uint64_t repeated = 0;
};

// Runs `model` twice under a guard. `trusted`: so is Stray.
Guarded RunGuarded(const Model& model, const std::vector<Tensor>& inputs, const Mistake& mistake,
                   bool trusted, bool elementwise = false) {
  OpRegistry operators = TinyOps();
  const OpRegistry tiny = TinyOps();
  operators.Add(Stray(mistake, elementwise));
  MemoryGuard guard(operators, trusted ? operators : tiny);
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  Guarded run;
  run.status = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    SessionOptions options = DefaultSessionOptions();
    options.registry = &operators;
    options.compile.margin = kGuardMargin;
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
    for (int step = 0; step < 2; ++step) {
      NPUMESH_RETURN_IF_ERROR(session->Run(inputs, &guard).status());
    }
    return Status();
  })[0];
  run.steps = guard.steps();
  run.repeated = guard.repeated();
  return run;
}

void Flip(const void* at, int64_t byte) {
  auto* const bytes = static_cast<unsigned char*>(const_cast<void*>(at));
  bytes[byte] = static_cast<unsigned char>(~bytes[byte]);
}

// A chain of `before` + 1 + `after` operators on int64[n], Stray in its middle; sums of earlier
// values keep tensors alive across it.
Model Chain(int64_t n, int before, int after) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({n}));
  std::vector<Value> values = {x};
  const auto add = [&](int i) {
    const Value other = values[values.size() / 2];
    values.push_back(i % 2 == 0 ? g.Op("Plus", {{"x1", values.back()}, {"x2", other}})
                                : g.Op("Move", {{"x", values.back()}}));
  };
  for (int i = 0; i < before; ++i) add(i);
  values.push_back(g.Op("Stray", {{"x", values.back()}}, {}, "stray"));
  for (int i = 0; i < after; ++i) add(i);
  g.Output({values.back()});
  return *g.Build();
}

// As RunGuarded, under what a session guards by itself.
Status RunUnguarded(const Model& model, const std::vector<Tensor>& inputs, const Mistake& mistake) {
  OpRegistry operators = TinyOps();
  operators.Add(Stray(mistake, false));
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    SessionOptions options = DefaultSessionOptions();
    options.registry = &operators;
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
    for (int step = 0; step < 2; ++step) {
      NPUMESH_RETURN_IF_ERROR(session->Run(inputs).status());
    }
    return Status();
  })[0];
}

// Without --guard: an operator that is not built in wrote past its output, and the run said
// "0 NaN".
TEST(EdgeGuard, NamesHowFarPastAnOutputAnOperatorWrote) {
  std::mt19937 random(6);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int found = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t n = draw(1, 300);
    const int64_t bytes = n * 8;
    const int64_t byte = draw(0, bytes + 3000);
    const Model model = Chain(n, static_cast<int>(draw(0, 4)), static_cast<int>(draw(0, 4)));
    const std::vector<Tensor> inputs = {
        IntTensor(std::vector<int64_t>(static_cast<size_t>(n), draw(-9, 9)))};
    const Status status = RunUnguarded(
        model, inputs, [&](const KernelArgs& args, int64_t, int64_t) { Flip(args.out[0], byte); });
    ASSERT_EQ(status.code(), byte < bytes ? Code::kOk : Code::kCorrupt)
        << "byte " << byte << " of " << bytes << ": " << status.ToString();
    if (byte < bytes) continue;
    ++found;
    EXPECT_THAT(status.message(),
                HasSubstr("node \"stray\" (Stray): it wrote past the end of output 0 (int64[" +
                          std::to_string(n) + "], " + std::to_string(bytes) + " bytes), " +
                          std::to_string(byte - bytes + 1) + " bytes too far"));
  }
  EXPECT_GT(found, 20);
}

TEST(MemoryGuard, NamesEachByteOutsideOfAnOutputAndNoneInside) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int found = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t n = draw(1, 300);
    const int64_t bytes = n * 8;
    const int64_t byte = draw(-1500, bytes + 1500);
    const Model model = Chain(n, static_cast<int>(draw(0, 4)), static_cast<int>(draw(0, 4)));
    const std::vector<Tensor> inputs = {
        IntTensor(std::vector<int64_t>(static_cast<size_t>(n), draw(-9, 9)))};
    const Guarded run = RunGuarded(
        model, inputs, [&](const KernelArgs& args, int64_t, int64_t) { Flip(args.out[0], byte); },
        true);
    const bool outside = byte < 0 || byte >= bytes;
    ASSERT_EQ(run.status.code(), outside ? Code::kCorrupt : Code::kOk)
        << "byte " << byte << " of " << bytes << ": " << run.status.ToString();
    if (!outside) continue;
    ++found;
    EXPECT_THAT(run.status.message(),
                AllOf(HasSubstr("node \"stray\" (Stray): step "),
                      HasSubstr("it wrote 1 byte outside of its outputs: byte " +
                                std::to_string(byte) + " of output 0 (int64[" + std::to_string(n) +
                                "], " + std::to_string(bytes) + " bytes)")));
  }
  EXPECT_GT(found, 20);
}

TEST(MemoryGuard, OneBytePastTheEndIsEnough) {
  const auto past = [](const KernelArgs& args, int64_t n, int64_t) { Flip(args.out[0], n * 8); };
  const Guarded run = RunGuarded(Chain(2, 1, 1), {IntTensor({3, 4})}, past, true);
  EXPECT_EQ(run.status.message(),
            "node \"stray\" (Stray): step 1 of 3: it wrote 1 byte outside of its outputs: byte 16 "
            "of output 0 (int64[2], 16 bytes), which is memory of no tensor (a5 became 5a)");
}

TEST(MemoryGuard, AFarWriteIsFoundInTheTensorItHits) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({4}));
  const Value other = g.Op("Plus", {{"x1", x}, {"x2", x}}, {}, "other");
  const Value stray = g.Op("Stray", {{"x", x}, {"target", other}}, {}, "stray");
  g.Output({g.Op("Plus", {{"x1", stray}, {"x2", other}}, {}, "sum")});
  const auto trample = [](const KernelArgs& args, int64_t, int64_t) { Flip(args.in[1], 9); };
  const Guarded run = RunGuarded(*g.Build(), {IntTensor({1, 2, 3, 4})}, trample, true);
  EXPECT_THAT(run.status.message(),
              HasSubstr("byte 9 of input 1 (int64[4], 32 bytes), which is byte 9 of tensor "
                        "\"other:0\" ("));
}

TEST(MemoryGuard, InputsOfTheGraphAreKept) {
  const auto spoil = [](const KernelArgs& args, int64_t, int64_t) { Flip(args.in[0], 5); };
  const Guarded run = RunGuarded(Chain(2, 0, 1), {IntTensor({3, 4})}, spoil, true);
  EXPECT_THAT(run.status.message(), HasSubstr("which is byte 5 of input \"x\" of the graph ("));
}

TEST(MemoryGuard, WeightsAreKeptByOperatorsThatAreNotTrusted) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({2}));
  const Value w = g.Const("w", IntTensor({5, 6}));
  g.Output({g.Op("Stray", {{"x", x}, {"target", w}}, {}, "stray")});
  const auto spoil = [](const KernelArgs& args, int64_t, int64_t) { Flip(args.in[1], 3); };
  const Model model = *g.Build();
  EXPECT_THAT(RunGuarded(model, {IntTensor({3, 4})}, spoil, false).status.message(),
              HasSubstr("which is byte 3 of constant \"w\" ("));
}

TEST(MemoryGuard, ScratchThatWasNotAskedFor) {
  const auto past = [](const KernelArgs& args, int64_t, int64_t) { Flip(args.scratch, 64); };
  const Guarded run = RunGuarded(Chain(2, 1, 1), {IntTensor({3, 4})}, past, true);
  EXPECT_THAT(run.status.message(),
              HasSubstr("byte 64 of scratch memory, of which it asked for 64 "));
}

TEST(MemoryGuard, WhatAnOperatorDoesNotWriteIsNamed) {
  const auto leave = [](const KernelArgs& args, int64_t n, int64_t old) {
    static_cast<int64_t*>(args.out[0])[n - 1] = old;
  };
  const Guarded run = RunGuarded(Chain(2, 1, 1), {IntTensor({3, 4})}, leave, false);
  EXPECT_THAT(run.status.message(), HasSubstr("it does not write element 1 of output 0"));
}

TEST(MemoryGuard, ScratchThatIsReadBeforeItIsWritten) {
  const auto read = [](const KernelArgs& args, int64_t, int64_t) {
    static_cast<int64_t*>(args.out[0])[0] += *static_cast<const int64_t*>(args.scratch);
  };
  for (const bool elementwise : {false, true}) {  // true: y may lie where x lies
    const Guarded run = RunGuarded(Chain(2, 2, 1), {IntTensor({3, 4})}, read, false, elementwise);
    EXPECT_THAT(run.status.message(),
                HasSubstr("element 0 of output 0 (int64[2], 16 bytes) depends on what scratch "
                          "memory or outputs held before the step"));
  }
}

TEST(MemoryGuard, AnOperatorThatIsNotSteady) {
  int64_t runs = 0;
  const auto count = [&](const KernelArgs& args, int64_t, int64_t) {
    static_cast<int64_t*>(args.out[0])[0] += ++runs;
  };
  EXPECT_THAT(RunGuarded(Chain(2, 1, 1), {IntTensor({3, 4})}, count, false).status.message(),
              HasSubstr("it gives other outputs when it runs again with the same inputs"));
}

TEST(MemoryGuard, OperatorsWithoutAMistakePass) {
  const auto nothing = [](const KernelArgs&, int64_t, int64_t) {};
  for (const bool elementwise : {false, true}) {
    const Guarded run =
        RunGuarded(Chain(7, 3, 3), {IntTensor({1, 2, 3, 4, 5, 6, 7})}, nothing, false, elementwise);
    EXPECT_TRUE(run.status.ok()) << run.status.ToString();
    EXPECT_EQ(run.steps, 2 * 7u);
    EXPECT_EQ(run.repeated, 2u);
  }
}

// A list of inputs that the operator updates and shows at no port.
TEST(MemoryGuard, WhatAnOperatorMayUpdateIsNotKept) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({2}));
  const Value ref = g.RefData("ref", IntType({2}));
  g.Op("AccumulateAll", {{"value", x}, {"refs0", ref}}, {}, "all", 0);
  g.Output({g.Op("Move", {{"x", x}})});
  const auto nothing = [](const KernelArgs&, int64_t, int64_t) {};
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Guarded run = RunGuarded(*model, {IntTensor({3, 4}), IntTensor({5, 6})}, nothing, true);
  EXPECT_TRUE(run.status.ok()) << run.status.ToString();
}

}  // namespace
}  // namespace npumesh
