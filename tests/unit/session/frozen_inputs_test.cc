// Frozen parameters: constants from the first run on, packed once, and refused at another address.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/session/npu_backend.h"
#include "tests/unit/onednn_isa.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// y = x * w, with a kernel that packs w when it is a constant, and reads it at each run when not.
class PackingOps {
 public:
  PackingOps() : registry_(TinyOps()) {
    Operator scale;
    scale.schema = {"Scale", {{"x"}, {"w"}}, {{"y"}}, {}};
    scale.infer = [](OpContext& op) {
      op.set_out(0, op.in(0));
      return Status();
    };
    scale.make_kernel = [this](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
      if (op.value(1) == nullptr) return std::unique_ptr<Kernel>(new Reading(op, *this));
      ++packed;
      return std::unique_ptr<Kernel>(new Packed(op));
    };
    registry_.Add(scale);
  }

  const OpRegistry& registry() const { return registry_; }
  int packed = 0;
  int reads = 0;  // of the weight by a kernel that runs

 private:
  static void Multiply(const KernelArgs& args, const int64_t* w, int64_t n) {
    const auto* x = static_cast<const int64_t*>(args.in[0]);
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(args.out[0])[i] = x[i] * w[i];
  }
  struct Reading final : Kernel {
    Reading(const OpContext& op, PackingOps& ops) : n(op.in(0).shape.elements()), ops(ops) {}
    Status Run(const KernelArgs& args) override {
      ++ops.reads;
      Multiply(args, static_cast<const int64_t*>(args.in[1]), n);
      return Status();
    }
    int64_t n;
    PackingOps& ops;
  };
  struct Packed final : Kernel {
    explicit Packed(const OpContext& op)
        : w(op.value(1)->as<int64_t>().begin(), op.value(1)->as<int64_t>().end()) {}
    Status Run(const KernelArgs& args) override {
      Multiply(args, w.data(), static_cast<int64_t>(w.size()));
      return Status();
    }
    bool reads(int slot) const override { return slot != 1; }
    std::vector<int64_t> w;
  };

  OpRegistry registry_;
};

class FrozenInputsTest : public testing::Test {
 protected:
  // y = x * -w, with the parameter between two inputs.
  void ScaleGraph() {
    const Value x = g_.Data("x", IntType({3}));
    const Value w = g_.Data("w", IntType({3}));
    const Value z = g_.Data("z", IntType({-1}));
    const Value minus = g_.Op("Negate", {{"x", w}}, {}, "minus");
    g_.Output({g_.Op("Scale", {{"x", x}, {"w", minus}}), g_.Op("Move", {{"x", z}})});
  }

  SessionOptions Options(bool freeze) const {
    SessionOptions options;
    options.registry = &ops_.registry();
    options.parameters = {1};
    options.freeze_parameters = freeze;
    return options;
  }

  void WithSession(const SessionOptions& options, const std::function<void(Session&)>& body) {
    RunInSession(g_, options, body);
    g_ = GraphBuilder();
  }

  // y of three runs, each with another x.
  static std::vector<int64_t> ThreeRuns(Session& session, const Tensor& w) {
    std::vector<int64_t> all;
    for (int64_t n = 1; n <= 3; ++n) {
      const auto outputs = session.Run({IntTensor({n, 2, 3}), w, IntTensor({n})});
      EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
      if (!outputs.ok()) break;
      for (const int64_t y : IntsIn((*outputs)[0])) all.push_back(y);
      EXPECT_THAT(IntsIn((*outputs)[1]), ElementsAre(n));
    }
    return all;
  }

  PackingOps ops_;
  GraphBuilder g_;
};

TEST_F(FrozenInputsTest, ArePackedOnceAndNeverReadAgain) {
  const Tensor w = IntTensor({10, 20, 30});
  std::vector<int64_t> plain;
  ScaleGraph();
  WithSession(Options(false), [&](Session& session) {
    plain = ThreeRuns(session, w);
    EXPECT_EQ(ops_.packed, 0);
    EXPECT_EQ(ops_.reads, 3);
    EXPECT_EQ(session.stats().input_bytes, 3u * (24 + 24 + 8));
  });
  ScaleGraph();
  WithSession(Options(true), [&](Session& session) {
    EXPECT_EQ(ThreeRuns(session, w), plain);
    EXPECT_EQ(ops_.packed, 1);
    EXPECT_EQ(ops_.reads, 3);  // no more than before
    EXPECT_EQ(session.stats().input_bytes, 3u * (24 + 8));
    EXPECT_EQ(session.stats().run.steps, 3u * 2u);  // what the parameter alone decides is folded
    EXPECT_EQ(session.stats().constant_bytes, 0u);  // the kernel has it
  });
}

TEST_F(FrozenInputsTest, MayBeLeftOutOnceTheyWereGiven) {
  ScaleGraph();
  WithSession(Options(true), [&](Session& session) {
    const Status missing = session.Run({IntTensor({1, 1, 1}), Tensor(), IntTensor({1})}).status();
    EXPECT_EQ(missing.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(missing.message()), HasSubstr("\"w\""));
    const Tensor w = IntTensor({1, 2, 3});
    ASSERT_TRUE(session.Run({IntTensor({1, 1, 1}), w, IntTensor({1})}).ok());
    const auto outputs = session.Run({IntTensor({5, 5, 5}), Tensor(), IntTensor({1})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_THAT(IntsIn((*outputs)[0]), ElementsAre(-5, -10, -15));
  });
}

TEST_F(FrozenInputsTest, AnotherAddressIsRefused) {
  ScaleGraph();
  WithSession(Options(true), [&](Session& session) {
    const Tensor w = IntTensor({1, 2, 3});
    const Tensor elsewhere = IntTensor({1, 2, 3});
    ASSERT_TRUE(session.Run({IntTensor({1, 1, 1}), w, IntTensor({1})}).ok());
    const Status status = session.Run({IntTensor({1, 1, 1}), elsewhere, IntTensor({1})}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("input 1 \"w\": it is frozen"), HasSubstr("expected int64[3] at"),
                      HasSubstr(fmt::format("{}", fmt::ptr(elsewhere.data())))));
    EXPECT_TRUE(session.Run({IntTensor({1, 1, 1}), w, IntTensor({1})}).ok());
  });
}

TEST_F(FrozenInputsTest, AWrongTypeIsRefusedBeforeItIsFrozen) {
  ScaleGraph();
  WithSession(Options(true), [&](Session& session) {
    EXPECT_FALSE(session.Run({IntTensor({1, 1, 1}), IntTensor({1}), IntTensor({1})}).ok());
    const Tensor w = IntTensor({1, 2, 3});
    EXPECT_TRUE(session.Run({IntTensor({1, 1, 1}), w, IntTensor({1})}).ok());
  });
}

// The positions of RefData do not move.
TEST_F(FrozenInputsTest, RefDataBehindThemKeepTheirPlace) {
  const Value w = g_.Data("w", IntType({2}));
  const Value ref = g_.RefData("ref", IntType({2}));
  g_.Output({g_.Op("Accumulate", {{"ref", ref}, {"value", w}})});
  SessionOptions options = Options(true);
  options.parameters = {0};
  WithSession(options, [](Session& session) {
    const Tensor w = IntTensor({1, 2});
    ASSERT_TRUE(session.Run({w, IntTensor({10, 20})}).ok());
    ASSERT_TRUE(session.Run({w, Tensor()}).ok());
    const Result<Tensor> kept = session.ReadRef(1);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    EXPECT_THAT(IntsIn(*kept), ElementsAre(12, 24));
  });
}

TEST_F(FrozenInputsTest, WhatIsOverwrittenIsNoParameter) {
  const auto refusal = [&](const std::vector<int>& parameters) {
    const Value a = g_.Data("a", IntType({2}));
    const Value ref = g_.RefData("ref", IntType({2}));
    g_.Output({g_.Op("Store", {{"ref", a}, {"value", ref}}, {}, "writer")});
    const Model model = g_.Build().value();
    g_ = GraphBuilder();
    SessionOptions options = Options(true);
    options.parameters = parameters;
    return OnRanks(1, [&](World& world, DeviceMemory& memory) {
      return Session::Create(world, memory, model, options).status();
    })[0];
  };
  EXPECT_THAT(std::string(refusal({0}).message()),
              AllOf(HasSubstr("input \"a\""), HasSubstr("node \"writer\" overwrites it")));
  EXPECT_THAT(std::string(refusal({1}).message()), HasSubstr("as a RefData the graph overwrites"));
  EXPECT_THAT(std::string(refusal({2}).message()), HasSubstr("position 2, but the graph has 2"));
  EXPECT_EQ(refusal({-1}).code(), Code::kInvalidArgument);
}

TEST_F(FrozenInputsTest, ABackendFreezesThemAsTheConfigSays) {
  for (const bool frozen : {false, true}) {
    ScaleGraph();
    const Model model = g_.Build().value();
    g_ = GraphBuilder();
    NpuBackendOptions options;
    options.compiler_config.experimental_config.frozen_parameter = frozen;
    const Result<std::vector<int>> parameters = ParseFrozenInput("0,1,0");
    ASSERT_TRUE(parameters.ok());
    options.parameters = *parameters;
    // y = x + w on the operators of npumesh.
    GraphBuilder sum;
    sum.Output({sum.Op(
        "Add", {{"x1", sum.Data("x", IntType({2}))}, {"x2", sum.Data("w", IntType({2}))}})});
    const Model both = sum.Build().value();
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend(options));
      NPUMESH_ASSIGN_OR_RETURN(const auto session, backend(world, memory, both));
      const Tensor w = IntTensor({5, 6});
      for (int run = 0; run < 2; ++run) {
        NPUMESH_ASSIGN_OR_RETURN(const auto outputs, session->Run({IntTensor({1, 2}), w}));
        EXPECT_THAT(IntsIn(outputs[0]), ElementsAre(6, 8));
      }
      EXPECT_EQ(session->stats().input_bytes, frozen ? 2u * 16 : 4u * 16);
      EXPECT_EQ(session->Run({IntTensor({1, 2}), IntTensor({5, 6})}).ok(), !frozen);
      return Status();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }
}

// A product of npumesh packs its frozen weight, and the device has none of it. The results are the
// same.
TEST_F(FrozenInputsTest, AProductPacksItsWeight) {
  const auto floats = [](Shape shape) { return TensorType{DataType::kFloat, std::move(shape)}; };
  std::vector<float> values(64 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  const Tensor w = Tensor::FromVector<float>(floats({64, 64}), values);
  std::vector<Tensor> results;
  for (const bool frozen : {false, true}) {
    const Value x = g_.Data("x", floats({-1, 64}));
    g_.Output({g_.Op("MatMul", {{"x1", x}, {"x2", g_.Data("w", floats({64, 64}))}})});
    SessionOptions options;
    options.parameters = {1};
    options.freeze_parameters = frozen;
    WithSession(options, [&](Session& session) {
      for (const int64_t rows : {2, 3, 2}) {
        const std::vector<float> ones(static_cast<size_t>(rows) * 64, 1.0f);
        const auto outputs = session.Run({Tensor::FromVector<float>(floats({rows, 64}), ones), w});
        ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
        results.push_back((*outputs)[0]);
      }
      EXPECT_EQ(session.stats().constant_bytes, 0u);
      EXPECT_EQ(session.stats().input_bytes, 7u * 256 + (frozen ? 0u : 3u * 64 * 256));
    });
  }
  ASSERT_EQ(results.size(), 6u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::memcmp(results[i].data(), results[i + 3].data(), results[i].bytes()), 0);
  }
}

TEST(FrozenInput, FlagsAreReadStrictly) {
  EXPECT_THAT(ParseFrozenInput("0,1,1").value(), ElementsAre(1, 2));
  EXPECT_TRUE(ParseFrozenInput("")->empty());
  for (const char* wrong : {"2", "0,,1", "0,1,", "true", " 1", "1 "}) {
    EXPECT_EQ(ParseFrozenInput(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace npumesh
