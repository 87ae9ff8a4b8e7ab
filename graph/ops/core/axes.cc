#include "graph/ops/core/axes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace npumesh {
namespace {

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

const PortAxes* Find(const std::vector<PortAxes>& ports, std::string_view port) {
  const auto found = std::ranges::find(ports, port, &PortAxes::port);
  return found == ports.end() ? nullptr : &*found;
}

bool HasTerm(const PortAxes& port, std::string_view name) {
  return std::ranges::find(port.terms, name, &AxisTerm::name) != port.terms.end();
}

// Whether the terms of `few` stand among `many` in their order.
bool IsPartOf(const PortAxes& few, const PortAxes& many) {
  auto next = few.terms.begin();
  for (const AxisTerm& term : many.terms) {
    if (next != few.terms.end() && next->name == term.name) ++next;
  }
  return next == few.terms.end();
}

// An axis with one place for each element of a tensor that has it.
bool IsPlain(const AxisTerm& term) {
  return !term.counts && term.times == 1 && !term.joined && !term.optional && term.kept.empty() &&
         term.order.empty();
}

// Of a letter that no output has.
bool IsRead(const AxisLetter& letter) {
  return letter.need != AxisNeed::kPlace && letter.need != AxisNeed::kUnchanged;
}

bool IsMarked(const AxisLetter& letter) {
  return letter.need != AxisNeed::kPlace;
}

}  // namespace

// Reads one text from left to right; the first objection ends it.
class AxesReader {
 public:
  explicit AxesReader(std::string_view text) : text_(text) {}

  Result<Axes> Read() {
    axes_.text_ = text_;
    if (Here() == '[') {
      NPUMESH_ASSIGN_OR_RETURN(axes_.every_, Pattern(""));
    } else {
      NPUMESH_ASSIGN_OR_RETURN(axes_.inputs_, Ports());
      NPUMESH_RETURN_IF_ERROR(Expect("->"));
      NPUMESH_ASSIGN_OR_RETURN(axes_.outputs_, Ports());
      if (Take(";")) {
        do {
          NPUMESH_RETURN_IF_ERROR(Rule());
        } while (Take(","));
      }
    }
    SkipSpaces();
    if (at_ != text_.size()) return Objection("the end");
    axes_.Conclude();
    return std::move(axes_);
  }

 private:
  Status Objection(std::string_view expected) const {
    return Error(Code::kInvalidArgument, "axes \"{}\", character {}: expected {}", text_, at_ + 1,
                 expected);
  }

  char Here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void SkipSpaces() {
    while (Here() == ' ') ++at_;
  }

  bool Take(std::string_view token) {
    SkipSpaces();
    return TakeHere(token);
  }

  // Without blanks before it.
  bool TakeHere(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Status Expect(std::string_view token) {
    return Take(token) ? Status() : Objection(fmt::format("\"{}\"", token));
  }

  std::string_view NameHere() {
    const size_t begin = at_;
    while (IsNameChar(Here())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<std::string_view> Name(std::string_view what) {
    SkipSpaces();
    const std::string_view name = NameHere();
    if (name.empty()) return Objection(what);
    return name;
  }

  Result<int64_t> Number() {
    SkipSpaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(&text_[at_], text_.data() + text_.size(), value);
    if (error != std::errc()) return Objection("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  // "x1[..], x2[..]"; also none.
  Result<std::vector<PortAxes>> Ports() {
    std::vector<PortAxes> ports;
    SkipSpaces();
    if (!IsNameChar(Here())) return ports;
    do {
      NPUMESH_ASSIGN_OR_RETURN(const std::string_view name, Name("a port"));
      NPUMESH_ASSIGN_OR_RETURN(PortAxes port, Pattern(name));
      ports.push_back(std::move(port));
    } while (Take(","));
    return ports;
  }

  Result<PortAxes> Pattern(std::string_view name) {
    PortAxes port{name, {}, {}};
    NPUMESH_RETURN_IF_ERROR(Expect("["));
    port.spread = Take("?");
    while (!Take("]")) {
      if (Take("|")) {
        NPUMESH_ASSIGN_OR_RETURN(port.swapped, Name("an attribute"));
        NPUMESH_RETURN_IF_ERROR(Expect("]"));
        break;
      }
      NPUMESH_ASSIGN_OR_RETURN(const AxisTerm term, Term());
      port.terms.push_back(term);
    }
    return port;
  }

  Result<AxisTerm> Term() {
    AxisTerm term;
    SkipSpaces();
    term.counts = TakeHere("#");
    if (!term.counts && IsDigit(Here()) && Here() != '1') term.times = text_[at_++] - '0';
    term.name = NameHere();
    term.group = TakeHere("..");
    if (term.name.empty() && !term.group) return Objection("an axis");
    if (term.name.empty()) term.name = "..";
    if (term.counts) return term;
    AxisLetter& letter = LetterOf(term.name);
    for (;;) {
      if (TakeHere("!")) {
        letter.need = AxisNeed::kWhole;
      } else if (TakeHere("+")) {
        letter.need = AxisNeed::kSum;
      } else if (TakeHere("~")) {
        letter.need = AxisNeed::kUnchanged;
      } else if (TakeHere("@")) {
        letter.need = AxisNeed::kPositions;
        NPUMESH_ASSIGN_OR_RETURN(letter.positions, Name("a port"));
      } else if (TakeHere("*")) {
        term.joined = true;
      } else if (TakeHere("?")) {
        term.kept = NameHere();
        term.optional = term.kept.empty();
      } else if (TakeHere("^")) {
        NPUMESH_ASSIGN_OR_RETURN(term.order, Name("a port or an attribute"));
      } else {
        return term;
      }
    }
  }

  AxisLetter& LetterOf(std::string_view name) {
    const auto found = std::ranges::find(axes_.letters_, name, &AxisLetter::name);
    if (found != axes_.letters_.end()) return *found;
    AxisLetter& letter = axes_.letters_.emplace_back();
    letter.name = name;
    return letter;
  }

  // "a = axes", "strides > 0", "batch_dims == 0".
  Status Rule() {
    NPUMESH_ASSIGN_OR_RETURN(const std::string_view name, Name("a letter, a port or an attribute"));
    const bool greater = Take(">");
    if (greater || Take("==")) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t value, Number());
      axes_.conditions_.push_back({name, greater, value});
      return Status();
    }
    const auto letter = std::ranges::find(axes_.letters_, name, &AxisLetter::name);
    if (letter == axes_.letters_.end()) return Objection("\">\" or \"==\", or a letter before");
    NPUMESH_RETURN_IF_ERROR(Expect("="));
    NPUMESH_ASSIGN_OR_RETURN(letter->place, Name("a port or an attribute"));
    return Status();
  }

  const std::string_view text_;
  size_t at_ = 0;
  Axes axes_;
};

Axes::Axes(const char* text) {
  Result<Axes> axes = Parse(text);
  if (axes.ok()) {
    *this = *std::move(axes);
    return;
  }
  fmt::print(stderr, "{}\n", axes.status().message());
  std::abort();
}

Result<Axes> Axes::Parse(std::string_view text) {
  return AxesReader(text).Read();
}

const PortAxes* Axes::input(std::string_view port) const {
  return every_ ? &*every_ : Find(inputs_, port);
}

const PortAxes* Axes::output(std::string_view port) const {
  return every_ ? &*every_ : Find(outputs_, port);
}

const AxisLetter& Axes::letter(std::string_view name) const {
  return *std::ranges::find(letters_, name, &AxisLetter::name);
}

bool Axes::has_letter(std::string_view name) const {
  return std::ranges::find(letters_, name, &AxisLetter::name) != letters_.end();
}

const AxisLetter* Axes::looked_up() const {
  if (inputs_.empty()) return nullptr;
  const auto kept = [&](std::string_view name) {
    return std::ranges::any_of(outputs_, [&](const PortAxes& y) { return HasTerm(y, name); });
  };
  for (const AxisLookup& lookup : lookups_) {
    const PortAxes* const at = input(lookup.positions);
    if (lookup.data != inputs_[0].port || at == nullptr) continue;
    const bool instead = std::ranges::all_of(at->terms, [&](const AxisTerm& term) {
      return !term.counts && kept(term.name) && !HasTerm(inputs_[0], term.name);
    });
    const auto mine = std::ranges::find(letters_, lookup.positions, &AxisLetter::positions);
    if (instead && !kept(mine->name)) return &*mine;
  }
  return nullptr;
}

void Axes::Conclude() {
  for (const PortAxes& port : inputs_) {
    if (port.terms.size() != 1 || !port.terms[0].counts) continue;
    const std::string_view of = port.terms[0].name;
    const bool parts = std::ranges::any_of(inputs_, [&](const PortAxes& x) {
      return std::ranges::any_of(
          x.terms, [&](const AxisTerm& term) { return term.joined && term.name == of; });
    });
    if (parts || Find(outputs_, of) != nullptr) sizes_.push_back({port.port, of});
  }
  if (!outputs_.empty()) {
    for (const AxisTerm& term : outputs_[0].terms) {
      if (!term.order.empty()) permutation_ = term.order;
    }
  }
  elementwise_ = FindsElementwise();
  FindProduct();
  FindLookups();
  shape_query_ = AsksForSizes();
}

bool Axes::AsksForSizes() const {
  const auto counts = [](const PortAxes& y) {
    return std::ranges::all_of(y.terms, &AxisTerm::counts);
  };
  return !inputs_.empty() && !outputs_.empty() && std::ranges::all_of(outputs_, counts) &&
         std::ranges::none_of(letters_, IsRead) && sizes_.empty();
}

bool Axes::FindsElementwise() const {
  if (std::ranges::any_of(letters_, IsMarked)) return false;
  if (every_) return std::ranges::all_of(every_->terms, IsPlain);
  if (inputs_.empty() || outputs_.size() != 1) return false;
  const PortAxes& y = outputs_[0];
  return std::ranges::all_of(y.terms, IsPlain) && IsPartOf(y, inputs_[0]) &&
         std::ranges::all_of(inputs_, [&](const PortAxes& x) {
           return std::ranges::all_of(x.terms, IsPlain) && IsPartOf(x, y);
         });
}

void Axes::FindLookups() {
  for (const AxisLetter& each : letters_) {
    if (each.need != AxisNeed::kPositions) continue;
    const auto data =
        std::ranges::find_if(inputs_, [&](const PortAxes& x) { return HasTerm(x, each.name); });
    if (data != inputs_.end()) lookups_.push_back({each.positions, data->port});
  }
}

void Axes::FindProduct() {
  for (const AxisLetter& each : letters_) {
    if (each.need != AxisNeed::kSum) continue;
    std::vector<const PortAxes*> operands;
    for (const PortAxes& x : inputs_) {
      if (HasTerm(x, each.name)) operands.push_back(&x);
    }
    if (operands.size() != 2) continue;
    product_ = ProductTrait{.left = operands[0]->port,
                            .right = operands[1]->port,
                            .left_transposed = operands[0]->swapped,
                            .right_transposed = operands[1]->swapped};
    for (const PortAxes& x : inputs_) {
      const bool row = !x.terms.empty() && !outputs_.empty() && !outputs_[0].terms.empty() &&
                       x.terms.back().name == outputs_[0].terms.back().name;
      if (row && &x != operands[0] && &x != operands[1]) product_->bias = x.port;
    }
  }
}

}  // namespace npumesh
