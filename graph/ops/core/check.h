// Check: what an operator asks of its inputs and attributes, as a list of facts. The first
// objection is kept and later facts are not checked, so a plan reads from top to bottom without an
// `if`.
//
//   Check check(op);             // or that of a plan function (define.h)
//   const auto [height, width] = check.Matrix("x", kFloats);
//   check.Shape("scale", {groups, width});
//   plan.dtype = check.TypeOf("dst_type", kQuantised);
//   plan.rounding = check.Take(RoundingOf(op, "round_mode"));
//   ...
//   return check.Done(std::move(plan));
//
// After an objection facts answer zeros and empty lists; what would stumble over them asks `ok`.
//
// An optional input that is not fed, or is fed a tensor without elements (ops convention for
// "absent"), passes. Objections name the node, the port or attribute, what is seen and what is
// expected.
#ifndef NPUMESH_GRAPH_OPS_CORE_CHECK_H_
#define NPUMESH_GRAPH_OPS_CORE_CHECK_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ops/core/operator.h"
#include "graph/ops/core/type_set.h"

namespace npumesh {

class Check {
 public:
  explicit Check(const OpContext& op) : op_(op) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // The plan, or the objection.
  template <typename Plan>
  Result<Plan> Done(Plan plan) {
    if (!ok()) return status_;
    return plan;
  }

  // ---- inputs, by port ----
  void Type(std::string_view port, TypeSet expected);
  // A tensor of one of the types with exactly `rank` dimensions, or with at least that many.
  void Rank(std::string_view port, TypeSet expected, int rank);
  void RankAtLeast(std::string_view port, TypeSet expected, int rank);
  void RankBetween(std::string_view port, TypeSet expected, int least, int most);
  // Height and width of a matrix; zeros after an objection.
  struct HeightAndWidth {
    int64_t height = 0;
    int64_t width = 0;
  };
  HeightAndWidth Matrix(std::string_view port, TypeSet expected);
  void Shape(std::string_view port, const npumesh::Shape& expected);
  void TypeAndShape(std::string_view port, TypeSet expected, const npumesh::Shape& shape);
  // As many elements as one of the counts.
  void Elements(std::string_view port, std::initializer_list<int64_t> counts);
  // Both inputs have one element type; or one type and shape.
  void SameType(std::string_view port, std::string_view other);
  void SameTensor(std::string_view port, std::string_view other);

  // Objects (kUnsupported) to the first of these optional inputs that is fed.
  void NotFed(std::initializer_list<std::string_view> ports);

  // ---- attributes ----
  void OneOf(std::string_view attribute, std::initializer_list<std::string_view> texts);
  void OneOf(std::string_view attribute, std::initializer_list<int64_t> numbers) {
    Among(attribute, numbers, Code::kInvalidArgument);
  }
  // Objects to a value that is not in the list; the value.
  int64_t Among(std::string_view attribute, std::initializer_list<int64_t> values,
                Code code = Code::kUnsupported);
  // Objects (kUnsupported) to another value; to another one than 0.
  void Only(std::string_view attribute, int64_t value) { Among(attribute, {value}); }
  void OnlyZero(std::initializer_list<std::string_view> attributes);
  // A type attribute; objects with `code` to one that is not expected.
  DataType TypeOf(std::string_view attribute, TypeSet expected, Code code = Code::kUnsupported);
  // In [least, most].
  int64_t Between(std::string_view attribute, int64_t least, int64_t most);
  // What the word in a text attribute stands for; made by default after an objection.
  template <typename T>
  T Meaning(std::string_view attribute,
            std::initializer_list<std::pair<std::string_view, T>> words) {
    if (!ok()) return T();
    const std::string seen = op_.attr_string(attribute);
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) {
      if (seen == word) return meaning;
      known.emplace_back(word);
    }
    UnknownWord(attribute, seen, known);
    return T();
  }
  // Axis in [0, rank), counted from the end when negative: of an attribute, or a constant input.
  int Axis(std::string_view name, int rank);

  // ---- anything else ----
  // Keeps the error of a result; its value, or one made by default.
  template <typename T>
  T Take(Result<T> result) {
    if (result.ok()) return std::move(result).value();
    Keep(result.status());
    return T();
  }
  void Keep(Status status) {
    if (ok()) status_ = std::move(status);
  }
  // Objects (kInvalidArgument) with the node and the text unless `holds`. The arguments are
  // evaluated in any case.
  template <typename... Args>
  void That(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (holds || !ok()) return;
    Object(fmt::format(text, std::forward<Args>(args)...));
  }
  // The same for what is well formed, but npumesh cannot do (kUnsupported).
  template <typename... Args>
  void Supported(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (holds || !ok()) return;
    Object(fmt::format(text, std::forward<Args>(args)...), Code::kUnsupported);
  }
  // The same for what contradicts itself within the graph (kCorrupt).
  template <typename... Args>
  void Consistent(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (holds || !ok()) return;
    Object(fmt::format(text, std::forward<Args>(args)...), Code::kCorrupt);
  }

 private:
  // The tensor of a port that is to be checked; null: absent, or there is an objection already.
  const TensorType* Seen(std::string_view port) const;
  void Object(std::string_view text, Code code = Code::kInvalidArgument);
  void Expected(std::string_view port, const TensorType& seen, std::string_view expected);
  void UnknownWord(std::string_view attribute, std::string_view seen,
                   const std::vector<std::string>& known);

  const OpContext& op_;
  Status status_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_CHECK_H_
