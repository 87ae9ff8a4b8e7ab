#include "graph/passes/rewrite/precision_rule.h"

namespace npumesh {
namespace {

constexpr DataType kF = DataType::kFloat, kH = DataType::kFloat16, kB = DataType::kBfloat16;
constexpr DataType kEnd = DataType::kUndefined;

// For operators that are declared with float32, float16 and bfloat16.
using ByDeclared = std::array<PreferredTypes, 3>;

constexpr ByDeclared kAsDeclared = {
    {PreferredTypes{kF, kEnd}, PreferredTypes{kH, kEnd}, PreferredTypes{kB, kEnd}}};
constexpr ByDeclared kHalfInNeed = {
    {PreferredTypes{kF, kH, kEnd}, PreferredTypes{kH, kF, kEnd}, PreferredTypes{kB, kF, kH}}};
constexpr ByDeclared kHalfFirst = {
    {PreferredTypes{kH, kF, kEnd}, PreferredTypes{kH, kF, kEnd}, PreferredTypes{kB, kF, kH}}};
constexpr ByDeclared kHalfAlways = {
    {PreferredTypes{kH, kF, kEnd}, PreferredTypes{kH, kF, kEnd}, PreferredTypes{kH, kB, kF}}};
constexpr ByDeclared kFloatAlways = {
    {PreferredTypes{kF, kH, kEnd}, PreferredTypes{kF, kH, kEnd}, PreferredTypes{kF, kB, kEnd}}};
constexpr ByDeclared kBrainInNeed = {
    {PreferredTypes{kF, kB, kEnd}, PreferredTypes{kH, kF, kEnd}, PreferredTypes{kB, kF, kEnd}}};
constexpr ByDeclared kBrainFirst = {
    {PreferredTypes{kB, kF, kEnd}, PreferredTypes{kH, kF, kEnd}, PreferredTypes{kB, kF, kEnd}}};

}  // namespace

struct PrecisionRule::Row {
  std::string_view mode;
  bool mixed;
  ByDeclared lowered;
  ByDeclared others;
};

const PrecisionRule::Row PrecisionRule::kRows[] = {
    {"must_keep_origin_dtype", false, kAsDeclared, kAsDeclared},
    {"allow_fp32_to_fp16", false, kHalfFirst, kHalfInNeed},
    {"force_fp16", false, kHalfAlways, kHalfAlways},
    {"force_fp32", false, kFloatAlways, kFloatAlways},
    {"cube_fp16in_fp32out", false, kFloatAlways, kFloatAlways},
    {"allow_mix_precision", true, kHalfAlways, kHalfInNeed},
    {"allow_mix_precision_fp16", true, kHalfAlways, kHalfInNeed},
    {"allow_mix_precision_bf16", true, kBrainFirst, kBrainInNeed},
    {"allow_fp32_to_bf16", false, kBrainInNeed, kBrainInNeed},
};

Result<PrecisionRule> PrecisionRule::Of(
    std::string_view mode, std::map<std::string, PrecisionClass, std::less<>> classes) {
  for (const Row& row : kRows) {
    if (row.mode != mode) continue;
    PrecisionRule rule;
    rule.row_ = &row;
    if (row.mixed) rule.classes_ = std::move(classes);
    return rule;
  }
  return Error(Code::kInvalidArgument, "precision_mode: \"{}\" is no mode; see docs/precision.md",
               mode);
}

std::string_view PrecisionRule::mode() const {
  return row_ == nullptr ? "" : row_->mode;
}

bool PrecisionRule::mixed() const {
  return row_ != nullptr && row_->mixed;
}

PrecisionClass PrecisionRule::ClassOf(const Operator& op) const {
  if (op.precision == PrecisionClass::kKept) return PrecisionClass::kKept;
  const auto found = classes_.find(op.schema.type);
  return found == classes_.end() ? op.precision : found->second;
}

PreferredTypes PrecisionRule::Preferred(DataType declared, bool lowered) const {
  const ByDeclared& types = lowered ? row_->lowered : row_->others;
  if (declared == kF) return types[0];
  return declared == kH ? types[1] : types[2];
}

std::string_view Name(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::kWhite:
      return "white";
    case PrecisionClass::kBlack:
      return "black";
    case PrecisionClass::kKept:
      return "kept";
    case PrecisionClass::kGrey:
      break;
  }
  return "grey";
}

}  // namespace npumesh
