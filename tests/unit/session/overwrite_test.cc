// What readers see of memory that operators overwrite (docs/engine.md, "Overwriting"): the same
// bytes under every set of options.
#include <gmock/gmock.h>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TensorType kFour{DataType::kFloat, {4}};

Tensor Floats(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector<float>({DataType::kFloat, Shape({count})}, values);
}

Tensor Ints(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector<int64_t>({DataType::kInt64, Shape({count})}, values);
}

struct Variant {
  std::string name;
  SessionOptions options;
};

std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  const auto add = [&](std::string name, const std::function<void(SessionOptions&)>& set) {
    set(variants.emplace_back(Variant{std::move(name), {}}).options);
  };
  add("as it comes", [](SessionOptions&) {});
  add("without folding", [](SessionOptions& o) { o.compile.fold_constants = false; });
  add("with dead nodes", [](SessionOptions& o) { o.compile.drop_dead_nodes = false; });
  add("eager", [](SessionOptions& o) {
    o.compile.fold_constants = false;
    o.compile.drop_dead_nodes = false;
  });
  add("with fusions", [](SessionOptions& o) { o.compile.fuses = [](auto) { return true; }; });
  add("overlapping", [](SessionOptions& o) { o.compile.overlap_collectives = true; });
  add("in little memory", [](SessionOptions& o) { o.compile.spare_memory = true; });
  for (const NodeOrder order :
       {NodeOrder::kBreadth, NodeOrder::kDepth, NodeOrder::kReverse, NodeOrder::kStableDepth}) {
    add(fmt::format("order {}", static_cast<int>(order)),
        [order](SessionOptions& o) { o.compile.order = order; });
  }
  return variants;
}

using StepOutputs = std::vector<std::vector<float>>;

StepOutputs AsFloats(const std::vector<Tensor>& outputs) {
  StepOutputs run;
  for (const Tensor& output : outputs) {
    run.emplace_back(output.as<float>().begin(), output.as<float>().end());
  }
  return run;
}

// Each variant takes as many steps as there are expected ones.
void ExpectOutputs(const std::function<void(GraphBuilder&)>& write,
                   const std::vector<Tensor>& inputs, const std::vector<StepOutputs>& expected) {
  for (const Variant& variant : Variants()) {
    SCOPED_TRACE(variant.name);
    GraphBuilder graph;
    write(graph);
    RunInSession(graph, variant.options, [&](Session& session) {
      std::vector<Tensor> given = inputs;
      for (const StepOutputs& step : expected) {
        const Result<std::vector<Tensor>> outputs = session.Run(given);
        ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
        EXPECT_EQ(AsFloats(*outputs), step);
        for (size_t i = 0; i < given.size(); ++i) {
          if (session.inputs()[i].ref) given[i] = Tensor();
        }
      }
    });
  }
}

const Tensor& Ones() {
  static const Tensor ones = Floats({1, 1, 1, 1});
  return ones;
}
const Tensor& Seven() {
  static const Tensor seven = Floats({7, 7, 7, 7});
  return seven;
}
const std::vector<float> kOnes = {1, 1, 1, 1};
const std::vector<float> kSevens = {7, 7, 7, 7};

TEST(Overwrite, AViewInFrontOfTheWriterKeepsTheOldBytesAsAGraphOutput) {
  for (const char* view : {"Identity", "Reshape", "Squeeze", "Unsqueeze", "FlattenV2"}) {
    SCOPED_TRACE(view);
    ExpectOutputs(
        [&](GraphBuilder& g) {
          const Value ref = g.RefData("ref", kFour);
          const Value seven = g.Data("seven", kFour);
          std::vector<GraphBuilder::Input> inputs = {{"x", ref}};
          std::vector<GraphBuilder::Attr> attrs;
          if (std::string_view(view) == "Reshape") inputs.push_back({"shape", g.Ints({4})});
          if (std::string_view(view) == "Unsqueeze") attrs = {{"axes", AttrValue::Ints({0})}};
          if (std::string_view(view) == "FlattenV2") attrs = {{"axis", AttrValue::Int(0)}};
          const Value seen = g.Op(view, inputs, attrs, "seen");
          const Value write = g.Op("Assign", {{"ref", ref}, {"value", seven}}, {}, "write");
          g.Order(seen, write);
          g.Output({write, seen});
        },
        {Ones(), Seven()}, {{kSevens, kOnes}, {kSevens, kSevens}});
  }
}

TEST(Overwrite, AReaderOrderedBehindTheWriterSeesTheNewBytes) {
  for (const bool ref : {false, true}) {
    ExpectOutputs(
        [&](GraphBuilder& g) {
          const Value x = ref ? g.RefData("x", kFour) : g.Data("x", kFour);
          const Value write =
              g.Op("Assign", {{"ref", x}, {"value", g.Data("seven", kFour)}}, {}, "write");
          const Value old = g.Op("Neg", {{"x", x}}, {}, "old");
          const Value fresh = g.Op("Neg", {{"x", x}}, {}, "fresh");
          g.Order(write, fresh);
          g.Output({old, fresh});
        },
        {Ones(), Seven()}, {{{-1, -1, -1, -1}, {-7, -7, -7, -7}}});
  }
}

TEST(Overwrite, IntegersThatDecideAShapeAreReadWhereTheReaderStands) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value dims = g.Data("dims", {DataType::kInt64, {2}});
        const Value other = g.Data("other", {DataType::kInt64, {2}});
        const Value x = g.Data("x", {DataType::kFloat, {6}});
        const Value before = g.Op("Reshape", {{"x", x}, {"shape", dims}}, {}, "before");
        const Value write = g.Op("Assign", {{"ref", dims}, {"value", other}}, {}, "write");
        const Value square = g.Op("Mul", {{"x1", dims}, {"x2", dims}}, {}, "square");
        g.Order(write, square);
        g.Output({g.Op("ReduceSum", {{"x", before}, {"axes", g.Ints({0})}}, {}, "columns"),
                  g.Op("Cast", {{"x", square}}, {{"dst_type", AttrValue::Int(0)}}, "squares")});
      },
      {Ints({2, 3}), Ints({3, 2}), Floats({1, 2, 3, 4, 5, 6})}, {{{5, 7, 9}, {9, 4}}});
}

TEST(Overwrite, WhatWasKnownWhileCompilingIsNotPackedOldNorFolded) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value fill = g.Op(
            "Fill",
            {{"dims", g.Ints({2, 2})},
             {"value", g.Const("one", Tensor::FromVector<float>({DataType::kFloat, {}}, {1.0f}))}},
            {}, "fill");
        const Value rows = g.Data("rows", {DataType::kFloat, {1, 2}});
        const Value write = g.Op(
            "ScatterUpdate",
            {{"var", fill}, {"indices", g.Const("at", Ints({1}))}, {"updates", rows}}, {}, "write");
        const Value product = g.Op("MatMulV2", {{"x1", write}, {"x2", fill}}, {}, "product");
        g.Output({product, fill});
      },
      {Tensor::FromVector<float>({DataType::kFloat, {1, 2}}, {5, 6})},
      {{{6, 7, 35, 41}, {1, 1, 5, 6}}});
}

TEST(Overwrite, TwoWritersOfOneRefDataRunInNodeOrder) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value ref = g.RefData("ref", kFour);
        const Value one =
            g.Op("Assign", {{"ref", ref}, {"value", g.Const("c1", Seven())}}, {}, "w1");
        const Value r1 = g.Op("Neg", {{"x", one}}, {}, "r1");
        const Value two = g.Op("ScatterUpdate",
                               {{"var", ref},
                                {"indices", g.Const("at", Ints({2}))},
                                {"updates", g.Const("c2", Floats({9}))}},
                               {}, "w2");
        g.Output({r1, g.Op("Neg", {{"x", two}}, {}, "r2"), ref});
      },
      {Ones()}, {{{-7, -7, -7, -7}, {-7, -7, -9, -7}, {7, 7, 9, 7}}});
}

// Each of two writers of one activation reads it before the other has changed it: one copy.
TEST(Overwrite, ReadersThatNoOrderServesReadCopies) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value x = g.Data("x", kFour);
        const Value a = g.Op("Neg", {{"x", x}}, {}, "a");
        const Value b = g.Op("Abs", {{"x", x}}, {}, "b");
        const Value wa = g.Op("Assign", {{"ref", a}, {"value", b}}, {}, "wa");  // a := old b
        const Value wb = g.Op("Assign", {{"ref", b}, {"value", a}}, {}, "wb");  // b := old a
        g.Output({wa, wb});
      },
      {Ones()}, {{kOnes, {-1, -1, -1, -1}}});
}

TEST(Overwrite, AnOperandInTheStorageOfItsTargetIsReadBeforeTheWrite) {
  const TensorType rows{DataType::kFloat, {3, 2}};
  ExpectOutputs(
      [&](GraphBuilder& g) {
        const Value ref = g.RefData("ref", rows);
        const Value at = g.Const("at", Ints({1, 2, 0}));
        g.Output({g.Op("ScatterUpdate", {{"var", ref}, {"indices", at}, {"updates", ref}})});
      },
      {Tensor::FromVector<float>(rows, {0, 1, 2, 3, 4, 5})},
      {{{4, 5, 0, 1, 2, 3}}, {{2, 3, 4, 5, 0, 1}}});
}

TEST(Overwrite, AGraphOutputSeesAWriteThatNobodyElseReads) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value y = g.Op("Neg", {{"x", g.Data("x", kFour)}}, {}, "y");
        g.Op("Assign", {{"ref", y}, {"value", g.Const("seven", Seven())}}, {}, "write");
        g.Output({y});
      },
      {Ones()}, {{kSevens}});
}

TEST(Overwrite, AWriteThroughAViewIsSeenInTheShapeOfTheReader) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value ref = g.RefData("ref", {DataType::kFloat, {2, 2}});
        const Value flat = g.Op("Reshape", {{"x", ref}, {"shape", g.Ints({4})}}, {}, "flat");
        const Value write = g.Op("Assign", {{"ref", flat}, {"value", g.Data("v", kFour)}}, {}, "w");
        const Value rows = g.Op("ReduceSum", {{"x", ref}, {"axes", g.Ints({1})}}, {}, "rows");
        g.Order(write, rows);
        g.Output({rows, flat});
      },
      {Tensor::FromVector<float>({DataType::kFloat, {2, 2}}, {1, 2, 3, 4}),
       Floats({10, 20, 30, 40})},
      {{{30, 70}, {1, 2, 3, 4}}, {{30, 70}, {10, 20, 30, 40}}});
}

TEST(Overwrite, AnUpdateThatNoOutputShowsIsSeen) {
  for (const bool folded : {false, true}) {
    ExpectOutputs(
        [&](GraphBuilder& g) {
          const Value one = g.Const("one", Ones());
          const Value x = folded ? g.Op("Neg", {{"x", one}}, {}, "negated") : one;
          g.Op("ForeachNegInplace", {{"x0", x}}, {}, "update", 0);
          g.Output({x, g.Op("Abs", {{"x", x}}, {}, "read before")});
        },
        {}, {{folded ? kOnes : std::vector<float>{-1, -1, -1, -1}, kOnes}});
  }
}

// Conditions that constants decide are inlined, unless folding is off.
TEST(Overwrite, WhatABranchHandsThroughIsAValueOfItsOwn) {
  for (const bool branches : {false, true}) {
    GraphBuilder body("body");
    body.Output({body.Op("Identity", {{"x", body.Data("x", kFour)}})});
    const Model callee = std::move(body.Build()).value();
    for (const Variant& variant : Variants()) {
      SCOPED_TRACE(variant.name);
      GraphBuilder g;
      const Value x = g.RefData("x", kFour);
      const Value taken = g.Const("taken", Tensor::FromVector<bool>({DataType::kBool, {}}, {true}));
      const Value result = branches ? g.Op("If", {{"cond", taken}, {"input0", x}}, {}, "node")
                                    : g.Op("PartitionedCall", {{"args0", x}}, {}, "node");
      g.Op("Assign", {{"ref", result}, {"value", g.Const("seven", Seven())}}, {}, "write");
      g.Output({result, x});
      Model model = std::move(g.Build()).value();
      model.subgraphs = {callee.graph};
      model.graph.node(model.graph.Find("node")).subgraphs.assign(branches ? 2 : 1, "body");
      const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto session,
                                 Session::Create(world, memory, model, variant.options));
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({Ones()}));
        EXPECT_EQ(AsFloats(outputs), (StepOutputs{kSevens, kOnes}));
        return Status();
      });
      EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
    }
  }
}

TEST(Overwrite, WhatACallHandsThroughIsReadWhereTheCallStands) {
  GraphBuilder body("body");
  body.Output({body.Data("x", kFour)});
  const Model callee = std::move(body.Build()).value();
  for (const Variant& variant : Variants()) {
    SCOPED_TRACE(variant.name);
    GraphBuilder g;
    const Value ref = g.RefData("ref", kFour);
    g.Op("Assign", {{"ref", ref}, {"value", g.Const("seven", Seven())}}, {}, "first");
    const Value old = g.Op("PartitionedCall", {{"args0", ref}}, {}, "node");
    g.Op("Assign", {{"ref", ref}, {"value", old}}, {}, "second");
    g.Output({ref});
    Model model = std::move(g.Build()).value();
    model.subgraphs = {callee.graph};
    model.graph.node(model.graph.Find("node")).subgraphs = {"body"};
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, memory, model, variant.options));
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({Ones()}));
      EXPECT_EQ(AsFloats(outputs), (StepOutputs{kOnes}));
      return Status();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }
}

TEST(Overwrite, AnUpdateThatNoOutputShowsIsSeenBehindACut) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value x = g.Data("x", kFour);
        g.Op("ForeachNegInplace", {{"x0", x}}, {}, "update", 0);
        const Value late = g.Op("NonZero", {{"x", g.Data("y", kFour)}}, {}, "late");
        g.Output({x, g.Op("Cast", {{"x", late}}, {{"dst_type", AttrValue::Int(0)}}, "where")});
      },
      {Ones(), Floats({0, 0, 5, 0})}, {{{-1, -1, -1, -1}, {2}}});
}

// What is put in for the branch's result must not change which writer comes first.
TEST(Overwrite, WritersKeepTheirOrderBesideABranch) {
  GraphBuilder body("body");
  body.Output({body.Op("Abs", {{"x", body.Data("x", kFour)}})});
  const Model branch = std::move(body.Build()).value();
  for (const Variant& variant : Variants()) {
    SCOPED_TRACE(variant.name);
    GraphBuilder g;
    const Value ref = g.RefData("ref", kFour);
    const Value condition = g.Data("condition", {DataType::kBool, {}});
    const Value result = g.Op("If", {{"cond", condition}, {"input0", ref}}, {}, "node");
    g.Op("Assign", {{"ref", result}, {"value", g.Const("seven", Seven())}}, {}, "overwrites");
    const Value written = g.Op("Assign", {{"ref", ref}, {"value", result}}, {}, "first");
    g.Op("ForeachNegInplace", {{"x0", ref}}, {}, "second", 0);
    g.Output({written});
    Model model = std::move(g.Build()).value();
    model.subgraphs = {branch.graph};
    model.graph.node(model.graph.Find("node")).subgraphs = {"body", "body"};
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, memory, model, variant.options));
      const Tensor no = Tensor::FromVector<bool>({DataType::kBool, {}}, {false});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({Ones(), no}));
      // "first" reads the branch's result before "overwrites" writes there.
      EXPECT_EQ(AsFloats(outputs), (StepOutputs{{-1, -1, -1, -1}}));
      return Status();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }
}

TEST(Overwrite, ALateNodeReadsWhatAnEarlierStageWroteIntoARefData) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value ref = g.RefData("ref", kFour);
        const Value write =
            g.Op("Assign", {{"ref", ref}, {"value", g.Data("v", kFour)}}, {}, "write");
        const Value first = g.Op("NonZero", {{"x", g.Data("x", kFour)}}, {}, "first");
        const Value second = g.Op("NonZero", {{"x", write}}, {}, "second");
        g.Order(first, second);
        g.Output({g.Op("Cast", {{"x", first}}, {{"dst_type", AttrValue::Int(0)}}, "a"),
                  g.Op("Cast", {{"x", second}}, {{"dst_type", AttrValue::Int(0)}}, "b")});
      },
      {Ones(), Floats({0, 0, 5, 0}), Floats({0, 1, 0, 0})}, {{{1}, {2}}});
}

TEST(Overwrite, AViewOfWhatIsUpdatedUnseenKeepsTheOldBytes) {
  for (const bool through : {false, true}) {
    ExpectOutputs(
        [&](GraphBuilder& g) {
          const Value one = g.Const("one", Ones());
          const Value view = g.Op("Reshape", {{"x", one}, {"shape", g.Ints({2, 2})}}, {}, "view");
          g.Op("ForeachNegInplace", {{"x0", through ? view : one}}, {}, "update", 0);
          g.Output({view});
        },
        {}, {{kOnes}});
  }
}

TEST(Overwrite, ReadersOfAWrittenConstantComeBeforeTheNextWriter) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value constant = g.Const("constant", Ones());
        const Value one =
            g.Op("Assign", {{"ref", constant}, {"value", g.Data("x", kFour)}}, {}, "w1");
        const Value two =
            g.Op("Assign", {{"ref", constant}, {"value", g.Data("y", kFour)}}, {}, "w2");
        const Value read = g.Op("Neg", {{"x", one}}, {}, "read");
        g.Output({read, two});
      },
      {Seven(), Floats({2, 2, 2, 2})}, {{{-7, -7, -7, -7}, {2, 2, 2, 2}}});
}

TEST(Overwrite, AProductReadsATransposedWeightThatIsOverwrittenLater) {
  const TensorType square{DataType::kFloat, {2, 2}};
  ExpectOutputs(
      [&](GraphBuilder& g) {
        const Value w = g.Const("w", Tensor::FromVector<float>(square, {1, 2, 3, 4}));
        const Value write =
            g.Op("Assign", {{"ref", w}, {"value", g.Data("x", square)}}, {}, "write");
        const Value turned = g.Op("Transpose", {{"x", w}, {"perm", g.Ints({1, 0})}}, {}, "turned");
        g.Output({g.Op("MatMul", {{"x1", write}, {"x2", turned}}, {}, "product")});
      },
      {Tensor::FromVector<float>(square, {1, 0, 0, 1})}, {{{1, 3, 2, 4}}});
}

TEST(Overwrite, AShapeThatIsUpdatedLaterIsKnownBefore) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value shape = g.Op("Shape", {{"x", g.Data("like", {DataType::kFloat, {2, 2}})}},
                                 {{"dtype", AttrValue::Type(DataType::kInt32)}}, "shape");
        const Value flat = g.Data("flat", kFour);
        const Value rows = g.Op("Reshape", {{"x", flat}, {"shape", shape}}, {}, "rows");
        g.Op("ForeachNegInplace", {{"x0", shape}}, {}, "update", 0);
        g.Output({g.Op("ReduceSum", {{"x", rows}, {"axes", g.Ints({1})}}, {}, "sums"),
                  g.Op("Cast", {{"x", shape}}, {{"dst_type", AttrValue::Int(0)}}, "seen before")});
      },
      {Tensor::Allocate({DataType::kFloat, {2, 2}}), Floats({1, 2, 3, 4})}, {{{3, 7}, {2, 2}}});
}

TEST(Overwrite, DeadWritersThatReadEachOthersTargetsRun) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value constant = g.Const("constant", Ones());
        const Value x = g.Data("x", kFour);
        g.Op("Assign", {{"ref", constant}, {"value", x}}, {}, "a");
        g.Op("Assign", {{"ref", x}, {"value", constant}}, {}, "b");
        g.Output({g.Op("Neg", {{"x", x}}, {}, "y")});
      },
      {Seven()}, {{{-7, -7, -7, -7}}});
}

TEST(Overwrite, DeadReadersOfShapesAndDeadLateNodesRun) {
  ExpectOutputs(
      [](GraphBuilder& g) {
        const Value x = g.Data("x", kFour);
        const Value y = g.Op("Neg", {{"x", x}}, {}, "y");
        g.Op("Abs", {{"x", y}}, {}, "dead");
        g.Op("NonZero", {{"x", x}}, {}, "dead late");
        const Value shape = g.Op("Shape", {{"x", y}}, {}, "shape");
        g.Output({g.Op("Cast", {{"x", shape}}, {{"dst_type", AttrValue::Int(0)}}, "count")});
      },
      {Ones()}, {{{4}}});
}

TEST(Overwrite, OneOperatorMayNotOverwriteAStorageTwice) {
  for (const Variant& variant : Variants()) {
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      GraphBuilder g;
      const TensorType type{DataType::kFloat, {1, 2, 2, 64}};
      const Value x = g.Data("x", type);
      const Value cos = g.Data("cos", type);
      g.Op("ApplyRotaryPosEmb", {{"query", x}, {"key", x}, {"cos", cos}, {"sin", cos}}, {}, "rope",
           2);
      g.Output({x});
      NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
      return Session::Create(world, memory, std::move(model), variant.options).status();
    });
    EXPECT_EQ(statuses[0].code(), Code::kInvalidArgument) << variant.name;
    EXPECT_THAT(std::string(statuses[0].message()),
                testing::AllOf(HasSubstr("\"rope\""), HasSubstr("inputs 0 and 1"),
                               HasSubstr("TensorMove")));
  }
}

}  // namespace
}  // namespace npumesh
