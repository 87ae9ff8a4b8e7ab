#include "graph/onnx/counterparts.h"

#include <algorithm>

#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "graph/onnx/op_table.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

constexpr auto kInt64 = static_cast<int64_t>(DataType::kInt64);

// The integers of a constant; nullopt: it has others.
std::optional<std::vector<int64_t>> IntsIn(const Tensor& tensor) {
  if (tensor.dtype() == DataType::kInt64) {
    const auto values = tensor.as<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (tensor.dtype() != DataType::kInt32) return std::nullopt;
  const auto values = tensor.as<int32_t>();
  return std::vector<int64_t>(values.begin(), values.end());
}

bool IsFloatingInput(const Node& node) {
  return !node.input_descs.empty() && IsFloating(node.input_descs[0].dtype);
}

// ---- shapes and places ----

bool FinishTranspose(OnnxDraft& draft) {
  const auto perm = draft.Known("perm");
  if (perm && !perm->empty()) draft.Ints("perm", *perm);
  return perm.has_value();
}

// Without allowzero a 0 is a size of 0 where x has no elements, and else copies one of x.
bool FinishReshape(OnnxDraft& draft) {
  const TensorDesc& x = draft.from().input_descs[0];
  const std::optional<Shape>& shape = x.shape;
  const bool empty = shape && shape->is_static() && shape->elements() == 0;
  const int64_t allow = draft.from().IntAttr("allowzero", empty ? 1 : 0);
  if (allow == 1 || (allow == -1 && empty)) draft.Int("allowzero", 1);
  return true;
}

bool FinishConcat(OnnxDraft& draft) {
  const auto axis = draft.KnownOne("concat_dim");
  if (axis) draft.Int("axis", *axis);
  return axis.has_value();
}

// Into parts of given sizes, which are an operand or become one.
bool FinishSplit(OnnxDraft& draft) {
  const auto axis = draft.KnownOne("split_dim");
  if (axis) draft.Int("axis", *axis);
  const std::vector<int64_t> sizes = draft.from().IntsAttr("size_splits");
  if (!sizes.empty()) draft.Constant("split", sizes);
  return axis.has_value();
}

bool FinishSlice(OnnxDraft& draft) {
  const auto none = [&](const char* mask) { return draft.from().IntAttr(mask, 0) == 0; };
  return none("begin_mask") && none("end_mask") && none("ellipsis_mask") && none("new_axis_mask") &&
         none("shrink_axis_mask");
}

bool FinishPad(OnnxDraft& draft) {
  draft.Text("mode", draft.from().StringAttr("mode", "constant"));
  return !draft.from().BoolAttr("paddings_contiguous", true);
}

bool FinishFlatten(OnnxDraft& draft) {
  draft.Int("axis", draft.from().IntAttr("axis", 1));
  return true;
}

bool CountsInInt64(OnnxDraft& draft) {
  return draft.from().IntAttr("dtype", static_cast<int64_t>(DataType::kInt32)) == kInt64;
}

bool FinishNonZero(OnnxDraft& draft) {
  return draft.from().BoolAttr("transpose", false) &&
         draft.from().IntAttr("dtype", kInt64) == kInt64;
}

bool FinishRange(OnnxDraft& draft) {
  return !draft.from().BoolAttr("is_closed", false);
}

// ---- lookups and order ----

bool FinishGather(OnnxDraft& draft) {
  const auto axis =
      draft.from().type == "GatherV2" ? draft.KnownOne("axis") : std::optional<int64_t>(0);
  if (axis) draft.Int("axis", *axis);
  return axis && draft.from().IntAttr("batch_dims", 0) == 0;
}

bool FinishGatherElements(OnnxDraft& draft) {
  draft.Int("axis", draft.from().IntAttr("dim", 0));
  return true;
}

bool FinishScatterElements(OnnxDraft& draft) {
  draft.Int("axis", draft.from().IntAttr("axis", 0));
  const std::string reduction = draft.from().StringAttr("reduction", "none");
  draft.Text("reduction", reduction);
  return reduction == "none" || reduction == "add" || reduction == "mul";
}

bool FinishArg(OnnxDraft& draft) {
  draft.Int("axis", draft.from().IntAttr("dimension", 0));
  draft.Int("keepdims", 0);
  return draft.from().IntAttr("dtype", kInt64) == kInt64;
}

bool FinishTopK(OnnxDraft& draft) {
  // A scalar of ours, a vector there.
  onnx::NodeProto& to = draft.to();
  const std::string count = draft.CastBefore(to.input(1), DataType::kInt64);
  to.mutable_input()->RemoveLast();
  draft.Constant("one", {1});
  to.mutable_input()->RemoveLast();
  draft.Operand(draft.Before("Reshape", {count, draft.constants().back().name()}));
  draft.Int("axis", draft.from().IntAttr("dim", -1));
  draft.Int("largest", draft.from().BoolAttr("largest", true) ? 1 : 0);
  draft.Int("sorted", draft.from().BoolAttr("sorted", true) ? 1 : 0);
  return draft.from().IntAttr("indices_dtype", static_cast<int64_t>(DataType::kInt32)) == kInt64;
}

bool FinishCumSum(OnnxDraft& draft) {
  draft.Int("exclusive", draft.from().BoolAttr("exclusive", false) ? 1 : 0);
  draft.Int("reverse", draft.from().BoolAttr("reverse", false) ? 1 : 0);
  return true;
}

// ---- numbers ----

bool FinishCast(OnnxDraft& draft) {
  const std::optional<DataType> dtype = DataTypeFromRuntime(draft.from().IntAttr("dst_type", -1));
  const int number = dtype ? OnnxNumber(*dtype) : 0;
  draft.Int("to", number);
  return number != 0;
}

// Halves have no infinity test before version 20.
bool FinishIsInf(OnnxDraft& draft) {
  const DataType dtype = draft.from().input_descs[0].dtype;
  if (dtype != DataType::kFloat16 && dtype != DataType::kBfloat16) return true;
  const std::string wide = draft.CastBefore(draft.to().input(0), DataType::kFloat);
  draft.to().clear_input();
  draft.Operand(wide);
  return true;
}

bool FinishNotEqual(OnnxDraft& draft) {
  onnx::NodeProto& to = draft.to();
  const std::string equal = draft.Before("Equal", {to.input(0), to.input(1)});
  to.clear_input();
  draft.Operand(equal);
  return true;
}

// The quotient of integers is rounded down, where that of ONNX loses its fraction: it is one less
// where the two kinds of remainder differ.
bool FinishFloorOfIntegers(OnnxDraft& draft) {
  onnx::NodeProto& to = draft.to();
  const std::vector<std::string> pair = {to.input(0), to.input(1)};
  const DataType dtype = draft.from().input_descs[0].dtype;
  const std::string quotient = draft.Before("Div", pair);
  const std::string floored = draft.Before("Mod", pair);
  const std::string truncated = draft.Before("Mod", pair, "Mod_1");
  draft.IntBefore("fmod", 1);
  const std::string same = draft.Before("Equal", {floored, truncated});
  const std::string less = draft.CastBefore(draft.Before("Not", {same}), dtype);
  to.set_op_type("Sub");
  to.clear_input();
  draft.Operand(quotient);
  draft.Operand(less);
  return OnnxNumber(dtype) != 0;
}

bool FinishDiv(OnnxDraft& draft) {
  const Node& from = draft.from();
  const DataType dtype = from.input_descs.empty() ? DataType::kFloat : from.input_descs[0].dtype;
  return !IsInteger(dtype) || IsUnsignedInteger(dtype) || FinishFloorOfIntegers(draft);
}

bool FinishFloorDiv(OnnxDraft& draft) {
  if (!IsFloatingInput(draft.from())) return FinishDiv(draft);
  onnx::NodeProto& to = draft.to();
  const std::string quotient = draft.Before("Div", {to.input(0), to.input(1)});
  to.set_op_type("Floor");
  to.clear_input();
  draft.Operand(quotient);
  return true;
}

bool FinishRelu6(OnnxDraft& draft) {
  const DataType dtype = draft.from().input_descs[0].dtype;
  draft.Scalar("least", 0, dtype);
  draft.Scalar("most", 6, dtype);
  return OnnxNumber(dtype) != 0;
}

bool FinishTruncateDiv(OnnxDraft& draft) {
  return !IsFloatingInput(draft.from());
}

// The remainder with the sign of the divisor is for integers only.
bool FinishFloorMod(OnnxDraft& draft) {
  return !IsFloatingInput(draft.from());
}

bool FinishTruncateMod(OnnxDraft& draft) {
  draft.Int("fmod", 1);
  return true;
}

// ---- many to few ----

bool FinishSoftmax(OnnxDraft& draft) {
  const std::vector<int64_t> axes = draft.from().IntsAttr("axes");
  if (axes.size() > 1 || draft.from().BoolAttr("half_to_float", false)) return false;
  draft.Int("axis", axes.empty() ? -1 : axes[0]);
  return true;
}

bool KeepsDims(OnnxDraft& draft) {
  draft.Int("keepdims", draft.from().BoolAttr("keep_dims", false) ? 1 : 0);
  const bool by_input = !draft.from().type.ends_with('D');
  return !draft.from().BoolAttr("noop_with_empty_axes", by_input);
}

// Sums have their axes as an operand, and all others as an attribute.
bool FinishReduce(OnnxDraft& draft) {
  const auto axes = draft.Known("axes");
  const bool all_fold = KeepsDims(draft);
  if (!axes) return false;
  if (!axes->empty()) draft.Ints("axes", *axes);
  return all_fold || !axes->empty();
}

bool FinishReduceSum(OnnxDraft& draft) {
  const auto axes = draft.Known("axes");
  const bool all_fold = KeepsDims(draft);
  if (!axes) return false;
  if (!axes->empty()) draft.Constant("axes", *axes);
  return all_fold || !axes->empty();
}

bool FinishBatchNorm(OnnxDraft& draft) {
  draft.Float("epsilon", draft.from().FloatAttr("epsilon", 1e-5F));
  return true;
}

bool FinishLayerNorm(OnnxDraft& draft) {
  draft.Int("axis", draft.from().IntAttr("begin_norm_axis", 0));
  draft.Float("epsilon", draft.from().FloatAttr("epsilon", 1e-5F));
  return draft.from().IntAttr("begin_params_axis", 0) == draft.from().IntAttr("begin_norm_axis", 0);
}

bool FinishLayerNormV4(OnnxDraft& draft) {
  const auto normalised = draft.Known("normalized_shape");
  if (normalised) draft.Int("axis", -static_cast<int64_t>(normalised->size()));
  draft.Float("epsilon", draft.from().FloatAttr("epsilon", 1e-5F));
  return normalised && draft.to().input_size() >= 2 && !draft.to().input(1).empty();
}

// ---- products ----

// Products of two matrices; transposed ones are Gemm.
bool FinishMatMul(OnnxDraft& draft) {
  const bool a = draft.from().BoolAttr("transpose_x1", false);
  const bool b = draft.from().BoolAttr("transpose_x2", false);
  if (!a && !b && draft.to().input_size() == 2) return true;
  draft.to().set_op_type("Gemm");
  draft.Int("transA", a ? 1 : 0);
  draft.Int("transB", b ? 1 : 0);
  return true;
}

bool FinishBatchMatMul(OnnxDraft& draft) {
  return !draft.from().BoolAttr("adj_x1", false) && !draft.from().BoolAttr("adj_x2", false) &&
         draft.to().input_size() == 2;
}

// ---- images ----

// The numbers of the image of [1, 1, image...].
std::vector<int64_t> ImageOf(const std::vector<int64_t>& list) {
  return list.size() < 2 ? list : std::vector<int64_t>(list.begin() + 2, list.end());
}

// Pads of ours are pairs.
std::vector<int64_t> PadsOf(const std::vector<int64_t>& pairs) {
  std::vector<int64_t> pads;
  for (size_t i = 0; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  for (size_t i = 1; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  return pads;
}

bool FinishConv(OnnxDraft& draft) {
  const Node& from = draft.from();
  draft.Ints("strides", ImageOf(from.IntsAttr("strides")));
  draft.Ints("pads", PadsOf(from.IntsAttr("pads")));
  const std::vector<int64_t> dilations = ImageOf(from.IntsAttr("dilations"));
  if (!dilations.empty()) draft.Ints("dilations", dilations);
  draft.Int("group", from.IntAttr("groups", 1));
  return from.StringAttr("data_format", "").starts_with("NC") &&
         from.StringAttr("padding", "").empty();
}

// The numbers of the image of [1, image..., 1].
std::vector<int64_t> ImageBefore(const std::vector<int64_t>& list) {
  return list.size() < 2 ? list : std::vector<int64_t>(list.begin() + 1, list.end() - 1);
}

// The first operand with its channels second, and `y`, which has them so, with its channels last.
void ChannelsSecond(OnnxDraft& draft) {
  const std::string second = draft.Before("Transpose", {draft.to().input(0)}, "Second");
  draft.IntsBefore("perm", {0, 3, 1, 2});
  draft.to().set_input(0, second);
}
void ChannelsLast(OnnxDraft& draft, const std::string& y) {
  draft.to().set_op_type("Transpose");
  draft.Operand(y);
  draft.Ints("perm", {0, 2, 3, 1});
}

// What becomes of sums of bytes: their bias and scale are one for all or lie along `shape`.
std::string Rounded(OnnxDraft& draft, std::string sum, const std::string& bias,
                    const std::string& scale, const std::string& zero,
                    const std::vector<int64_t>& shape) {
  const auto dtype = DataTypeFromRuntime(draft.from().IntAttr("dtype", 3));
  const std::string along = draft.ConstantBefore("along", shape);
  if (!bias.empty()) {
    sum = draft.Before("Add", {sum, draft.Before("Reshape", {bias, along}, "Bias")});
  }
  if (scale.empty() || !dtype) return sum;
  const std::string wide = draft.CastBefore(sum, DataType::kFloat);
  const std::string scaled =
      draft.Before("Mul", {wide, draft.Before("Reshape", {scale, along}, "Scale")});
  if (*dtype == DataType::kFloat) return scaled;
  const std::string scalar = draft.ConstantBefore("scalar", {});
  const auto one = [&](const std::string& below, int64_t value, DataType type) {
    const std::string wide_one = draft.ConstantBefore(below, {value});
    return draft.Before("Reshape", {draft.CastBefore(wide_one, type, below + "/Cast"), scalar},
                        below + "/Reshape");
  };
  const std::string offset = zero.empty() ? one("zero", 0, *dtype)
                                          : draft.Before("Reshape", {zero, scalar}, "zero/Reshape");
  return draft.Before("QuantizeLinear", {scaled, one("one", 1, DataType::kFloat), offset});
}

// Operands that a draft has until now, `count` of them: one that is left out is empty.
std::vector<std::string> TakenOperands(OnnxDraft& draft, int count) {
  std::vector<std::string> operands;
  for (int i = 0; i < count; ++i) {
    operands.push_back(i < draft.to().input_size() ? draft.to().input(i) : "");
  }
  draft.to().clear_input();
  return operands;
}

// Operands: x, filter, their zeros, bias, scale, zero of y.
bool FinishLinearConv(OnnxDraft& draft) {
  const Node& from = draft.from();
  const std::vector<std::string> operands = TakenOperands(draft, 7);
  for (size_t i = 0; i < 4; ++i) draft.Operand(operands[i]);
  ChannelsSecond(draft);
  draft.Ints("strides", ImageBefore(from.IntsAttr("strides")));
  draft.Ints("pads", PadsOf(from.IntsAttr("pads")));
  const std::vector<int64_t> dilations = ImageBefore(from.IntsAttr("dilations"));
  if (!dilations.empty()) draft.Ints("dilations", dilations);
  draft.Int("group", from.IntAttr("groups", 1));
  const std::string sum = draft.MoveBefore();
  ChannelsLast(draft, Rounded(draft, sum, operands[4], operands[5], operands[6], {-1, 1, 1}));
  return true;
}

bool FinishLinearMatMul(OnnxDraft& draft) {
  const Node& from = draft.from();
  std::vector<std::string> operands = TakenOperands(draft, 7);
  if (from.BoolAttr("transpose_x2", false)) {
    const std::optional<Shape>& shape = from.input_descs[1].shape;
    if (!shape || !shape->has_rank() || shape->rank() < 2) return false;
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < shape->rank(); ++d) perm.push_back(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    operands[1] = draft.Before("Transpose", {operands[1]});
    draft.IntsBefore("perm", perm);
  }
  for (size_t i = 0; i < 4; ++i) draft.Operand(operands[i]);
  const std::string sum = draft.MoveBefore();
  draft.to().set_op_type("Identity");
  draft.Operand(Rounded(draft, sum, operands[4], operands[5], operands[6], {-1}));
  return true;
}

// Two tensors with their scales and zeros, scale and zero of y: the way through floats.
bool FinishLinearPair(OnnxDraft& draft) {
  const bool product = draft.from().type == "QLinearMul";
  std::vector<std::string> operands = TakenOperands(draft, 8);
  const std::string scalar = draft.ConstantBefore("scalar", {});
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    operands[i] = draft.Before("Reshape", {operands[i], scalar}, fmt::format("Reshape_{}", i));
  }
  const std::string left =
      draft.Before("DequantizeLinear", {operands[0], operands[1], operands[2]}, "Left");
  const std::string right =
      draft.Before("DequantizeLinear", {operands[3], operands[4], operands[5]}, "Right");
  draft.Operand(draft.Before(product ? "Mul" : "Add", {left, right}));
  draft.Operand(operands[6]);
  draft.Operand(operands[7]);
  return true;
}

// Places are the bits of bytes; those of a byte with a sign count from the end.
bool FinishByteTable(OnnxDraft& draft) {
  const std::vector<std::string> operands = TakenOperands(draft, 2);
  draft.Operand(operands[1]);
  draft.Operand(draft.CastBefore(operands[0], DataType::kInt32));
  return true;
}

bool FinishPool(OnnxDraft& draft) {
  const Node& from = draft.from();
  const bool last = from.StringAttr("data_format", "NCHW") == "NHWC";
  const auto image = [last](const std::vector<int64_t>& list) {
    return last ? ImageBefore(list) : ImageOf(list);
  };
  if (last) ChannelsSecond(draft);
  draft.Ints("kernel_shape", image(from.IntsAttr("ksize")));
  draft.Ints("strides", image(from.IntsAttr("strides")));
  draft.Ints("pads", PadsOf(from.IntsAttr("pads")));
  if (from.BoolAttr("ceil_mode", false)) draft.Int("ceil_mode", 1);
  const bool average = draft.to().op_type() == "AveragePool";
  if (average && !from.BoolAttr("exclusive", true)) draft.Int("count_include_pad", 1);
  if (last) ChannelsLast(draft, draft.MoveBefore());
  return from.StringAttr("padding_mode", "CALCULATED") == "CALCULATED" &&
         !from.BoolAttr("global_pooling", false) && from.IntAttr("divisor_override", 0) == 0;
}

// Operands of ONNX's Resize: x, no region, no scales, all sizes. `size`: of rows and columns.
void ResizeOperands(OnnxDraft& draft, const std::string& x, const std::string& size) {
  const std::string others = draft.Before("Shape", {x});
  draft.IntBefore("start", 0);
  draft.IntBefore("end", 2);
  const std::string sizes = draft.Before("Concat", {others, size});
  draft.IntBefore("axis", 0);
  for (const std::string& operand : {x, std::string(), std::string(), sizes})
    draft.Operand(operand);
}

// `mode`: of ONNX. False: of an image with channels last.
bool FinishResize(OnnxDraft& draft, const std::string& mode) {
  const Node& from = draft.from();
  const bool corners = from.BoolAttr("align_corners", false);
  const bool halves = from.BoolAttr("half_pixel_centers", false);
  const std::vector<std::string> operands = TakenOperands(draft, 2);
  ResizeOperands(draft, operands[0], operands[1]);
  draft.Text("mode", mode);
  draft.Text("coordinate_transformation_mode", corners  ? "align_corners"
                                               : halves ? "half_pixel"
                                                        : "asymmetric");
  // Places of half pixels, from which ONNX rounds, lie half a place lower than ours.
  if (mode == "nearest")
    draft.Text("nearest_mode", corners || halves ? "round_prefer_ceil" : "floor");
  const std::string& layout = from.input_descs[0].layout;
  return layout != "NHWC" && from.FindAttr("dtype") == nullptr;
}

bool FinishNearest(OnnxDraft& draft) {
  return FinishResize(draft, "nearest");
}
bool FinishLinear(OnnxDraft& draft) {
  return FinishResize(draft, "linear");
}

bool FinishCubic(OnnxDraft& draft) {
  const Node& from = draft.from();
  const std::vector<std::string> operands = TakenOperands(draft, 1);
  const std::string size = draft.ConstantBefore("size", from.IntsAttr("output_size"));
  ResizeOperands(draft, operands[0], size);
  draft.Text("mode", "cubic");
  draft.Text("coordinate_transformation_mode",
             from.BoolAttr("align_corners", false) ? "align_corners" : "half_pixel");
  return from.FloatAttr("scales_h", 0) == 0 && from.FloatAttr("scales_w", 0) == 0;
}

// Operators that are written otherwise than they are read, or read into others.
std::vector<Counterpart> SpecialRows() {
  using Ports = std::vector<std::string_view>;
  const Ports x = {"x"}, pair = {"x1", "x2"};
  return {
      {"AddV2", "Add", pair},
      {"ByteTable", "Gather", {"x", "table"}, FinishByteTable},
      {"QLinearAdd",
       "QuantizeLinear",
       {"x1", "x1_scale", "x1_zero", "x2", "x2_scale", "x2_zero", "y_scale", "y_zero"},
       FinishLinearPair},
      {"QLinearMul",
       "QuantizeLinear",
       {"x1", "x1_scale", "x1_zero", "x2", "x2_scale", "x2_zero", "y_scale", "y_zero"},
       FinishLinearPair},
      {"QLinearConv",
       "ConvInteger",
       {"x", "filter", "x_zero", "filter_zero", "bias", "scale", "y_zero"},
       FinishLinearConv},
      {"QLinearMatMul",
       "MatMulInteger",
       {"x1", "x2", "x1_zero", "x2_zero", "bias", "scale", "y_zero"},
       FinishLinearMatMul},
      {"ArgMaxD", "ArgMax", x, FinishArg},
      {"ArgMinD", "ArgMin", x, FinishArg},
      {"AvgPoolV2", "AveragePool", x, FinishPool},
      {"BNInfer",
       "BatchNormalization",
       {"x", "scale", "offset", "mean", "variance"},
       FinishBatchNorm},
      {"BatchMatMul", "MatMul", pair, FinishBatchMatMul},
      {"BatchMatMulV2", "MatMul", {"x1", "x2", "bias"}, FinishBatchMatMul},
      {"BroadcastTo", "Expand", {"x", "shape"}, {}, "shape"},
      {"Cast", "Cast", x, FinishCast},
      {"ConcatD", "Concat", x, FinishConcat},
      {"ConcatV2", "Concat", x, FinishConcat},
      {"Conv2D", "Conv", {"x", "filter", "bias"}, FinishConv},
      {"Conv3D", "Conv", {"x", "filter", "bias"}, FinishConv},
      {"Cumsum", "CumSum", {"x", "axis"}, FinishCumSum},
      {"Div", "Div", pair, FinishDiv},
      {"Expand", "Expand", {"x", "shape"}, {}, "shape"},
      {"Fill", "Expand", {"value", "dims"}, {}, "dims"},
      {"Flatten", "Flatten", x, FinishFlatten},
      {"FloorDiv", "Div", pair, FinishFloorDiv},
      {"FloorMod", "Mod", pair, FinishFloorMod},
      {"Gather", "Gather", {"x", "indices"}, FinishGather},
      {"GatherElements", "GatherElements", {"x", "index"}, FinishGatherElements},
      {"GatherNd", "GatherND", {"x", "indices"}, {}, "indices"},
      {"GatherV2", "Gather", {"x", "indices"}, FinishGather},
      {"Identity", "Identity", x},
      {"IsInf", "IsInf", x, FinishIsInf},
      {"LayerNorm", "LayerNormalization", {"x", "gamma", "beta"}, FinishLayerNorm},
      {"LayerNormV3", "LayerNormalization", {"x", "gamma", "beta"}, FinishLayerNorm},
      {"LayerNormV4", "LayerNormalization", {"x", "gamma", "beta"}, FinishLayerNormV4},
      {"LogSoftmaxV2", "LogSoftmax", {"logits"}, FinishSoftmax},
      {"MatMul", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MatMulV2", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MatMulV3", "MatMul", {"x1", "x2", "bias"}, FinishMatMul},
      {"MaxPoolV3", "MaxPool", x, FinishPool},
      {"Maximum", "Max", pair},
      {"Minimum", "Min", pair},
      {"NonZero", "NonZero", x, FinishNonZero},
      {"NotEqual", "Not", pair, FinishNotEqual},
      {"PadV3", "Pad", {"x", "paddings", "constant_values"}, FinishPad, "paddings"},
      {"Pow", "Pow", pair},
      {"Range", "Range", {"start", "limit", "delta"}, FinishRange},
      {"RealDiv", "Div", pair},
      {"ReduceMax", "ReduceMax", x, FinishReduce},
      {"ReduceMaxD", "ReduceMax", x, FinishReduce},
      {"ReduceMean", "ReduceMean", x, FinishReduce},
      {"ReduceMeanD", "ReduceMean", x, FinishReduce},
      {"ReduceMin", "ReduceMin", x, FinishReduce},
      {"ReduceMinD", "ReduceMin", x, FinishReduce},
      {"ReduceProd", "ReduceProd", x, FinishReduce},
      {"ReduceProdD", "ReduceProd", x, FinishReduce},
      {"ReduceSum", "ReduceSum", x, FinishReduceSum},
      {"ReduceSumD", "ReduceSum", x, FinishReduceSum},
      {"Relu6", "Clip", x, FinishRelu6},
      {"Reshape", "Reshape", {"x", "shape"}, FinishReshape, "shape"},
      {"ResizeBilinearV2", "Resize", {"x", "size"}, FinishLinear, "size"},
      {"ResizeNearestNeighborV2", "Resize", {"x", "size"}, FinishNearest, "size"},
      {"ScatterElements", "ScatterElements", {"data", "indices", "updates"}, FinishScatterElements},
      {"Shape", "Shape", x, CountsInInt64},
      {"Size", "Size", x, CountsInInt64},
      {"SoftmaxV2", "Softmax", x, FinishSoftmax},
      {"SplitV", "Split", {"x", "size_splits"}, FinishSplit, "size_splits"},
      {"SplitVD", "Split", x, FinishSplit},
      {"SqueezeV3", "Squeeze", {"x", "axes"}, {}, "axes"},
      {"StridedSliceV2", "Slice", {"x", "begin", "end", "axes", "strides"}, FinishSlice},
      {"TensorScatterUpdate", "ScatterND", {"x", "indices", "updates"}, {}, "indices"},
      {"Tile", "Tile", {"x", "multiples"}, {}, "multiples"},
      {"TopKV2", "TopK", {"x", "k"}, FinishTopK},
      {"Transpose", "Transpose", x, FinishTranspose},
      {"TransposeD", "Transpose", x, FinishTranspose},
      {"TruncateDiv", "Div", pair, FinishTruncateDiv},
      {"TruncateMod", "Mod", pair, FinishTruncateMod},
      {"UnsqueezeV3", "Unsqueeze", {"x", "axes"}, {}, "axes"},
      {"UpsampleBicubic2d", "Resize", {"input"}, FinishCubic},
  };
}

// The attributes that both have, which are floats; ONNX has no place for values of others.
bool FinishPair(const OpSchema& ours, const NodePair& pair, OnnxDraft& draft) {
  for (const AttrSpec& spec : ours.attrs) {
    const float usual = *spec.fallback->get<float>();
    const float value = draft.from().FloatAttr(spec.name, usual);
    const auto both = std::find_if(pair.attrs.begin(), pair.attrs.end(),
                                   [&](const FloatPair& each) { return each.ours == spec.name; });
    if (both == pair.attrs.end() && value != usual) return false;
    if (both != pair.attrs.end()) draft.Float(std::string(both->theirs), value);
  }
  return true;
}

std::vector<Counterpart> MakeCounterparts() {
  std::vector<Counterpart> rows = SpecialRows();
  std::set<std::string_view> special;
  for (const Counterpart& row : rows) special.insert(row.ours);
  for (const OnnxOp& op : OnnxOps()) {
    if (!op.pair || op.since > kWrittenOpset || special.contains(op.pair->type)) continue;
    const OpSchema& ours = BuiltinOps().Find(op.pair->type)->schema;
    Counterpart& row = rows.emplace_back(Counterpart{ours.type, op.name, {}});
    for (const PortSpec& port : ours.inputs) row.ports.push_back(port.name);
    row.finish = [&](OnnxDraft& draft) { return FinishPair(ours, *op.pair, draft); };
  }
  std::sort(rows.begin(), rows.end(),
            [](const Counterpart& a, const Counterpart& b) { return a.ours < b.ours; });
  return rows;
}

}  // namespace

onnx::TensorProto VectorProto(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

std::optional<std::vector<int64_t>> OnnxDraft::Known(std::string_view name) {
  const int at = from_.FindInput(name);
  if (at < 0) {
    if (from_.FindAttr(name) == nullptr) return std::nullopt;
    const std::vector<int64_t> list = from_.IntsAttr(name);
    return list.empty() && from_.FindAttr(name)->get<int64_t>() != nullptr
               ? std::vector<int64_t>{from_.IntAttr(name, 0)}
               : list;
  }
  const std::optional<Value>& value = from_.inputs[static_cast<size_t>(at)];
  if (!value || !IsWeightNode(graph_.node(value->node))) return std::nullopt;
  const Result<Tensor> constant = LoadWeight(graph_.node(value->node), path_);
  if (!constant.ok()) return std::nullopt;
  Take(name);
  return IntsIn(*constant);
}

std::optional<int64_t> OnnxDraft::KnownOne(std::string_view name) {
  const auto values = Known(name);
  return values && values->size() == 1 ? std::optional((*values)[0]) : std::nullopt;
}

bool OnnxDraft::complete() const {
  for (size_t i = 0; i < from_.inputs.size(); ++i) {
    if (from_.inputs[i] && !taken_.contains(from_.input_descs[i].name)) return false;
  }
  return true;
}

onnx::AttributeProto& OnnxDraft::Added(const std::string& name,
                                       onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *to_.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void OnnxDraft::Int(const std::string& name, int64_t value) {
  Added(name, onnx::AttributeProto::INT).set_i(value);
}

void OnnxDraft::Float(const std::string& name, float value) {
  Added(name, onnx::AttributeProto::FLOAT).set_f(value);
}

void OnnxDraft::Text(const std::string& name, const std::string& value) {
  Added(name, onnx::AttributeProto::STRING).set_s(value);
}

void OnnxDraft::Ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = Added(name, onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

void OnnxDraft::Constant(const std::string& below, const std::vector<int64_t>& values) {
  constants_.push_back(VectorProto(from_.name + "/onnx/" + below, values));
  Operand(constants_.back().name());
}

void OnnxDraft::Scalar(const std::string& below, int64_t value, DataType dtype) {
  onnx::TensorProto& constant =
      constants_.emplace_back(VectorProto(from_.name + "/onnx/" + below, {value}));
  constant.clear_dims();
  Operand(CastBefore(constant.name(), dtype, below + "/Cast"));
}

std::string OnnxDraft::Before(const std::string& type, const std::vector<std::string>& operands,
                              const std::string& below) {
  onnx::NodeProto& node = before_.emplace_back();
  node.set_name(from_.name + "/onnx/" + (below.empty() ? type : below));
  node.set_op_type(type);
  for (const std::string& operand : operands) node.add_input(operand);
  node.add_output(node.name());
  return node.name();
}

void OnnxDraft::IntBefore(const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *before_.back().add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void OnnxDraft::IntsBefore(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = *before_.back().add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

std::string OnnxDraft::ConstantBefore(const std::string& below,
                                      const std::vector<int64_t>& values) {
  return constants_.emplace_back(VectorProto(from_.name + "/onnx/" + below, values)).name();
}

std::string OnnxDraft::MoveBefore() {
  onnx::NodeProto& node = before_.emplace_back(to_);
  node.set_name(from_.name + "/onnx/" + node.op_type());
  node.clear_output();
  node.add_output(node.name());
  to_.clear_input();
  to_.clear_attribute();
  return node.name();
}

std::string OnnxDraft::CastBefore(const std::string& operand, DataType dtype,
                                  const std::string& below) {
  const std::string name = Before("Cast", {operand}, below);
  IntBefore("to", OnnxNumber(dtype));
  return name;
}

const std::vector<Counterpart>& Counterparts() {
  static const auto* const rows = new std::vector<Counterpart>(MakeCounterparts());
  return *rows;
}

const Counterpart* FindCounterpart(std::string_view type) {
  const std::vector<Counterpart>& rows = Counterparts();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Counterpart& each) { return each.ours == type; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace npumesh
