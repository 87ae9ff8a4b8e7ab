#include "tests/models/aten_image.h"

namespace npumesh::models {
namespace {

using Attrs = std::vector<GraphBuilder::Attr>;

// Lists of port indexes and of layouts in one attribute.
AttrValue LayoutHint(const std::vector<int64_t>& ports) {
  ListAttr list;
  list.i = ports;
  list.s.assign(ports.size(), "NCHW");
  return AttrValue::Variant(std::move(list));
}

Attrs WithHints(Attrs attrs, const std::vector<int64_t>& inputs) {
  attrs.emplace_back("input_layout_info", LayoutHint(inputs));
  attrs.emplace_back("output_layout_info", LayoutHint({0}));
  return attrs;
}

Attrs AttrsOf(const ConvolutionShape& shape, const std::vector<int64_t>& hinted) {
  const int64_t s = shape.stride, p = shape.pad();
  return WithHints({{"strides", AttrValue::Ints({1, 1, s, s})},
                    {"pads", AttrValue::Ints({p, p, p, p})},
                    {"dilations", AttrValue::Ints({1, 1, 1, 1})},
                    {"groups", AttrValue::Int(shape.groups)},
                    {"data_format", AttrValue::String("NCHW")}},
                   hinted);
}

Attrs PoolAttrs(const std::vector<int64_t>& hinted) {
  return WithHints({{"ksize", AttrValue::Ints({1, 3, 3, 1})},
                    {"strides", AttrValue::Ints({1, 2, 2, 1})},
                    {"pads", AttrValue::Ints({1, 1, 1, 1})},
                    {"dtype", AttrValue::Int(3)},
                    {"dilation", AttrValue::Ints({1, 1, 1, 1})},
                    {"ceil_mode", AttrValue::Bool(false)}},
                   hinted);
}

Value ShapeOf(AtenGraph& g, Value x) {
  return g.Op("Shape", {{"x", x}}, {{"dtype", AttrValue::Int(3)}});
}

AttrValue Epsilon() {
  return AttrValue::Float(static_cast<float>(kBatchNormEpsilon));
}

}  // namespace

Value Convolution(AtenGraph& g, Value x, Value filter, std::optional<Value> bias,
                  const ConvolutionShape& shape) {
  std::vector<GraphBuilder::Input> inputs = {{"x", x}, {"filter", filter}};
  if (bias) inputs.emplace_back("bias", *bias);
  return g.Op("Conv2D", std::move(inputs), AttrsOf(shape, {0, 1}));
}

Value ConvolutionOfInput(AtenGraph& g, Value dy, Value x, Value filter,
                         const ConvolutionShape& shape) {
  return g.Op("Conv2DBackpropInput",
              {{"input_size", ShapeOf(g, x)}, {"filter", filter}, {"out_backprop", dy}},
              AttrsOf(shape, {1, 2}));
}

Value ConvolutionOfFilter(AtenGraph& g, Value dy, Value x, Value filter,
                          const ConvolutionShape& shape) {
  return g.Op("Conv2DBackpropFilter",
              {{"x", x}, {"filter_size", ShapeOf(g, filter)}, {"out_backprop", dy}},
              AttrsOf(shape, {0, 2}));
}

Value ConvolutionOfBias(AtenGraph& g, Value dy) {
  const Value flat = g.Op("FlattenV2", {{"x", dy}},
                          {{"axis", AttrValue::Int(2)}, {"end_axis", AttrValue::Int(3)}});
  return g.Sum(flat, {0, 2});
}

Value BatchNormInference(AtenGraph& g, Value x, const BatchNormValues& values) {
  return g.Op("BNInfer",
              {{"x", x},
               {"scale", values.gamma},
               {"offset", values.beta},
               {"mean", values.mean},
               {"variance", values.variance}},
              WithHints({{"epsilon", Epsilon()}}, {0}));
}

Value BatchNormTraining(AtenGraph& g, Value x, const BatchNormValues& values) {
  const Value mean = g.Op("TensorMove", {{"x", values.mean}});
  const Value variance = g.Op("TensorMove", {{"x", values.variance}});
  const Value all =
      g.Op("BatchNormV3",
           {{"x", x},
            {"weight", values.gamma},
            {"bias", values.beta},
            {"running_mean", mean},
            {"running_var", variance}},
           WithHints({{"epsilon", Epsilon()},
                      {"momentum", AttrValue::Float(static_cast<float>(kBatchNormMomentum))},
                      {"is_training", AttrValue::Bool(true)}},
                     {0}));
  g.Op("Assign", {{"ref", values.mean}, {"value", g.Port(all, 1)}});
  g.Op("Assign", {{"ref", values.variance}, {"value", g.Port(all, 2)}});
  return all;
}

// A named builder: epsilon and is_training are at their defaults and not written.
Value BatchNormBackward(AtenGraph& g, Value dy, Value x, const BatchNormValues& values,
                        Value forward) {
  return g.Op("BatchNormGradV3",
              {{"dy", dy},
               {"x", x},
               {"weight", values.gamma},
               {"running_mean", values.mean},
               {"running_var", values.variance},
               {"save_mean", g.Port(forward, 3)},
               {"save_rstd", g.Port(forward, 4)}},
              WithHints({}, {0, 1}));
}

Value MaxPool(AtenGraph& g, Value x) {
  return g.Op("MaxPoolWithArgmaxV1", {{"x", x}}, PoolAttrs({0}));
}

Value MaxPoolBackward(AtenGraph& g, Value dy, Value x) {
  const Value again = g.Op("MaxPoolWithArgmaxV1", {{"x", x}}, PoolAttrs({0}));
  return g.Op("MaxPoolGradWithArgmaxV1", {{"x", x}, {"grad", dy}, {"argmax", g.Port(again, 1)}},
              PoolAttrs({0, 1, 2}));
}

}  // namespace npumesh::models
