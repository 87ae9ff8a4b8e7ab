#include "graph/tuning/tuning_record.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_text.h"

namespace npumesh {
namespace {

constexpr int kRecordFormat = 1;

nlohmann::json ToJson(const Preferences& preferences) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [decision, option] : preferences) object[decision] = option;
  return object;
}

// The member of an object; null when there is no such member.
const nlohmann::json& MemberOf(const nlohmann::json& object, const char* name) {
  static const auto* const none = new nlohmann::json;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : *none;
}

Result<Preferences> ReadDecisions(const nlohmann::json& object) {
  if (!object.is_object()) return Error(Code::kCorrupt, "a candidate has no decisions");
  Preferences preferences;
  for (const auto& [decision, option] : object.items()) {
    if (!option.is_string()) return Error(Code::kCorrupt, "a decision is no text");
    preferences[decision] = option.get<std::string>();
  }
  return preferences;
}

Result<TuningRecord::Candidate> ReadCandidate(const nlohmann::json& object) {
  TuningRecord::Candidate candidate;
  NPUMESH_ASSIGN_OR_RETURN(candidate.decisions, ReadDecisions(MemberOf(object, "decisions")));
  candidate.failure = TextMember(object, "failure");
  const nlohmann::json& median = MemberOf(object, "microseconds");
  const nlohmann::json& runs = MemberOf(object, "runs");
  if (!median.is_number() || !(median.get<double>() >= 0) || !runs.is_number_unsigned()) {
    return Error(Code::kCorrupt, "a candidate has no time");
  }
  candidate.median_us = median.get<double>();
  candidate.runs = static_cast<int>(std::min<uint64_t>(runs.get<uint64_t>(), 1u << 30));
  return candidate;
}

// REQUIRES: there are candidates.
Status CheckWinner(const TuningRecord& record) {
  if (!record.ordinary().decisions.empty()) {
    return Error(Code::kCorrupt, "the first candidate is not the ordinary one");
  }
  if (record.winner >= record.candidates.size() || !record.best().failure.empty()) {
    return Error(Code::kCorrupt, "the winner is no candidate");
  }
  return Status();
}

}  // namespace

std::string TuningRecord::ToText() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back({{"decisions", ToJson(candidate.decisions)},
                    {"microseconds", candidate.median_us},
                    {"runs", candidate.runs}});
    if (!candidate.failure.empty()) list.back()["failure"] = candidate.failure;
  }
  const nlohmann::json document = {{"format", kRecordFormat},
                                   {"key", key},
                                   {"step", step},
                                   {"winner", winner},
                                   {"candidates", std::move(list)},
                                   {"instruction_set", instructions},
                                   {"cpu", cpu},
                                   {"npumesh", npumesh},
                                   {"created", created}};
  return JsonText(document);
}

Result<TuningRecord> TuningRecord::Parse(std::string_view text, std::string_view key) {
  const nlohmann::json document = ParseForeignJson(text);
  if (!document.is_object()) return Error(Code::kCorrupt, "it is no JSON object");
  if (MemberOf(document, "format") != kRecordFormat) {
    return Error(Code::kCorrupt, "it is no record of format {}", kRecordFormat);
  }
  TuningRecord record;
  record.key = TextMember(document, "key");
  if (record.key != key) return Error(Code::kCorrupt, "it has the key of another step");
  const nlohmann::json& list = MemberOf(document, "candidates");
  if (!list.is_array() || list.empty()) return Error(Code::kCorrupt, "it has no candidates");
  for (const nlohmann::json& each : list) {
    NPUMESH_ASSIGN_OR_RETURN(Candidate candidate, ReadCandidate(each));
    record.candidates.push_back(std::move(candidate));
  }
  const nlohmann::json& winner = MemberOf(document, "winner");
  if (!winner.is_number_unsigned()) return Error(Code::kCorrupt, "it names no winner");
  record.winner = winner.get<size_t>();
  NPUMESH_RETURN_IF_ERROR(CheckWinner(record));
  record.step = TextMember(document, "step");
  record.instructions = TextMember(document, "instruction_set");
  record.cpu = TextMember(document, "cpu");
  record.npumesh = TextMember(document, "npumesh");
  record.created = TextMember(document, "created");
  return record;
}

}  // namespace npumesh
