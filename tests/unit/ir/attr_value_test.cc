// AttrValue: which alternative and which list kind each maker chooses.
#include "graph/ir/attr_value.h"

#include <gtest/gtest.h>

#include "graph/ir/graph.h"

namespace npumesh {
namespace {

TEST(AttrValue, MakersChooseTheKindThatGeExpects) {
  struct Case {
    AttrValue value;
    std::string_view kind;
    ListKind list;
  };
  const Case cases[] = {
      {AttrValue(), "opaque", ListKind::kNone},
      {AttrValue::Int(1), "int", ListKind::kNone},
      {AttrValue::Float(1), "float", ListKind::kNone},
      {AttrValue::Bool(true), "bool", ListKind::kNone},
      {AttrValue::String("s"), "string", ListKind::kNone},
      {AttrValue::Type(DataType::kBfloat16), "dtype", ListKind::kNone},
      {AttrValue::Ints({1}), "list", ListKind::kInt},
      {AttrValue::Floats({1}), "list", ListKind::kFloat},
      {AttrValue::Strings({"s"}), "list", ListKind::kString},
      {AttrValue::Bools({true}), "list", ListKind::kBool},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.value.kind(), c.kind);
    const auto* list = c.value.get<ListAttr>();
    EXPECT_EQ(list == nullptr ? ListKind::kNone : list->kind, c.list);
  }
}

TEST(AttrValue, ValueCopiesATensor) {
  const Tensor tensor = Tensor::FromVector<int64_t>({DataType::kInt64, Shape({2})}, {5, 6});
  const AttrValue value = AttrValue::Value(tensor);
  const auto* attr = value.get<TensorAttr>();
  ASSERT_NE(attr, nullptr);
  EXPECT_EQ(attr->desc->dtype, DataType::kInt64);
  EXPECT_EQ(attr->desc->shape, Shape({2}));
  EXPECT_EQ(attr->data->size(), 16u);
  EXPECT_EQ((*attr->data)[8], 6);
}

TEST(AttrValue, CarriesUnknownFields) {
  AttrValue value = AttrValue::Int(1);
  EXPECT_TRUE(value.opaque().empty());
  value.set_opaque("bytes");
  EXPECT_EQ(value.opaque(), "bytes");
}

}  // namespace
}  // namespace npumesh
