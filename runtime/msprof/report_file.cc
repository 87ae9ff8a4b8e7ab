#include "runtime/msprof/report_file.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

void AppendCell(std::string_view cell, std::string& line) {
  if (cell.find_first_of(",\"") == std::string_view::npos) {
    line += cell;
    return;
  }
  line += '"';
  for (const char each : cell) line.append(each == '"' ? 2 : 1, each);
  line += '"';
}

}  // namespace

ReportFile::ReportFile(const std::string& path, FileSystem& fs) {
  auto file = SecureFile::Create(path, FileKind::kDebug, fs);
  if (file.ok()) {
    file_ = std::move(*file);
  } else {
    error_ = file.status();
  }
}

void ReportFile::Append(std::string_view text) {
  waiting_ += text;
  if (waiting_.size() >= kPiece) Flush();
}

Status ReportFile::Commit() {
  Flush();
  return error_.ok() ? file_->CommitUnsynced() : error_;
}

void ReportFile::Flush() {
  if (error_.ok() && !waiting_.empty()) error_ = file_->Append(waiting_);
  waiting_.clear();
}

Status WriteReport(const std::string& path, std::string_view text, FileSystem& fs) {
  ReportFile file(path, fs);
  file.Append(text);
  return file.Commit();
}

Status WriteJson(const std::string& path, const nlohmann::json& value, FileSystem& fs) {
  const std::string text =
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return WriteReport(path, text, fs);
}

CsvTable::CsvTable(TablePlace place, std::string_view header, uint64_t rows, FileSystem& fs,
                   uint64_t rows_of_slice)
    : place_(std::move(place)),
      header_(header),
      sliced_(rows > rows_of_slice),
      rows_of_slice_(rows_of_slice),
      fs_(fs) {
  Open();
}

void CsvTable::Add(const std::vector<std::string>& cells) {
  if (rows_ == rows_of_slice_) {
    Close();
    ++slice_;
    Open();
  }
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    // A tabulator at the end makes spreadsheets show all digits.
    const bool tab = cell.ends_with('\t');
    AppendCell(Printable(std::string_view(cell).substr(0, cell.size() - tab)), line);
    if (tab) line += '\t';
  }
  file_->Append(line + "\n");
  ++rows_;
}

Status CsvTable::Finish() {
  Close();
  return error_;
}

void CsvTable::Open() {
  file_ = std::make_unique<ReportFile>(Path(), fs_);
  file_->Append(header_ + "\n");
  rows_ = 0;
}

void CsvTable::Close() {
  const Status status = file_->Commit();
  if (error_.ok()) error_ = status;
}

std::string CsvTable::Path() const {
  const std::string slice = sliced_ ? fmt::format("_slice_{}", slice_) : "";
  const std::string stamp = place_.stamp.empty() ? "" : "_" + place_.stamp;
  return fmt::format("{}/{}{}{}.csv", place_.folder, place_.report, slice, stamp);
}

}  // namespace npumesh
