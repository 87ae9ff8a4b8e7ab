#include "graph/ops/core/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/ops/core/infer_checks.h"

namespace npumesh {
namespace {

constexpr int kDataTypes = 64;  // more than the enumeration has

// "a, b or c".
template <typename List>
std::string Alternatives(const List& values) {
  std::string text;
  size_t i = 0;
  for (const auto& value : values) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += fmt::format("{}", value);
    ++i;
  }
  return text;
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

void Check::Object(std::string_view text, Code code) {
  status_ = Error(code, "{}: {}", op_.Who(), text);
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

void Check::RankBetween(std::string_view port, TypeSet expected, int least, int most) {
  RankAtLeast(port, expected, least);
  const TensorType* seen = Seen(port);
  if (seen == nullptr || seen->shape.rank() <= most) return;
  Expected(port, *seen, fmt::format("at most {} dimensions", most));
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
  const std::set<int64_t> allowed = counts;
  if (allowed.contains(seen->shape.elements())) return;
  const bool one = *allowed.rbegin() == 1;
  Expected(port, *seen, Alternatives(allowed) + (one ? " element" : " elements"));
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

void Check::NotFed(std::initializer_list<std::string_view> ports) {
  for (const std::string_view port : ports) {
    const bool fed = op_.has(port) && op_.in(port).shape.elements() > 0;
    Supported(!fed, "the input \"{}\" is fed, which is not supported", port);
  }
}

void Check::OnlyZero(std::initializer_list<std::string_view> attributes) {
  for (const std::string_view attribute : attributes) {
    const int64_t seen = op_.attr_int(attribute);
    Supported(seen == 0, "{} {} is not supported, expected 0", attribute, seen);
  }
}

int64_t Check::Among(std::string_view attribute, std::initializer_list<int64_t> values, Code code) {
  const int64_t seen = op_.attr_int(attribute);
  if (std::find(values.begin(), values.end(), seen) != values.end() || !ok()) return seen;
  Object(fmt::format("{} is {}, expected {}", attribute, seen, Alternatives(values)), code);
  return seen;
}

DataType Check::TypeOf(std::string_view attribute, TypeSet expected, Code code) {
  const DataType dtype = Take(op_.attr_dtype(attribute));
  if (!ok() || expected.Contains(dtype)) return dtype;
  Object(fmt::format("{} is {}, expected {}", attribute, Name(dtype), expected.ToString()), code);
  return dtype;
}

void Check::OneOf(std::string_view attribute, std::initializer_list<std::string_view> texts) {
  if (!ok()) return;
  const std::string seen = op_.attr_string(attribute);
  if (std::find(texts.begin(), texts.end(), seen) != texts.end()) return;
  Object(fmt::format("{} is \"{}\", expected {}", attribute, seen, Alternatives(texts)));
}

int64_t Check::Between(std::string_view attribute, int64_t least, int64_t most) {
  const int64_t seen = op_.attr_int(attribute);
  That(seen >= least && seen <= most, "{} is {}, expected {} to {}", attribute, seen, least, most);
  return seen;
}

int Check::Axis(std::string_view name, int rank) {
  return Take(AxisOf(op_, Take(op_.Int(name)), rank, name));
}

void Check::UnknownWord(std::string_view attribute, std::string_view seen,
                        const std::vector<std::string>& known) {
  Object(fmt::format("\"{}\" is \"{}\", expected {}", attribute, seen, Alternatives(known)));
}

}  // namespace npumesh
