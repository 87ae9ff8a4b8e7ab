// KernelChoice: which of several kernels computes a node, and why not one before it.
//
// Candidates stand in an ordered table, the best first. Each says `why_not` in words, about the
// facts that decide; an empty text is no objection, and the last candidate never objects:
//
//   constexpr Candidate<const Matmul> kProducts[] = {{"oneDNN", WhyNotFloats}, {"integer loops"}};
//   KernelChoice choice = Choose(kProducts, matmul);
//
// A table may be a decision that measuring can overrule (tuning.h). Then `why_not` says what cannot
// be, and `rather_not` what the rule expects to be slower.
//
// The kernel keeps what was chosen (Kernel::choice), for NPUMESH_TRACE and `npumesh graph --plan`.
//
// Thread-safety: that of a value.
#ifndef NPUMESH_GRAPH_OPS_CORE_CHOICE_H_
#define NPUMESH_GRAPH_OPS_CORE_CHOICE_H_

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops/core/tuning.h"

namespace npumesh {

struct KernelChoice {
  struct Refusal {
    std::string candidate;
    std::string why;
  };
  std::string name;              // empty: there was nothing to choose
  std::vector<Refusal> refused;  // in the order in which they were asked
  std::string tuned = {};        // what measuring said about it; empty: nothing was measured

  // One more decision about the same kernel: `part` joins the name, or is refused.
  void Decide(std::string_view part, std::string why_not);
  // What was decided about a kernel that is a part of this one, or computes for it.
  void Join(const KernelChoice& part);

  // "integers; not packed: x2 is no constant; tuned: 31.0 us, against 45.2 us"; empty when there
  // was nothing to choose.
  std::string ToString() const;
};

// A row of a table. Facts may be const; those that are not serve a candidate that has to be tried.
template <typename Facts>
struct Candidate {
  std::string_view name;
  std::string (*why_not)(Facts&) = nullptr;     // null: never objects
  std::string (*rather_not)(Facts&) = nullptr;  // null: the same; asked after why_not
};

// What a row objects to being the ordinary choice.
template <typename Facts>
std::string WhyNotOrdinary(const Candidate<Facts>& row, Facts& facts) {
  std::string why = row.why_not != nullptr ? row.why_not(facts) : std::string();
  if (why.empty() && row.rather_not != nullptr) why = row.rather_not(facts);
  return why;
}

// The first candidate without an objection; the last one is not asked. REQUIRES: a table with rows.
template <typename Facts>
KernelChoice Choose(std::span<const Candidate<std::type_identity_t<Facts>>> table, Facts& facts) {
  KernelChoice choice;
  for (const Candidate<Facts>& row : table) {
    const bool asked = &row != &table.back();
    choice.Decide(row.name, asked ? WhyNotOrdinary(row, facts) : std::string());
    if (!choice.name.empty()) break;
  }
  return choice;
}

// The same as the decision `decision`: the row that `tuning` prefers, unless its `why_not` objects,
// which here is asked of the last one too. Null tuning: the ordinary choice.
template <typename Facts>
KernelChoice Choose(std::span<const Candidate<std::type_identity_t<Facts>>> table, Facts& facts,
                    KernelTuning* tuning, std::string_view decision) {
  if (tuning == nullptr) return Choose(table, facts);
  const std::string wanted = tuning->Preferred(decision);
  KernelChoice choice;
  std::vector<std::string> options;
  for (const Candidate<Facts>& row : table) {
    options.emplace_back(row.name);
    if (row.name != wanted) continue;
    if (row.why_not == nullptr || row.why_not(facts).empty()) choice.Decide(row.name, "");
  }
  if (choice.name.empty()) choice = Choose(table, facts);
  tuning->Decided(decision, std::move(options), choice.name);
  return choice;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_CHOICE_H_
