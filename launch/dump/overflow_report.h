// Overflow records: which operators overflowed, in a tree of dumps.
#ifndef NPUMESH_LAUNCH_DUMP_OVERFLOW_REPORT_H_
#define NPUMESH_LAUNCH_DUMP_OVERFLOW_REPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/compare/sources/dump_folder.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// The debug record of one accelerator.
struct OverflowEntry {
  std::string accelerator;  // "AI Core", "AI Vector Core", "AI CPU", "SDMA"; old records' areas
  uint64_t model_id = 0;
  uint64_t stream_id = 0;
  uint64_t task_id = 0;
  uint64_t status = 0;
  nlohmann::json fields;  // all of them, by name
};

// The entries of a payload in the new form (magic 0x5A5A5A5A) or the old one of 2048 bytes that
// hold data. Error: kCorrupt begins with `what`.
Result<std::vector<OverflowEntry>> ParseOverflowRecord(std::span<const std::byte> bytes,
                                                       const std::string& what);

// The same payload as the vendor's msaccucmp writes it: {magic, version, acc_list{valid, acc_type,
// rsv, data_len, data{...}}} of the first accelerator, or of an old record {DHA Atomic Add, L2
// Atomic Add, AI Core}; addresses as hexadecimal text. Error: kCorrupt begins with `what`.
Result<nlohmann::ordered_json> OverflowJson(std::span<const std::byte> bytes,
                                            const std::string& what);

// True for the file of a debug record, by its name.
bool IsOverflowRecord(const DumpFileName& name);

// Writes `out`/{file name}.output.{i}.json for each output of a debug record's file; returns their
// number. Errors: as DumpFile::Open, OverflowJson and WriteFile.
Result<size_t> ConvertOverflowRecord(const std::string& path, const std::string& out);

// One overflow: the record and the operator whose dump has its task and stream.
struct Overflow {
  std::string record_file;
  std::string operator_file;  // empty: not found
  std::string op_type;
  std::string op_name;
  OverflowEntry entry;
};

// All overflows in `steps`, in order of time. Errors: as ListDumpFiles, DumpFile::Open and
// ParseOverflowRecord.
Result<std::vector<Overflow>> FindOverflows(const std::vector<DumpStep>& steps);

// The first `most` overflows, with the statistics of the operator's tensors; the text of
// overflow_summary_{time}.txt. Errors: those of the operators' files.
Result<std::string> OverflowText(const std::vector<Overflow>& overflows, size_t most);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_OVERFLOW_REPORT_H_
