#include "graph/ops/check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

constexpr int kDataTypes = 64;  // more than the enumeration has

// "a, b or c".
std::string Alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    text += i == 0 ? "" : last ? " or " : ", ";
    text += names[i];
  }
  return text;
}

template <typename T>
std::string AlternativesOf(std::initializer_list<T> values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(fmt::format("{}", value));
  return Alternatives(texts);
}

}  // namespace

std::string TypeSet::ToString() const {
  std::vector<std::string> names;
  for (int number = 0; number < kDataTypes; ++number) {
    const auto type = static_cast<DataType>(number);
    if (Contains(type)) names.emplace_back(Name(type));
  }
  return Alternatives(names);
}

const TensorType* Check::Seen(std::string_view port) const {
  if (!ok() || !op_.has(port)) return nullptr;
  const TensorType& type = op_.in(port);
  for (const PortSpec& spec : op_.schema().inputs) {
    if (spec.name != port || spec.kind != PortKind::kOptional) continue;
    return type.shape.elements() == 0 ? nullptr : &type;
  }
  return &type;
}

void Check::Object(std::string_view text) {
  status_ = Error(Code::kInvalidArgument, "{}: {}", op_.Who(), text);
}

void Check::Expected(std::string_view port, const TensorType& seen, std::string_view expected) {
  Object(fmt::format("{} is {}, expected {}", port, seen.ToString(), expected));
}

void Check::Type(std::string_view port, TypeSet expected) {
  const TensorType* seen = Seen(port);
  if (seen == nullptr || expected.Contains(seen->dtype)) return;
  Expected(port, *seen, expected.ToString());
}

void Check::Rank(std::string_view port, TypeSet expected, int rank) {
  Type(port, expected);
  const TensorType* seen = Seen(port);
  if (seen == nullptr || seen->shape.rank() == rank) return;
  Expected(port, *seen, fmt::format("{} dimension{}", rank, rank == 1 ? "" : "s"));
}

void Check::RankAtLeast(std::string_view port, TypeSet expected, int rank) {
  Type(port, expected);
  const TensorType* seen = Seen(port);
  if (seen == nullptr || seen->shape.rank() >= rank) return;
  Expected(port, *seen, fmt::format("at least {} dimension{}", rank, rank == 1 ? "" : "s"));
}

Check::HeightAndWidth Check::Matrix(std::string_view port, TypeSet expected) {
  Rank(port, expected, 2);
  const TensorType* seen = Seen(port);
  return seen == nullptr ? HeightAndWidth() : HeightAndWidth{seen->shape[0], seen->shape[1]};
}

void Check::Shape(std::string_view port, const npumesh::Shape& expected) {
  const TensorType* seen = Seen(port);
  if (seen == nullptr || seen->shape == expected) return;
  Expected(port, *seen, expected.ToString());
}

void Check::TypeAndShape(std::string_view port, TypeSet expected, const npumesh::Shape& shape) {
  const TensorType* seen = Seen(port);
  if (seen == nullptr || (expected.Contains(seen->dtype) && seen->shape == shape)) return;
  Expected(port, *seen, fmt::format("{} of shape {}", expected.ToString(), shape.ToString()));
}

void Check::Elements(std::string_view port, std::initializer_list<int64_t> counts) {
  const TensorType* seen = Seen(port);
  if (seen == nullptr) return;
  const int64_t elements = seen->shape.elements();
  if (std::find(counts.begin(), counts.end(), elements) != counts.end()) return;
  Expected(port, *seen, AlternativesOf(counts) + " elements");
}

void Check::SameType(std::string_view port, std::string_view other) {
  const TensorType *seen = Seen(port), *like = Seen(other);
  if (seen == nullptr || like == nullptr || seen->dtype == like->dtype) return;
  Expected(port, *seen, fmt::format("{} like {}", Name(like->dtype), other));
}

void Check::SameTensor(std::string_view port, std::string_view other) {
  const TensorType *seen = Seen(port), *like = Seen(other);
  if (seen == nullptr || like == nullptr || *seen == *like) return;
  Expected(port, *seen, fmt::format("{} like {}", like->ToString(), other));
}

void Check::OneOf(std::string_view attribute, std::initializer_list<std::string_view> texts) {
  if (!ok()) return;
  const std::string seen = op_.attr_string(attribute);
  if (std::find(texts.begin(), texts.end(), seen) != texts.end()) return;
  Object(fmt::format("{} is \"{}\", expected {}", attribute, seen, AlternativesOf(texts)));
}

void Check::OneOf(std::string_view attribute, std::initializer_list<int64_t> numbers) {
  if (!ok()) return;
  const int64_t seen = op_.attr_int(attribute);
  if (std::find(numbers.begin(), numbers.end(), seen) != numbers.end()) return;
  Object(fmt::format("{} is {}, expected {}", attribute, seen, AlternativesOf(numbers)));
}

int64_t Check::Between(std::string_view attribute, int64_t least, int64_t most) {
  const int64_t seen = op_.attr_int(attribute);
  That(seen >= least && seen <= most, "{} is {}, expected {} to {}", attribute, seen, least, most);
  return seen;
}

int Check::Axis(std::string_view attribute, int rank) {
  return Take(AxisOf(op_, op_.attr_int(attribute), rank, attribute));
}

}  // namespace npumesh
