// StringFormat and PrintV2: what torchair.ops.npu_print becomes.
//
// A text is a vector of uint8 as long as the longest one can be, with zeros after its end: tensors
// have elements of fixed width here.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/files/system_call.h"

namespace npumesh {
namespace {

constexpr int64_t kLongestNumber = 26;  // of a float64, sign and exponent included
constexpr std::string_view kCutElements = "...";
constexpr std::string_view kCutRows = "……";

// ---- how a tensor is written ----

// Appends one element, which `load` makes the number of.
using AppendFn = void (*)(ConvertFn load, const std::byte* element, std::string& text);

template <typename Number>
void AppendNumber(ConvertFn load, const std::byte* element, std::string& text) {
  Number value{};
  load(element, &value, 1);
  fmt::format_to(std::back_inserter(text), "{}", value);
}

void AppendBool(ConvertFn, const std::byte* element, std::string& text) {
  text += *element != std::byte{0} ? "True" : "False";
}

// How the elements of a type are written; `append` is null where they cannot be.
struct ElementText {
  size_t width = 0;
  ConvertFn load = nullptr;
  AppendFn append = nullptr;
};

ElementText ElementTextOf(DataType dtype) {
  const auto width = static_cast<size_t>(BitsOf(dtype)) / 8;
  const auto as = [&](DataType number, AppendFn append) {
    return ElementText{width, FindConvert(dtype, number), append};
  };
  if (dtype == DataType::kBool) return as(dtype, AppendBool);
  if (dtype == DataType::kDouble) return as(dtype, AppendNumber<double>);
  if (kFloats.Contains(dtype)) return as(DataType::kFloat, AppendNumber<float>);
  if (!IsInteger(dtype) || width == 0) return {};
  return IsSignedInteger(dtype) ? as(DataType::kInt64, AppendNumber<int64_t>)
                                : as(DataType::kUint64, AppendNumber<uint64_t>);
}

// A tensor as text: "[0 1 2 ... 7 8 9]", each row on a line. Of each dimension the first
// and the last `ends` elements; all of them when `ends` is negative.
class TensorText {
 public:
  TensorText(Shape shape, ElementText element, int64_t ends)
      : shape_(std::move(shape)), element_(element), ends_(ends) {}

  void Append(const void* data, std::string& text) const {
    AppendFrom(0, static_cast<const std::byte*>(data), text);
  }

  // No text is longer; INT64_MAX: more bytes than can be counted.
  int64_t MostBytes() const {
    const int64_t brackets = 2 + static_cast<int64_t>(kCutRows.size()) + 3 * (shape_.rank() + 1);
    int64_t entries = 1;
    int64_t bytes = 0;
    bool fits = true;
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      int64_t level = 0;
      fits = fits && !__builtin_mul_overflow(entries, brackets, &level) &&
             !__builtin_add_overflow(bytes, level, &bytes) &&
             !__builtin_mul_overflow(entries, Shown(axis), &entries);
    }
    int64_t numbers = 0;
    fits = fits && !__builtin_mul_overflow(entries, kLongestNumber + brackets, &numbers) &&
           !__builtin_add_overflow(bytes, numbers, &bytes);
    return fits ? bytes : INT64_MAX;
  }

 private:
  bool Cuts(int axis) const { return ends_ >= 0 && ends_ < shape_[axis] - ends_; }
  int64_t Shown(int axis) const { return Cuts(axis) ? 2 * ends_ : shape_[axis]; }

  void AppendSpace(int axis, std::string& text) const {
    const int inner = shape_.rank() - 1 - axis;
    text.append(static_cast<size_t>(inner), '\n');
    text.append(inner == 0 ? 1 : static_cast<size_t>(axis) + 1, ' ');
  }

  void AppendFrom(int axis, const std::byte* data, std::string& text) const {
    if (axis == shape_.rank()) return element_.append(element_.load, data, text);
    const int64_t stride =
        ElementsBetween(shape_, axis + 1, shape_.rank()) * static_cast<int64_t>(element_.width);
    const int64_t cut = Cuts(axis) ? ends_ : shape_[axis];
    text += '[';
    for (int64_t i = 0; i < shape_[axis]; ++i) {
      if (i > 0) AppendSpace(axis, text);
      if (i == cut) {
        text += axis + 1 == shape_.rank() ? kCutElements : kCutRows;
        i = shape_[axis] - ends_;
        if (i == shape_[axis]) break;
        AppendSpace(axis, text);
      }
      AppendFrom(axis + 1, data + i * stride, text);
    }
    text += ']';
  }

  Shape shape_;
  ElementText element_;
  int64_t ends_;
};

// ---- StringFormat ----

struct FormatPlan : Planned {
  std::vector<std::string> around;  // the template between the placeholders
  std::vector<TensorText> tensors;  // one less
  int first = 0;                    // slot
  int64_t most_bytes = 1;           // with the zero at the end
};

std::vector<std::string> SplitTemplate(const std::string& text, const std::string& placeholder) {
  std::vector<std::string> pieces;
  size_t from = 0;
  for (size_t at = text.find(placeholder); !placeholder.empty() && at != text.npos;
       at = text.find(placeholder, from)) {
    pieces.push_back(text.substr(from, at - from));
    from = at + placeholder.size();
  }
  pieces.push_back(text.substr(from));
  return pieces;
}

FormatPlan PlanFormat(const OpContext& op, Check& check) {
  FormatPlan plan;
  plan.first = op.slot("x");
  plan.around = SplitTemplate(op.attr_string("template"), op.attr_string("placeholder"));
  check.That(plan.around.size() == static_cast<size_t>(op.count("x")) + 1,
             "the template has {} placeholders \"{}\", but {} tensors are connected",
             plan.around.size() - 1, op.attr_string("placeholder"), op.count("x"));
  for (const std::string& text : plan.around) plan.most_bytes += std::ssize(text);
  for (int i = 0; check.ok() && i < op.count("x"); ++i) {
    const TensorType& x = op.in(plan.first + i);
    const ElementText element = ElementTextOf(x.dtype);
    check.Supported(element.append != nullptr, "tensors of {} cannot be written as text",
                    Name(x.dtype));
    plan.tensors.emplace_back(x.shape, element, op.attr_int("summarize"));
    const int64_t bytes = plan.tensors.back().MostBytes();
    check.That(!__builtin_add_overflow(plan.most_bytes, bytes, &plan.most_bytes),
               "the text of {} is too long", x);
  }
  plan.outputs = {{DataType::kUint8, {plan.most_bytes}}};
  return plan;
}

Status RunFormat(const FormatPlan& plan, const KernelArgs& args) {
  std::string text = plan.around[0];
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    plan.tensors[i].Append(args.in[static_cast<size_t>(plan.first) + i], text);
    text += plan.around[i + 1];
  }
  const auto room = static_cast<size_t>(plan.most_bytes);
  const size_t bytes = std::min(text.size(), room - 1);
  std::memcpy(args.out[0], text.data(), bytes);
  std::memset(static_cast<char*>(args.out[0]) + bytes, 0, room - bytes);
  return Status();
}

// ---- PrintV2 ----

struct PrintPlan : Planned {
  int descriptor = -1;
  size_t bytes = 0;
};

PrintPlan PlanPrint(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  check.Supported(x.dtype == DataType::kUint8 && x.shape.rank() == 1,
                  "x is {}, expected the text of a StringFormat, which is a vector of uint8", x);
  PrintPlan plan;
  plan.bytes = x.bytes();
  const std::string name = op.attr_string("output_stream");
  plan.descriptor = name == "stderr" ? STDERR_FILENO : name == "stdout" ? STDOUT_FILENO : -1;
  check.Supported(plan.descriptor >= 0, "output_stream \"{}\", expected stderr or stdout", name);
  return plan;
}

// The line to print: control characters, which could move a terminal's cursor, are spelled out.
std::string LineOf(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, text.find('\0'))) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (control && c != '\n' && c != '\t') {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  return line + '\n';
}

Status RunPrint(const PrintPlan& plan, const KernelArgs& args) {
  const std::string line = LineOf({static_cast<const char*>(args.in[0]), plan.bytes});
  const int reason = WriteAll(plan.descriptor, line);
  if (reason == 0) return Status();
  return Error(Code::kIo, "{}: the text cannot be written: {}", plan.who, std::strerror(reason));
}

}  // namespace

void RegisterTextOps(OpRegistry& registry) {
  registry.Add(Define<PlanFormat, RunFormat>(
      "StringFormat(x...; template=\"%s\", placeholder=\"%s\", summarize=3) -> y"));
  registry.Add(Define<PlanPrint, RunPrint>("PrintV2(x; output_stream=\"stderr\") -> ",
                                           {.side_effect = true}));
}

}  // namespace npumesh
