// What must hold for every operator that npumesh knows.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/ir/node_kind.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

TEST(BuiltinOps, KnowsTheOperatorsOfTheSampleGraphs) {
  for (const char* type :
       {"Add",           "BatchMatMul",  "Cast",          "ConcatV2",       "Const",
        "Cos",           "Data",         "Fill",          "FileConstant",   "HcomAllGather",
        "HcomAllReduce", "HcomAllToAll", "HcomAllToAllV", "HcomBroadcast",  "HcomReduceScatter",
        "Identity",      "MatMul",       "Mul",           "Muls",           "Neg",
        "NetOutput",     "Pow",          "RealDiv",       "ReduceMean",     "Reshape",
        "Rsqrt",         "Sin",          "SoftmaxV2",     "StridedSliceV2", "Swish",
        "Tile",          "Transpose",    "Triu",          "Unsqueeze"}) {
    EXPECT_NE(BuiltinOps().Find(type), nullptr) << type;
  }
}

TEST(BuiltinOps, EveryOperatorIsComplete) {
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    EXPECT_EQ(op.schema.type, type);
    const bool has_kernel = op.make_kernel != nullptr;
    const bool engine_runs = op.control_flow || op.furniture();
    EXPECT_EQ(has_kernel, !op.view && !op.evaluate && !engine_runs) << type;
  }
}

// The engine goes by the type of the node, because a graph may have furniture without operators.
TEST(BuiltinOps, FurnitureIsWhatTheEngineKnowsByType) {
  for (const std::string_view type : BuiltinOps().Types()) {
    Node node;
    node.type = type;
    EXPECT_EQ(BuiltinOps().Find(type)->furniture(), IsFurniture(node)) << type;
  }
}

TEST(BuiltinOps, FlagsNamePortsThatExist) {
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    for (const std::string_view port : op.value_inputs) {
      EXPECT_TRUE(std::any_of(op.schema.inputs.begin(), op.schema.inputs.end(),
                              [&](const PortSpec& spec) { return spec.name == port; }))
          << type << " " << port;
    }
    for (const InPlace& pair : op.in_place) {
      EXPECT_GE(pair.output, 0) << type;
      EXPECT_LT(pair.slot, static_cast<int>(op.schema.inputs.size())) << type;
    }
    if (op.view) {
      EXPECT_EQ(op.schema.outputs.size(), 1u) << type;
    }
  }
}

TEST(BuiltinOps, SuggestsSimilarNames) {
  EXPECT_EQ(BuiltinOps().Nearest("Matmul").at(0), "MatMul");
  EXPECT_EQ(BuiltinOps().Nearest("HcomAllreduce").at(0), "HcomAllReduce");
  EXPECT_TRUE(BuiltinOps().Nearest("NothingOfThisKindExists").empty());
}

}  // namespace
}  // namespace npumesh
