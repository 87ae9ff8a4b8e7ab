// Files of a profile that may become long: written in pieces, whole or not at all. They are not
// synced: what a power failure destroys is made again from the profile.
//
// Thread-safety: one thread for each object.
#ifndef NPUMESH_RUNTIME_MSPROF_REPORT_FILE_H_
#define NPUMESH_RUNTIME_MSPROF_REPORT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// Text in pieces of about a mebibyte. The first error stays, and is what Commit returns.
class ReportFile {
 public:
  ReportFile(const std::string& path, FileSystem& fs);

  void Append(std::string_view text);
  // As SecureFile::CommitUnsynced. REQUIRES: not called before.
  Status Commit();

 private:
  void Flush();

  std::unique_ptr<SecureFile> file_;
  std::string waiting_;
  Status error_;
};

// ReportFile in one call.
Status WriteReport(const std::string& path, std::string_view text, FileSystem& fs);

// A JSON value as a file of the vendor has it: on one line; bytes of names that are no UTF-8 are
// replaced.
Status WriteJson(const std::string& path, const nlohmann::json& value, FileSystem& fs);

// Where a table goes: `folder`/`report`_`stamp`.csv, or `folder`/`report`.csv when `stamp` is
// empty.
struct TablePlace {
  std::string folder;
  std::string report;
  std::string stamp;
};

// A table of the vendor. One of more than `rows_of_slice` rows is written as several files, each
// with the header: `report`_slice_<n>_`stamp`.csv, n from 0.
class CsvTable {
 public:
  static constexpr uint64_t kRowsOfSlice = 1'000'000;

  // `header`: the names of the columns, joined by commas. `rows`: how many there will be.
  CsvTable(TablePlace place, std::string_view header, uint64_t rows, FileSystem& fs,
           uint64_t rows_of_slice = kRowsOfSlice);

  // Cells are quoted where they need it.
  void Add(const std::vector<std::string>& cells);
  // Errors as SecureFile::CommitUnsynced; the first of all slices. REQUIRES: all rows were added.
  Status Finish();

 private:
  void Open();
  void Close();
  std::string Path() const;

  const TablePlace place_;
  const std::string header_;
  const bool sliced_;
  const uint64_t rows_of_slice_;
  FileSystem& fs_;
  std::unique_ptr<ReportFile> file_;
  uint64_t slice_ = 0;
  uint64_t rows_ = 0;  // of this slice
  Status error_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_REPORT_FILE_H_
