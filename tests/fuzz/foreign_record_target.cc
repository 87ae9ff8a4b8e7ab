#include <nlohmann/json.hpp>

#include "launch/record/foreign/lines.h"
#include "launch/record/foreign/plog.h"
#include "launch/record/foreign/ras_report.h"
#include "launch/record/foreign/torch_export.h"
#include "launch/record/foreign/torch_record.h"
#include "launch/record/timeline.h"
#include "runtime/base/text/plain_pickle.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

// Everything that can be asked about records.
std::string Digest(const std::vector<RankRecord>& records) {
  if (records.empty()) return "";
  // A report may name a rank of a million; what says so is as long.
  if (records[0].world_size > 4096) return "";
  const Result<Joined> joined = Join(records);
  if (!joined.ok()) return FlawOf(joined.status());
  if (JoinedText(records, *joined).empty()) return "no text";
  for (const RankRecord& record : records) {
    const Result<nlohmann::json> again =
        ReadPlainPickle(WritePlainPickle(TorchDump(record, *joined)), "again");
    if (!again.ok()) return "an export that cannot be read";
  }
  return nlohmann::json::accept(TimelineJson(records, *joined)) ? "" : "a timeline that is no JSON";
}

std::string DigestTorch(const nlohmann::json& dump) {
  std::vector<RankRecord> records;
  for (const int rank : {0, 1}) {
    Result<RankRecord> record = TorchRecord(dump, rank, "fuzz");
    if (!record.ok()) return FlawOf(record.status());
    records.push_back(std::move(*record));
  }
  AlignTorchRecords(records);
  return Digest(records);
}

}  // namespace

std::string CheckForeignRecord(std::string_view bytes) {
  if (LooksLikePickle(bytes)) {
    const Result<nlohmann::json> dump = ReadPlainPickle(bytes, "fuzz");
    return dump.ok() ? DigestTorch(*dump) : FlawOf(dump.status());
  }
  if (bytes.starts_with('{')) {
    const nlohmann::json object = ParseRasJson(std::string(bytes));
    if (!LooksLikeRasJson(object)) return DigestTorch(object);
    const Result<RasReport> report = ReadRasJson(object, "fuzz");
    return report.ok() ? Digest(RasRecords(*report, &*report, "fuzz")) : FlawOf(report.status());
  }
  if (LooksLikeRasText(bytes)) {
    const Result<RasReport> report = ReadRasText(bytes, "fuzz");
    return report.ok() ? Digest(RasRecords(*report, nullptr, "fuzz")) : FlawOf(report.status());
  }
  PlogReader reader;
  reader.Read(bytes, "node0/log");
  return Digest(PlogRecords(reader.facts(), "node0"));
}

}  // namespace npumesh::fuzz
