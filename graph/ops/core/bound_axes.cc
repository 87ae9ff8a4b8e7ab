#include "graph/ops/core/bound_axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace npumesh {
namespace {

constexpr std::string_view kOne = "1";
constexpr std::string_view kRest = "..";

// An operand of which the text says something.
struct Operand {
  const PortAxes* axes = nullptr;
  const Shape* shape = nullptr;
  std::vector<BoundAxis>* bound = nullptr;
  std::vector<AxisTerm> terms;  // without those that are missing here
};

bool IsLetter(const AxisTerm& term) {
  return !term.group || term.counts;
}

class Binder {
 public:
  Binder(const Axes& axes, const OpContext& context, const AxisValues& values)
      : axes_(axes), context_(context), values_(values) {}

  Result<BoundAxes> Bind() {
    NPUMESH_RETURN_IF_ERROR(CheckConditions());
    Collect();
    for (Operand& operand : inputs_) NPUMESH_RETURN_IF_ERROR(FindTerms(operand));
    for (Operand& operand : outputs_) NPUMESH_RETURN_IF_ERROR(FindTerms(operand));
    NPUMESH_RETURN_IF_ERROR(FindPlaces());
    CountGroups();
    for (Operand& operand : inputs_) NPUMESH_RETURN_IF_ERROR(Expand(operand));
    for (Operand& operand : outputs_) NPUMESH_RETURN_IF_ERROR(Expand(operand));
    NPUMESH_RETURN_IF_ERROR(CheckSizes());
    return std::move(bound_);
  }

 private:
  Status Unfit(const Operand& operand) const {
    return Error(Code::kInternal, "its {} {} is not \"{}\"", operand.axes->port,
                 operand.shape->ToString(), axes_.text());
  }

  static Status NotKnown(std::string_view name) {
    return Error(Code::kUnsupported, "its {} is not known", name);
  }

  static Status FewerAxes() { return Error(Code::kUnsupported, "it takes tensors of fewer axes"); }

  bool Flag(std::string_view name) const {
    const auto values = values_(name);
    return values && values->size() == 1 && values->front() != 0;
  }

  Status CheckConditions() const {
    for (const AxisCondition& condition : axes_.conditions()) {
      const auto values = values_(condition.name);
      if (!values) return NotKnown(condition.name);
      const bool holds = std::ranges::all_of(*values, [&](int64_t value) {
        return condition.greater ? value > condition.value : value == condition.value;
      });
      if (!holds) return Error(Code::kUnsupported, "its {} is of a rare form", condition.name);
    }
    return Status();
  }

  void Collect() {
    bound_.inputs.resize(static_cast<size_t>(context_.slots()));
    bound_.outputs.resize(static_cast<size_t>(context_.outputs()));
    const OpSchema& schema = context_.schema();
    for (const PortSpec& port : schema.inputs) {
      const PortAxes* const axes = axes_.input(port.name);
      if (axes == nullptr || axes->spread) continue;
      for (int i = 0; i < context_.count(port.name); ++i) {
        const int slot = context_.slot(port.name) + i;
        Add(&inputs_, axes, context_.in(slot).shape, &bound_.inputs[static_cast<size_t>(slot)]);
      }
    }
    for (int i = 0; i < context_.outputs(); ++i) {
      const auto at = std::min(static_cast<size_t>(i), schema.outputs.size() - 1);
      const PortAxes* const axes = axes_.output(schema.outputs[at].name);
      if (axes == nullptr) continue;
      Add(&outputs_, axes, context_.out(i).shape, &bound_.outputs[static_cast<size_t>(i)]);
    }
  }

  static void Add(std::vector<Operand>* operands, const PortAxes* axes, const Shape& shape,
                  std::vector<BoundAxis>* bound) {
    operands->push_back({axes, &shape, bound, {}});
  }

  // A letter that an operand of too few axes leaves out, outputs leave out as well.
  Status FindTerms(Operand& operand) {
    for (const AxisTerm& term : operand.axes->terms) {
      const bool missing = term.kept.empty() ? dropped_.contains(term.name) : !Flag(term.kept);
      if (!missing) operand.terms.push_back(term);
    }
    while (Letters(operand) > operand.shape->rank()) {
      const auto first = std::ranges::find_if(operand.terms, &AxisTerm::optional);
      if (first == operand.terms.end()) return Unfit(operand);
      if (first->name != kOne) dropped_.insert(first->name);
      operand.terms.erase(first);
    }
    return Status();
  }

  // Axes of letters: one with a place has as many as values name.
  int Letters(const Operand& operand) const {
    size_t letters = 0;
    for (const AxisTerm& term : operand.terms) {
      if (!IsLetter(term)) continue;
      const auto places = places_.find(term.name);
      const bool placed = axes_.has_letter(term.name) && !axes_.letter(term.name).place.empty();
      letters += places != places_.end() ? places->second.size() : placed ? 0 : 1;
    }
    return static_cast<int>(letters);
  }

  // ---- how many axes groups have ----

  // Groups that tensors share.
  static bool IsShared(const AxisTerm& term) {
    return !IsLetter(term) && term.name != kRest && term.name != kOne;
  }

  static bool Has(const Operand& operand, std::string_view group) {
    return std::ranges::any_of(
        operand.terms, [&](const AxisTerm& term) { return !IsLetter(term) && term.name == group; });
  }

  bool IsGroup(std::string_view name) const {
    const auto in = [&](const PortAxes& port) {
      return std::ranges::any_of(
          port.terms, [&](const AxisTerm& term) { return !IsLetter(term) && term.name == name; });
    };
    return std::ranges::any_of(axes_.inputs(), in) || std::ranges::any_of(axes_.outputs(), in);
  }

  // The shared groups that are not counted yet; the axes of the others and of letters go to `sum`.
  std::vector<std::string_view> Uncounted(const Operand& operand, int* sum) const {
    std::vector<std::string_view> uncounted;
    *sum = Letters(operand);
    for (const AxisTerm& term : operand.terms) {
      if (!IsShared(term)) continue;
      const auto known = counts_.find(term.name);
      if (known == counts_.end()) uncounted.push_back(term.name);
      if (known != counts_.end()) *sum += known->second;
    }
    return uncounted;
  }

  // Axes of `..`; beside `1..`, as many as other tensors have.
  int RestOf(const Operand& operand) const {
    int others = 0;
    Uncounted(operand, &others);
    return Has(operand, kOne) ? widest_ : operand.shape->rank() - others;
  }

  int CountOf(const Operand& operand, const AxisTerm& term) const {
    if (term.name == kRest) return RestOf(operand);
    if (term.name != kOne) return counts_.contains(term.name) ? counts_.at(term.name) : 0;
    int others = 0;
    Uncounted(operand, &others);
    return operand.shape->rank() - others - (Has(operand, kRest) ? widest_ : 0);
  }

  void CountGroups() {
    for (const Operand& operand : inputs_) CountEntries(operand);
    for (const Operand& operand : inputs_) {
      if (!Has(operand, kRest)) CountLast(operand, 0);
    }
    for (const Operand& operand : inputs_) {
      int others = 0;
      if (!Has(operand, kRest) || !Uncounted(operand, &others).empty()) continue;
      widest_ = std::max(widest_, RestOf(operand));
    }
    for (const std::vector<Operand>* operands : {&inputs_, &outputs_}) {
      for (const Operand& operand : *operands) {
        CountLast(operand, Has(operand, kRest) ? widest_ : 0);
      }
    }
  }

  // `#g`: as many axes as the axis is long.
  void CountEntries(const Operand& operand) {
    for (size_t i = 0; i < operand.terms.size(); ++i) {
      const int axis = operand.shape->rank() - static_cast<int>(operand.terms.size() - i);
      const AxisTerm& term = operand.terms[i];
      if (!term.counts || axis < 0 || term.name == kRest || counts_.contains(term.name)) continue;
      if (IsGroup(term.name)) counts_[term.name] = static_cast<int>((*operand.shape)[axis]);
    }
  }

  // The one group that is not counted yet.
  void CountLast(const Operand& operand, int rest) {
    int others = 0;
    const std::vector<std::string_view> uncounted = Uncounted(operand, &others);
    const int count = operand.shape->rank() - others - rest;
    if (uncounted.size() == 1 && count >= 0) counts_[uncounted[0]] = count;
  }

  // ---- where letters stand ----

  Status FindPlaces() {
    for (const AxisLetter& letter : axes_.letters()) {
      if (letter.place.empty()) continue;
      const Operand* const first = FirstWith(letter.name);
      if (first == nullptr) continue;
      const auto values = values_(letter.place);
      if (!values || values->empty()) return NotKnown(letter.place);
      std::vector<int>& places = places_[letter.name];
      const int rank = first->shape->rank();
      for (const int64_t value : *values) {
        const int64_t axis = value < 0 ? value + rank : value;
        if (axis < 0 || axis >= rank) return FewerAxes();
        places.push_back(static_cast<int>(axis));
      }
      std::ranges::sort(places);
      places.erase(std::unique(places.begin(), places.end()), places.end());
      int before = 0;
      for (const AxisTerm& term : first->terms) {
        if (term.name == kRest) break;
        before += term.name == letter.name ? 0 : 1;
      }
      cut_ = places.front() - before;
    }
    return Status();
  }

  const Operand* FirstWith(std::string_view name) const {
    for (const std::vector<Operand>* operands : {&inputs_, &outputs_}) {
      for (const Operand& operand : *operands) {
        const bool has = std::ranges::any_of(
            operand.terms, [&](const AxisTerm& term) { return !term.counts && term.name == name; });
        if (has) return &operand;
      }
    }
    return nullptr;
  }

  int LetterOf(std::string_view name, int number, bool group) {
    const auto [found, added] = letters_.try_emplace({name, number}, 0);
    if (added) {
      found->second = static_cast<int>(bound_.letters.size());
      const AxisLetter& letter = axes_.letter(name);
      bound_.letters.push_back({letter.need, group, letter.positions});
    }
    return found->second;
  }

  BoundAxis AxisOf(const AxisTerm& term, int number) {
    BoundAxis axis;
    if (term.counts) {
      axis.entries = term.name;
    } else if (term.name != kOne && term.kept.empty()) {
      axis.letter = LetterOf(term.name, number, term.group);
      axis.times = term.times;
      axis.joined = term.joined;
    }
    return axis;
  }

  // The axes of an operand, letter by letter.
  Status Expand(Operand& operand) {
    std::map<int, BoundAxis> placed;
    std::vector<BoundAxis> others;
    const int rest = RestOf(operand);
    int left = rest, seen = 0;
    const auto rests = std::ranges::count(operand.terms, kRest, &AxisTerm::name);
    for (const AxisTerm& term : operand.terms) {
      const auto places = places_.find(term.name);
      if (places != places_.end() && !term.counts) {
        if (places->second.back() >= operand.shape->rank() && term.kept.empty()) return FewerAxes();
        int number = 0;
        for (const int place : places->second) placed[place] = AxisOf(term, number++);
        continue;
      }
      if (IsLetter(term)) {
        others.push_back(AxisOf(term, 0));
        continue;
      }
      if (axes_.letter(term.name).need == AxisNeed::kUnchanged && rest != widest_) {
        return Error(Code::kUnsupported, "it changes the number of axes");
      }
      const bool first_of_two = term.name == kRest && rests > 1 && ++seen == 1 && cut_ >= 0;
      const int all = term.name == kRest ? left : CountOf(operand, term);
      const int count = first_of_two ? std::min(cut_, rest) : all;
      std::vector<BoundAxis> group;
      for (int i = 0; i < count; ++i) {
        const int behind = term.name == kRest ? --left : count - 1 - i;
        group.push_back(AxisOf(term, behind));
      }
      if (!term.order.empty()) NPUMESH_RETURN_IF_ERROR(Reorder(term.order, &group));
      others.insert(others.end(), group.begin(), group.end());
    }
    Swap(operand, &others);
    return Merge(operand, placed, others);
  }

  Status Reorder(std::string_view order, std::vector<BoundAxis>* group) const {
    const auto values = values_(order);
    if (!values) return NotKnown(order);
    const auto count = static_cast<int64_t>(group->size());
    std::vector<BoundAxis> made;
    for (const int64_t value : *values) {
      const int64_t from = value < 0 ? value + count : value;
      if (from < 0 || from >= count) return NotKnown(order);
      made.push_back((*group)[static_cast<size_t>(from)]);
    }
    *group = std::move(made);
    return Status();
  }

  // A vector has nothing to exchange.
  void Swap(const Operand& operand, std::vector<BoundAxis>* axes) const {
    const bool both = operand.terms.size() == operand.axes->terms.size() && axes->size() >= 2;
    if (operand.axes->swapped.empty() || !both || !Flag(operand.axes->swapped)) return;
    std::swap((*axes)[axes->size() - 1], (*axes)[axes->size() - 2]);
  }

  Status Merge(const Operand& operand, const std::map<int, BoundAxis>& placed,
               const std::vector<BoundAxis>& others) const {
    size_t next = 0;
    const int rank = operand.shape->rank();
    for (int axis = 0; axis < rank; ++axis) {
      const auto mine = placed.find(axis);
      if (mine == placed.end() && next == others.size()) return Unfit(operand);
      operand.bound->push_back(mine == placed.end() ? others[next++] : mine->second);
    }
    return next == others.size() ? Status() : Unfit(operand);
  }

  // ---- sizes ----

  struct Sizes {
    std::vector<int64_t> in, out;
    int64_t joined = -1;  // of the operand that has all parts
  };

  Status CheckSizes() {
    std::vector<Sizes> sizes(bound_.letters.size());
    for (const Operand& operand : inputs_)
      NPUMESH_RETURN_IF_ERROR(TakeSizes(operand, true, &sizes));
    for (const Operand& operand : outputs_)
      NPUMESH_RETURN_IF_ERROR(TakeSizes(operand, false, &sizes));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (Agree(sizes[i], &bound_.letters[i])) continue;
      return Error(Code::kInternal, "its sizes are not those of \"{}\"", axes_.text());
    }
    return Status();
  }

  Status TakeSizes(const Operand& operand, bool input, std::vector<Sizes>* sizes) const {
    for (int i = 0; i < operand.shape->rank(); ++i) {
      const BoundAxis& axis = (*operand.bound)[static_cast<size_t>(i)];
      const int64_t size = (*operand.shape)[i];
      if (axis.letter < 0) {
        if (!FitsEntries(axis, size)) return Unfit(operand);
        continue;
      }
      Sizes& mine = (*sizes)[static_cast<size_t>(axis.letter)];
      if (size % axis.times != 0) return Unfit(operand);
      if (axis.joined) mine.joined = size;
      if (!axis.joined) (input ? mine.in : mine.out).push_back(size / axis.times);
    }
    return Status();
  }

  // An axis without a letter has one place, or an entry for each axis of a group or for the last
  // axes of an output.
  bool FitsEntries(const BoundAxis& axis, int64_t size) const {
    if (axis.entries.empty()) return size == 1;
    if (axis.entries == kRest) {
      return std::ranges::any_of(inputs_,
                                 [&](const Operand& operand) { return RestOf(operand) == size; });
    }
    if (const auto group = counts_.find(axis.entries); group != counts_.end()) {
      return size == group->second;
    }
    return std::ranges::all_of(outputs_, [&](const Operand& operand) {
      return operand.axes->port != axis.entries || size <= operand.shape->rank();
    });
  }

  static bool Agree(const Sizes& sizes, BoundLetter* letter) {
    std::vector<int64_t> all = sizes.in;
    all.insert(all.end(), sizes.out.begin(), sizes.out.end());
    if (sizes.joined >= 0) {
      letter->size = sizes.joined;
      return std::accumulate(all.begin(), all.end(), int64_t{0}) == sizes.joined;
    }
    letter->size = all.front();
    for (const int64_t size : all) letter->changes |= size != all.front();
    if (letter->need == AxisNeed::kUnchanged || !letter->changes) return true;
    letter->changes = false;
    if (!letter->group) return false;
    letter->size = *std::ranges::find_if(all, [](int64_t size) { return size != 1; });
    const auto full = [&](int64_t size) { return size == letter->size; };
    return std::ranges::all_of(sizes.out, full) &&
           std::ranges::all_of(sizes.in, [&](int64_t size) { return size == 1 || full(size); });
  }

  const Axes& axes_;
  const OpContext& context_;
  const AxisValues& values_;
  std::vector<Operand> inputs_, outputs_;
  std::set<std::string_view> dropped_;
  std::map<std::string_view, int> counts_;  // of groups with a name
  int widest_ = 0;                          // of `..`
  std::map<std::string_view, std::vector<int>> places_;
  int cut_ = -1;  // axes of `..` before the letter that has a place
  std::map<std::pair<std::string_view, int>, int> letters_;
  BoundAxes bound_;
};

bool HasPort(const OpContext& context, std::string_view name) {
  return std::ranges::find(context.schema().inputs, name, &PortSpec::name) !=
         context.schema().inputs.end();
}

}  // namespace

AxisValues ValuesOf(const OpContext& context) {
  return [&context](std::string_view name) -> std::optional<std::vector<int64_t>> {
    if (HasPort(context, name)) {
      if (!context.has(name)) return std::vector<int64_t>();
      Result<std::vector<int64_t>> values = context.Ints(name);
      if (!values.ok()) return std::nullopt;
      return *std::move(values);
    }
    const auto spec = std::ranges::find(context.schema().attrs, name, &AttrSpec::name);
    if (spec == context.schema().attrs.end()) return std::nullopt;
    const AttrValue* const given = context.node().FindAttr(name);
    if (given == nullptr && !spec->fallback) return std::nullopt;
    Node holder;
    holder.attrs[std::string(name)] = given != nullptr ? *given : *spec->fallback;
    std::vector<int64_t> ints = holder.IntsAttr(name);
    constexpr int64_t kAbsent = INT64_MIN;
    if (ints.empty() && holder.IntAttr(name, kAbsent) != kAbsent) {
      ints.push_back(holder.IntAttr(name, kAbsent));
    }
    return ints;
  };
}

Result<BoundAxes> BindAxes(const Axes& axes, const OpContext& context, const AxisValues& values) {
  return Binder(axes, context, values).Bind();
}

}  // namespace npumesh
