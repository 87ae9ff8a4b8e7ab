#include "launch/dump/verdict_json.h"

#include <algorithm>

namespace npumesh {
namespace {

using nlohmann::json;

std::string_view Word(Standing standing) {
  switch (standing) {
    case Standing::kOrigin:
      return "origin";
    case Standing::kConsequence:
      return "consequence";
    case Standing::kSame:
      break;
  }
  return "same";
}

// The numbers of a difference; an infinity or NaN is null in JSON.
json DistanceJson(const TensorDistance& distance, const Shape& shape) {
  json object = {{"elements", shape.elements()},
                 {"differing", distance.differing},
                 {"max_abs", distance.max_abs},
                 {"max_ulp", distance.max_ulp}};
  object["reason"] = distance.reason.empty() ? json() : json(distance.reason);
  object["first"] = distance.first < 0 ? json() : json(PositionText(distance.first, shape));
  return object;
}

// Where an operator differs most.
json Place(const OperatorRow& row) {
  json place = {{"operator", row.name}, {"type", row.type}, {"standing", Word(row.standing)}};
  const TensorRow* const worst = row.Worst();
  if (worst == nullptr) return place;
  place["side"] = Name(worst->side);
  place["index"] = worst->index;
  place["tensor"] = worst->mine.ToString();
  place.update(DistanceJson(worst->distance, worst->mine.shape));
  place["pattern"] = worst->pattern.empty() ? json() : json(worst->pattern);
  return place;
}

json CauseJson(const InputCause& cause) {
  json object = {{"kind", Name(cause.kind)},
                 {"name", cause.name},
                 {"file", cause.file.empty() ? json() : json(cause.file)},
                 {"side", Name(cause.tensor.side)},
                 {"index", cause.tensor.index}};
  object.update(DistanceJson(cause.tensor.distance, cause.tensor.mine.shape));
  return object;
}

size_t Differing(const Comparison& comparison) {
  return static_cast<size_t>(std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                           [](const OperatorRow& row) { return row.differs(); }));
}

json Summary(const RankComparison& one) {
  const Comparison& comparison = one.comparison;
  const OperatorRow* const first = comparison.First();
  return {{"rank", one.rank},
          {"step", one.step.empty() ? json() : json(one.step)},
          {"mine", comparison.mine},
          {"golden", comparison.golden},
          {"operators", comparison.rows.size()},
          {"differing", Differing(comparison)},
          {"only_mine", comparison.only_mine},
          {"only_golden", comparison.only_golden},
          {"first", first == nullptr ? json() : Place(*first)}};
}

json LawJson(const Law& law) {
  return {{"operator", law.key},
          {"type", law.type},
          {"output", law.output},
          {"law", ToText(law)},
          {"binds", law.binds()}};
}

json BrokenJson(uint64_t step, const BrokenLaw& broken) {
  json place = LawJson(*broken.law);
  place["step"] = step;
  place["rank"] = broken.rank;
  place["witness"] = broken.witness;
  place["undecided"] = broken.undecided;
  place["deviating"] = broken.deviating;
  place["standing"] = Word(broken.standing);
  place["differing"] = broken.distance.differing;
  place["max_abs"] = broken.distance.max_abs;
  return place;
}

}  // namespace

CommandReport CompareReport(const std::vector<RankComparison>& comparisons, int blamed,
                            const std::string& out) {
  CommandReport report;
  report.verdict = blamed < 0 ? "same" : "differ";
  report.details["out"] = out;
  report.details["comparisons"] = json::array();
  for (const RankComparison& one : comparisons) {
    report.details["comparisons"].push_back(Summary(one));
  }
  if (blamed < 0) return report;
  const RankComparison& one = comparisons[static_cast<size_t>(blamed)];
  const OperatorRow& first = *one.comparison.First();
  json place = Place(first);
  place["rank"] = one.rank;
  place["step"] = one.step.empty() ? json() : json(one.step);
  place["cause"] = one.cause ? CauseJson(*one.cause) : json();
  std::string text = DistanceText(first);
  if (one.cause) text += "; " + ToText(*one.cause, one.ranks, one.golden_ranks);
  report.Add(Severity::kError, text, std::move(place));
  if (one.cause && one.cause->kind == InputCause::Kind::kSharded) report.verdict = "sharded";
  return report;
}

void NoteLaws(uint64_t step, const LawReport& laws, const LawTable& table, bool list,
              CommandReport& report) {
  if (report.verdict.empty()) report.verdict = "hold";
  if (laws.First() != nullptr) report.verdict = "broken";
  json checked = {{"step", step},
                  {"checked", laws.checked},
                  {"missing", laws.missing},
                  {"free", laws.free},
                  {"broken", laws.broken.size()}};
  if (list) {
    checked["laws"] = json::array();
    for (const Law& law : table) checked["laws"].push_back(LawJson(law));
  }
  report.details["steps"].push_back(std::move(checked));
  for (const BrokenLaw& broken : laws.broken) {
    const bool origin = broken.standing == Standing::kOrigin;
    report.Add(origin ? Severity::kError : Severity::kInfo,
               fmt::format("rank {} breaks \"{}\" at {} output {}", broken.rank,
                           ToText(*broken.law), broken.law->key, broken.law->output),
               BrokenJson(step, broken));
  }
}

void NoteReplayed(uint64_t step, const Replayed& replayed, CommandReport& report) {
  if (report.verdict.empty()) report.verdict = "same";
  if (replayed.failed() && report.verdict == "same") report.verdict = "not replayed";
  for (size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
    const Comparison& comparison = replayed.ranks[rank];
    const size_t left_out = replayed.LeftOut(static_cast<int>(rank));
    if (comparison.mine.empty() && left_out == 0) continue;
    report.details["steps"].push_back({{"step", step},
                                       {"rank", rank},
                                       {"ran", comparison.rows.size() + left_out},
                                       {"replayed", comparison.rows.size()},
                                       {"differing", Differing(comparison)}});
    for (const OperatorRow& row : comparison.rows) {
      if (!row.differs()) continue;
      report.verdict = "differ";
      json place = Place(row);
      place["rank"] = rank;
      place["step"] = step;
      report.Add(Severity::kError, DistanceText(row), std::move(place));
    }
  }
  for (const NotReplayed& each : replayed.left_out) {
    report.Add(each.failed ? Severity::kError : Severity::kInfo, each.reason,
               {{"rank", each.rank}, {"step", step}, {"operator", each.name}, {"replayed", false}});
  }
}

}  // namespace npumesh
