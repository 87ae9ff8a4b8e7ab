#include "launch/dump/verdict.h"

#include <algorithm>

#include "launch/dump/result_csv.h"
#include "launch/report/json_parts.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string Numbers(const TensorDistance& d, const TensorType& type) {
  if (!d.reason.empty()) return d.reason;
  return fmt::format(
      "{} of {} elements differ, first at {}, max abs {:.6g} at {}, {}, NaN {} against {}, "
      "Inf {} against {}",
      d.differing, type.shape.elements(), PositionText(std::max<int64_t>(d.first, 0), type.shape),
      d.max_abs, PositionText(d.where, type.shape), UlpText(d.max_ulp), d.nan_x, d.nan_y, d.inf_x,
      d.inf_y);
}

size_t Count(const Comparison& comparison, Standing standing) {
  return static_cast<size_t>(
      std::count_if(comparison.rows.begin(), comparison.rows.end(),
                    [&](const OperatorRow& row) { return row.standing == standing; }));
}

std::string Where(const RankComparison& one) {
  return one.step.empty() ? fmt::format("rank {}", one.rank)
                          : fmt::format("rank {} step {}", one.rank, one.step);
}

// The numbers of a difference; an infinity or NaN is null in JSON.
json DistanceJson(const TensorDistance& distance, const Shape& shape) {
  json object = {{"elements", shape.elements()},
                 {"differing", distance.differing},
                 {"max_abs", distance.max_abs},
                 {"max_ulp", distance.max_ulp}};
  object["reason"] = OrNull(distance.reason);
  object["first"] = distance.first < 0 ? json() : json(PositionText(distance.first, shape));
  return object;
}

// Where an operator differs most.
json Place(const OperatorRow& row) {
  json place = {{"operator", row.name}, {"type", row.type}, {"standing", Name(row.standing)}};
  const TensorRow* const worst = row.Worst();
  if (worst == nullptr) return place;
  place["side"] = Name(worst->side);
  place["index"] = worst->index;
  place["tensor"] = worst->mine.ToString();
  place.update(DistanceJson(worst->distance, worst->mine.shape));
  place["pattern"] = OrNull(worst->pattern);
  return place;
}

json CauseJson(const InputCause& cause) {
  json object = {{"kind", Name(cause.kind)},
                 {"name", cause.name},
                 {"file", OrNull(cause.file)},
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
          {"step", OrNull(one.step)},
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
  place["standing"] = Name(broken.standing);
  place["differing"] = broken.distance.differing;
  place["max_abs"] = broken.distance.max_abs;
  return place;
}

}  // namespace

std::string SummaryText(const RankComparison& one) {
  const Comparison& comparison = one.comparison;
  const OperatorRow* const first = comparison.First();
  std::string line = fmt::format("{}: {} operators compared", Where(one), comparison.rows.size());
  if (const size_t missing = comparison.only_mine.size() + comparison.only_golden.size()) {
    line += fmt::format(", {} on one side only", missing);
  }
  if (first == nullptr) return line + ", all the same";
  return line + fmt::format(", first difference at {} ({}), {} differ after it",
                            Printable(first->name), Printable(first->type),
                            Count(comparison, Standing::kConsequence) +
                                Count(comparison, Standing::kOrigin) - 1);
}

std::string DistanceText(const OperatorRow& row) {
  const TensorRow* const worst = row.Worst();
  if (worst == nullptr) {
    return fmt::format("{} ({}): the same", Printable(row.name), Printable(row.type));
  }
  return fmt::format("{} ({}) {} {} {}: {}{}{}", Printable(row.name), Printable(row.type),
                     Name(worst->side), worst->index, worst->mine.ToString(),
                     Numbers(worst->distance, worst->mine), worst->pattern.empty() ? "" : "; ",
                     worst->pattern);
}

std::string VerdictText(const std::vector<RankComparison>& comparisons, int blamed) {
  std::string text;
  for (const RankComparison& one : comparisons) text += SummaryText(one) + "\n";
  if (blamed < 0) return text + "verdict: no operator differs\n";
  const RankComparison& one = comparisons[static_cast<size_t>(blamed)];
  const OperatorRow& first = *one.comparison.First();
  text += fmt::format("verdict: {}: {}\n", Where(one), DistanceText(first));
  if (one.cause) {
    text +=
        fmt::format("  {}\n", PrintableMessage(ToText(*one.cause, one.ranks, one.golden_ranks)));
  }
  if (!one.called_at.empty()) text += fmt::format("  called at {}\n", Printable(one.called_at));
  return text;
}

std::string LawsText(const LawReport& report) {
  std::string text = fmt::format("{} laws checked, {} not for want of tensors, {} outputs free\n",
                                 report.checked, report.missing, report.free);
  const BrokenLaw* const first = report.First();
  if (first == nullptr) return text + "verdict: no law is broken\n";
  text += fmt::format("verdict: rank {}{} breaks \"{}\" at {} ({}) output {}: {}\n", first->rank,
                      first->undecided ? fmt::format(" or rank {}", first->witness) : "",
                      ToText(*first->law), first->law->key, first->law->type, first->law->output,
                      first->distance.reason.empty()
                          ? fmt::format("{} elements differ from rank {}, max abs {:.6g}, {}",
                                        first->distance.differing, first->witness,
                                        first->distance.max_abs, UlpText(first->distance.max_ulp))
                          : first->distance.reason);
  if (first->undecided) {
    text +=
        "  as many ranks hold one value as the other; a dump of mode all would tell which of them "
        "did not compute what it was given\n";
  }
  if (report.broken.size() > 1) {
    text += fmt::format("  {} laws are broken after it\n", report.broken.size() - 1);
  }
  return text;
}

std::string LawTableText(const LawTable& table) {
  std::string text;
  for (const Law& law : table) {
    text += fmt::format("{:<40} {}\n", fmt::format("{}:{} ({})", law.key, law.output, law.type),
                        ToText(law));
  }
  return text;
}

std::vector<std::string> GoldenVerdictLines(const GoldenReport& report, const GoldenBlame& blame) {
  if (report.First() == nullptr) return {};
  const GoldenRow& first = *report.First();
  const TensorDistance& distance = first.fit.distance;
  std::vector<std::string> lines = {fmt::format(
      "{}: {} ({}) output {}, {}: {}", WhoText(first, blame), Printable(first.name),
      Printable(first.type), first.output, ToText(first.fit.sharding),
      distance.reason.empty()
          ? fmt::format("{} elements differ, max abs {:.6g}", distance.differing, distance.max_abs)
          : distance.reason)};
  if (!first.pattern.empty()) lines[0] += "; " + first.pattern;
  if (blame.shard) lines.push_back(PrintableMessage(ToText(*blame.shard)));
  if (!blame.origin.empty()) lines.push_back("it comes from " + PrintableMessage(blame.origin));
  return lines;
}

std::string GoldenHeading(const GoldenReport& report) {
  const std::string outputs =
      fmt::format("{} outputs compared with the unsharded graph", report.rows.size());
  if (report.not_comparable.empty()) return outputs;
  return fmt::format("{}, {} not comparable by shape", outputs, report.not_comparable.size());
}

std::string GoldenText(const std::string& compared, const std::vector<std::string>& verdict) {
  std::string text = fmt::format("golden: {}\n", compared);
  if (verdict.empty()) return text + "golden: no operator differs\n";
  for (const std::string& line : verdict) text += fmt::format("golden: {}\n", line);
  return text;
}

CommandReport CompareReport(const std::vector<RankComparison>& comparisons, int blamed,
                            const std::string& out) {
  CommandReport report;
  report.verdict = blamed < 0 ? "same" : "differ";
  report.details["out"] = out;
  report.details["comparisons"] = ListOf(comparisons, Summary);
  if (blamed < 0) return report;
  const RankComparison& one = comparisons[static_cast<size_t>(blamed)];
  const OperatorRow& first = *one.comparison.First();
  json place = Place(first);
  place["rank"] = one.rank;
  place["step"] = OrNull(one.step);
  place["cause"] = one.cause ? CauseJson(*one.cause) : json();
  place["called_at"] = OrNull(one.called_at);
  std::string text = DistanceText(first);
  if (one.cause) text += "; " + ToText(*one.cause, one.ranks, one.golden_ranks);
  if (!one.called_at.empty()) text += "; called at " + one.called_at;
  report.Add(Severity::kError, text, std::move(place));
  if (one.cause && one.cause->kind == InputCause::Kind::kSharded) report.verdict = "sharded";
  return report;
}

void NoteLaws(uint64_t step, const LawReport& laws, const LawTable& table, bool list,
              CommandReport& report) {
  if (laws.First() != nullptr) report.verdict = "broken";
  json checked = {{"step", step},
                  {"checked", laws.checked},
                  {"missing", laws.missing},
                  {"free", laws.free},
                  {"broken", laws.broken.size()}};
  if (list) checked["laws"] = ListOf(table, LawJson);
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
