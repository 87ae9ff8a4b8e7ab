// Attributes of every operator: of another kind, unknown, missing.
#include <gmock/gmock.h>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

Node NodeOf(const Operator& op) {
  Node node;
  node.name = "n";
  node.type = std::string(op.schema.type);
  for (const PortSpec& port : op.schema.inputs) {
    if (port.kind == PortKind::kOptional) continue;
    node.inputs.push_back(Value{0, 0});
    const std::string name(port.name);
    node.input_descs.emplace_back().name = port.kind == PortKind::kDynamic ? name + "0" : name;
  }
  for (const AttrSpec& attr : op.schema.attrs) {
    const bool any = attr.pattern.get<OpaqueAttr>() != nullptr;
    if (attr.fallback) continue;
    node.attrs.emplace(std::string(attr.name), any ? AttrValue::Int(1) : attr.pattern);
  }
  return node;
}

Status BindWith(const Operator& op, std::string_view attr, AttrValue value) {
  Node node = NodeOf(op);
  node.attrs.insert_or_assign(std::string(attr), std::move(value));
  return OpContext::Bind(node, op.schema).status();
}

// No attribute is one.
AttrValue Misfit() {
  return AttrValue::Variant(NamedAttrs{"f", std::make_shared<AttrMap>(), ""});
}

template <typename Body>
void ForAll(Body body) {
  for (const std::string_view type : BuiltinOps().Types()) {
    SCOPED_TRACE(type);
    body(*BuiltinOps().Find(type));
  }
}

TEST(Attributes, ARequiredOneMayNotBeMissing) {
  ForAll([](const Operator& op) {
    EXPECT_TRUE(OpContext::Bind(NodeOf(op), op.schema).ok());
    for (const AttrSpec& attr : op.schema.attrs) {
      Node node = NodeOf(op);
      node.attrs.erase(std::string(attr.name));
      EXPECT_EQ(OpContext::Bind(node, op.schema).ok(), attr.fallback.has_value()) << attr.name;
    }
  });
}

TEST(Attributes, AreOfTheirKind) {
  ForAll([](const Operator& op) {
    for (const AttrSpec& attr : op.schema.attrs) {
      if (attr.pattern.get<OpaqueAttr>() != nullptr) continue;
      const bool text = attr.pattern.get<std::string>() != nullptr;
      for (const AttrValue& wrong : {Misfit(), text ? AttrValue::Int(1) : AttrValue::String("1")}) {
        const Status status = BindWith(op, attr.name, wrong);
        EXPECT_EQ(status.code(), Code::kCorrupt) << attr.name;
        EXPECT_THAT(status.message(), HasSubstr(attr.name));
      }
    }
  });
}

TEST(Attributes, ListsAreOfTheirKind) {
  int lists = 0;
  ForAll([&](const Operator& op) {
    for (const AttrSpec& attr : op.schema.attrs) {
      const auto* list = attr.pattern.get<ListAttr>();
      if (list == nullptr || list->kind == ListKind::kNone) continue;
      ++lists;
      EXPECT_FALSE(BindWith(op, attr.name, AttrValue::Strings({"1"})).ok() &&
                   list->kind != ListKind::kString)
          << attr.name;
      EXPECT_EQ(BindWith(op, attr.name, AttrValue::Floats({1})).code() == Code::kCorrupt,
                list->kind != ListKind::kFloat)
          << attr.name;
    }
  });
  EXPECT_GT(lists, 50);
}

TEST(Attributes, AnUnknownOneIsRefusedUnlessItIsBookkeeping) {
  ForAll([](const Operator& op) {
    const Status status = BindWith(op, "no_such_attribute", AttrValue::Int(0));
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("attribute \"no_such_attribute\" is unknown"));
    for (const char* name : {"_op_exec_never_timeout", "nn_module_stack", "output_i"}) {
      EXPECT_TRUE(BindWith(op, name, AttrValue::Int(0)).ok()) << name;
    }
  });
}

TEST(Attributes, ThoseThatGeDoesNotCountAmongTheOperatorsAreBookkeeping) {
  const Operator& op = *BuiltinOps().Find("MatMulV2");
  Node node = NodeOf(op);
  node.attrs["kernel_choice"] = AttrValue::Int(3);
  EXPECT_FALSE(OpContext::Bind(node, op.schema).ok());
  node.attrs["_ir_attr_names"] = AttrValue::Strings({"transpose_x1", "transpose_x2", "offset_x"});
  EXPECT_TRUE(OpContext::Bind(node, op.schema).ok());
  node.attrs["_ir_attr_names"] = AttrValue::Strings({"transpose_x1", "kernel_choice"});
  EXPECT_FALSE(OpContext::Bind(node, op.schema).ok());
}

TEST(Attributes, ASimilarNameIsSuggested) {
  const Status status =
      BindWith(*BuiltinOps().Find("Conv2D"), "dilation", AttrValue::Ints({1, 2, 2, 1}));
  EXPECT_THAT(status.message(), HasSubstr("\"dilation\" is unknown (similar: dilations)"));
}

TEST(Attributes, OfWhichOneValueIsKnownHaveThatValue) {
  struct Case {
    const char* type;
    const char* attr;
    AttrValue known;
    AttrValue other;
  };
  const Case cases[] = {
      {"BatchNorm", "exponential_avg_factor", AttrValue::Float(1), AttrValue::Float(0.1f)},
      {"ResizeBilinearV2", "scales", AttrValue::Floats({0, 0}), AttrValue::Floats({2, 2})},
      {"FlashAttentionScore", "seed", AttrValue::Int(0), AttrValue::Int(7)},
      {"FlashAttentionScoreGrad", "softmax_in_layout", AttrValue::String(""),
       AttrValue::String("same_as_input")},
      {"LayerNormGradV3", "output_mask", AttrValue::Bools({true, true, true}),
       AttrValue::Bools({true, false, true})},
  };
  for (const Case& c : cases) {
    const Operator& op = *BuiltinOps().Find(c.type);
    EXPECT_TRUE(BindWith(op, c.attr, c.known).ok()) << c.attr;
    const Status status = BindWith(op, c.attr, c.other);
    EXPECT_EQ(status.code(), Code::kUnsupported) << c.attr;
    EXPECT_THAT(status.message(), HasSubstr(c.attr));
  }
}

}  // namespace
}  // namespace npumesh
