// Descriptors: dtypes that no version knows, overrides, origin shapes, layouts.
#include <gmock/gmock.h>

#include "graph/io/layout.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

// The output descriptor of a node "n" of `type` with this descriptor text.
Model WithDesc(std::string_view type, std::string_view desc) {
  return Load(
      OneGraph(fmt::format("op {{ name: 'n' type: '{}' output_desc {{ {} }} }}", type, desc)));
}

const TensorDesc& DescOf(const Model& model) {
  return NodeOf(model.graph, "n").output_descs[0];
}

ge::proto::TensorDescriptor SavedDesc(const Model& model) {
  return FromBytes(Saved(model)).graph(0).op(0).output_desc(0);
}

TEST(Desc, DtypeOverrideWins) {
  struct Case {
    int number;
    DataType expected;
  };
  const Case cases[] = {{13, DataType::kDual},         {14, DataType::kDualSubInt8},
                        {15, DataType::kDualSubUint8}, {16, DataType::kComplex64},
                        {22, DataType::kQuint16},      {33, DataType::kComplex32},
                        {12, DataType::kFloat},        {23, DataType::kFloat}};
  for (const Case& c : cases) {
    const Model model = WithDesc(
        "N", fmt::format("dtype: DT_FLOAT attr {{ key: '__tensor_desc_data_type__' value {{ i: {} "
                         "}} }}",
                         c.number));
    EXPECT_EQ(DescOf(model).dtype, c.expected) << c.number;
    EXPECT_EQ(SavedDesc(model).dtype(), ge::proto::DT_FLOAT);
    EXPECT_EQ(SavedDesc(model).attr().at("__tensor_desc_data_type__").i(), c.number);
  }
}

TEST(Desc, ChangedDtypeReplacesTheOverride) {
  Model model = WithDesc("N", "attr { key: '__tensor_desc_data_type__' value { i: 16 } }");
  model.graph.node(0).output_descs[0].dtype = DataType::kInt64;
  EXPECT_EQ(SavedDesc(model).dtype(), ge::proto::DT_INT64);
  EXPECT_FALSE(SavedDesc(model).attr().contains("__tensor_desc_data_type__"));
}

TEST(Desc, UnknownDtypeSurvives) {
  const Model model = WithDesc("N", "dtype: 99");
  EXPECT_EQ(DescOf(model).dtype, DataType::kUndefined);
  EXPECT_EQ(static_cast<int>(SavedDesc(model).dtype()), 99);
}

TEST(Desc, DeviceTypeAttributeWins) {
  const Model model =
      WithDesc("N", "device_type: 'NPU' attr { key: 'device_type' value { s: 'CPU' } }");
  EXPECT_EQ(DescOf(model).device_type, "CPU");
  EXPECT_EQ(SavedDesc(model).device_type(), "CPU");
}

TEST(Desc, PrivateLayoutHasItsShapeInOriginShape) {
  const Model model =
      WithDesc("Data",
               "dtype: DT_FLOAT16 layout: 'ND' attr { key: 'format_for_int' value { i: 29 } }"
               "attr { key: 'origin_format_for_int' value { i: 2 } }"
               "attr { key: 'origin_shape' value { list { i: 16 i: 32 val_type: VT_LIST_INT } } }"
               "attr { key: 'origin_shape_initialized' value { b: true } }"
               "attr { key: 'origin_format_is_set' value { b: true } }");
  EXPECT_EQ(DescOf(model).shape, Shape({16, 32}));
  EXPECT_EQ(SavedDesc(model).shape().dim_size(), 0);
  EXPECT_EQ(SavedDesc(model).attr().at("origin_format").s(), "ND");
  const auto reloaded = ParseModel(Saved(model), "again.air");
  ASSERT_TRUE(reloaded.ok());
  EXPECT_EQ(DescOf(*reloaded).shape, Shape({16, 32}));
}

TEST(Desc, UnfedOptionalInputKeepsItsForm) {
  const Model model =
      Load(OneGraph("op { name: 'n' type: 'N' input: '' input_desc { name: 'bias'"
                    "attr { key: '_is_unfed_optional' value { i: 1 } } } }"));
  const auto op = FromBytes(Saved(model)).graph(0).op(0);
  EXPECT_EQ(op.input(0), "");
  EXPECT_EQ(op.input_desc(0).dtype(), ge::proto::DT_UNDEFINED);
  EXPECT_EQ(op.input_desc(0).layout(), "");
  EXPECT_EQ(op.input_desc(0).attr().at("format_for_int").i(), kReservedLayout);
  EXPECT_EQ(op.input_desc(0).attr().at("origin_format_for_int").i(), kNdLayout);
}

TEST(Layout, NumbersAndNames) {
  struct Case {
    std::string_view name;
    int64_t number;
  };
  for (const Case& c :
       {Case{"NCHW", 0}, Case{"ND", 2}, Case{"NC1HWC0", 3}, Case{"FRACTAL_NZ", 29},
        Case{"NCDHW", 30}, Case{"FORMAT_RESERVED", 40}, Case{"ALL", 41}, Case{"NCL", 47},
        Case{"FRACTAL_NZ_C0_8", 54}, Case{"FRACTAL_Z:32", 4 | 32 << 8}}) {
    EXPECT_EQ(LayoutNumber(c.name), c.number);
    EXPECT_EQ(LayoutName(c.number), c.name);
  }
  for (std::string_view name :
       {"", "RESERVED", "UNDEFINED", "no such", "ND:", "ND:x", "ND:65536"}) {
    EXPECT_EQ(LayoutNumber(name), kReservedLayout) << name;
  }
  EXPECT_EQ(LayoutName(55), "FORMAT_RESERVED");
  EXPECT_EQ(LayoutName(-1), "FORMAT_RESERVED");
  EXPECT_TRUE(IsPrivateLayout(29));
  EXPECT_FALSE(IsPrivateLayout(0));
}

}  // namespace
}  // namespace npumesh::testing
