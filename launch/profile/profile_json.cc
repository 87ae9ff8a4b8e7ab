#include "launch/profile/profile_json.h"

#include "launch/profile/profile_text.h"

namespace npumesh {
namespace {

using nlohmann::json;

json ToJson(const TimeParts& parts) {
  return {{"wall_ns", parts.wall_ns},
          {"computing_ns", parts.computing_ns},
          {"overlapped_ns", parts.overlapped_ns},
          {"moving_ns", parts.moving_ns},
          {"waiting_ns", parts.waiting_ns},
          {"preparing_ns", parts.preparing_ns},
          {"idle_ns", parts.idle_ns}};
}

json ToJson(const StepFacts& step) {
  json object = ToJson(step.parts);
  object["step"] = step.step;
  object["rank"] = step.rank;
  object["whole"] = step.whole;
  return object;
}

json ToJson(const RankFacts& rank) {
  json object = ToJson(rank.parts);
  object["rank"] = rank.rank;
  object["host"] = rank.host;
  object["collectives"] = rank.collectives;
  object["came_last"] = rank.came_last;
  object["others_waited_ns"] = rank.others_waited_ns;
  object["highest_memory_bytes"] = rank.highest_memory;
  return object;
}

// A rate that is not known is null.
json RateJson(double rate) {
  return rate == 0 ? json(nullptr) : json(rate);
}

json OperatorJson(const OperatorFacts& one, const std::optional<MachineLimits>& limits) {
  json object = {{"type", one.type},
                 {"count", one.count},
                 {"total_ns", one.total_ns},
                 {"mean_ns", one.mean_ns()},
                 {"share", one.share},
                 {"gflops", RateJson(one.gflops)},
                 {"gbytes", RateJson(one.gbytes)},
                 {"intensity", RateJson(one.intensity)}};
  if (!one.name.empty()) object["name"] = one.name;
  if (limits) {
    object["roofline_gflops"] =
        one.intensity > 0 ? json(Roofline(*limits, one.intensity)) : json(nullptr);
    const std::optional<NearLimit> near = NearLimitOf(one, *limits);
    object["limited_by"] = near ? json(near->of) : json(nullptr);
    object["part_of_limit"] = near ? json(near->part) : json(nullptr);
  }
  return object;
}

json OperatorsJson(const std::vector<OperatorFacts>& operators,
                   const std::optional<MachineLimits>& limits) {
  json list = json::array();
  for (const OperatorFacts& one : operators) list.push_back(OperatorJson(one, limits));
  return list;
}

json ToJson(const KindFacts& one) {
  return {{"kind", one.kind},
          {"calls", one.calls},
          {"spans", one.spans},
          {"bytes", one.bytes},
          {"moving_ns", one.moving_ns},
          {"waiting_ns", one.waiting_ns},
          {"gbytes", RateJson(one.bandwidth())}};
}

json ToJson(const ComparedTime& one) {
  json object = {{"type", one.type},
                 {"count_before", one.count_before},
                 {"count_after", one.count_after},
                 {"before_ns", one.before_ns},
                 {"after_ns", one.after_ns},
                 {"mean_before_ns", one.mean_before_ns()},
                 {"mean_after_ns", one.mean_after_ns()}};
  if (!one.name.empty()) object["name"] = one.name;
  return object;
}

json ToJson(const ComparedStep& step) {
  return {{"step", step.step}, {"before", ToJson(step.before)}, {"after", ToJson(step.after)}};
}

json ToJson(const ComparedRank& rank) {
  return {{"rank", rank.rank}, {"before", ToJson(rank.before)}, {"after", ToJson(rank.after)}};
}

template <typename T>
json ListJson(const std::vector<T>& all) {
  json list = json::array();
  for (const T& each : all) list.push_back(ToJson(each));
  return list;
}

json SlowestJson(const SlowestFacts& slowest) {
  return {{"rank", slowest.rank < 0 ? json(nullptr) : json(slowest.rank)},
          {"ranks", slowest.ranks},
          {"late_ns", slowest.late_ns},
          {"part", slowest.part.empty() ? json(nullptr) : json(slowest.part)},
          {"part_ns", slowest.part_ns},
          {"operator", slowest.op.empty() ? json(nullptr) : json(slowest.op)},
          {"computes_longest", slowest.computes_longest},
          {"waits_least", slowest.waits_least},
          {"enters_last", slowest.enters_last},
          {"text", slowest.text}};
}

json ClockJson(const ProfileFacts& facts) {
  return {{"hosts", facts.hosts},
          {"bound_ns", facts.clock_guessed ? json(nullptr) : json(facts.clock_bound_ns)},
          {"collectives_checked", facts.causes.calls},
          {"effects_before_causes", facts.causes.violations}};
}

}  // namespace

CommandReport ProfileReport(const ProfileFacts& facts, const std::optional<MachineLimits>& limits) {
  CommandReport report;
  for (const std::string& gap : facts.gaps) report.Add(Severity::kWarning, gap);
  const std::string causes = CauseText(facts.causes);
  if (!causes.empty()) report.Add(Severity::kWarning, causes);
  if (facts.clock_guessed) report.Add(Severity::kWarning, ClockText(facts));
  report.verdict = report.findings.empty() ? "whole" : "partial";
  report.details = {{"profiled", facts.command},
                    {"world_size", facts.world_size},
                    {"clock", ClockJson(facts)},
                    {"slowest", SlowestJson(facts.slowest)},
                    {"steps", ListJson(facts.steps)},
                    {"ranks", ListJson(facts.ranks)},
                    {"types", OperatorsJson(facts.types, limits)},
                    {"operators", OperatorsJson(facts.operators, limits)},
                    {"collectives", ListJson(facts.collectives)}};
  report.details["limits"] =
      limits ? json{{"gflops", limits->gflops}, {"gbytes", limits->gbytes}} : json(nullptr);
  return report;
}

CommandReport ComparedReport(const ComparedProfiles& compared) {
  CommandReport report;
  for (const std::string& gap : compared.gaps) report.Add(Severity::kWarning, gap);
  const ComparedVerdict& verdict = compared.verdict;
  report.verdict = verdict.word;
  if (verdict.word == "slower") {
    report.Add(Severity::kAdvice, verdict.text,
               verdict.rank < 0 ? json::object() : json{{"rank", verdict.rank}});
  }
  report.details = {{"text", verdict.text},
                    {"factor", verdict.factor == 0 ? json(nullptr) : json(verdict.factor)},
                    {"change_ns", verdict.change_ns},
                    {"rank", verdict.rank < 0 ? json(nullptr) : json(verdict.rank)},
                    {"ranks", ListJson(compared.ranks)},
                    {"steps", ListJson(compared.steps)},
                    {"steps_only_before", compared.steps_only_before},
                    {"steps_only_after", compared.steps_only_after},
                    {"types", ListJson(compared.types)},
                    {"operators", ListJson(compared.operators)},
                    {"collectives", ListJson(compared.collectives)}};
  return report;
}

}  // namespace npumesh
