#include "graph/static_kernel/store/store_files.h"

#include <fmt/chrono.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "graph/digest/sha256.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_text.h"

namespace npumesh {
namespace {

using StoreDamage = KernelStore::Damage;

constexpr int kManifestFormat = 1;

// How the manifest names the object: relative to the root, so that a store can be moved.
std::string ObjectInManifest(std::string_view sha256) {
  return fmt::format("objects/{}.so", sha256);
}

std::string TextOfManifest(const KernelObject& kernel, const KernelSource* source) {
  nlohmann::json document = {{"format", kManifestFormat},
                             {"key", kernel.key},
                             {"symbol", kernel.symbol},
                             {"title", kernel.title},
                             {"object", ObjectInManifest(kernel.sha256)},
                             {"sha256", kernel.sha256},
                             {"instruction_set", kernel.instructions},
                             {"compiler", kernel.compiler},
                             {"generator", kernel.generator},
                             {"created", kernel.created}};
  if (source != nullptr) {
    document["source_sha256"] = Sha256(source->program);
    document["record_sha256"] = Sha256(source->record);
  }
  return JsonText(document);
}

// What is wrong with `manifest`, which stands under `key`; empty: nothing.
std::string FaultOfManifest(const nlohmann::json& document, const Manifest& manifest,
                            std::string_view key) {
  const auto format = document.find("format");
  if (format == document.end() || *format != kManifestFormat) {
    return fmt::format("is no manifest of format {}", kManifestFormat);
  }
  if (manifest.kernel.key != key) return "has the key of another kernel";
  if (!IsSha256(manifest.kernel.sha256)) return "has no SHA-256 of its object";
  if (TextMember(document, "object") != ObjectInManifest(manifest.kernel.sha256)) {
    return "names another object than its SHA-256";
  }
  return manifest.kernel.symbol.empty() ? "names no symbol" : "";
}

Manifest ManifestIn(const nlohmann::json& document) {
  Manifest manifest;
  KernelObject& kernel = manifest.kernel;
  kernel.key = TextMember(document, "key");
  kernel.symbol = TextMember(document, "symbol");
  kernel.title = TextMember(document, "title");
  kernel.sha256 = TextMember(document, "sha256");
  kernel.instructions = TextMember(document, "instruction_set");
  kernel.compiler = TextMember(document, "compiler");
  kernel.generator = TextMember(document, "generator");
  kernel.created = TextMember(document, "created");
  manifest.source_sha256 = TextMember(document, "source_sha256");
  manifest.record_sha256 = TextMember(document, "record_sha256");
  return manifest;
}

StoreDamage ObjectDamage(const std::string& path, const Status& status) {
  if (status.code() == Code::kNotFound) return {path, "is missing"};
  return {path, fmt::format("cannot be read: {}", status.message())};
}

}  // namespace

bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string NowInUtc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Result<std::string> ReadStoreFile(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 24;
  return ReadFile(path, kMostBytes);
}

StoreFiles::Entry StoreFiles::Read(std::string_view key) const {
  if (!IsSha256(key)) return {};
  const std::string path = ManifestPath(key);
  const auto text = reader_(path);
  if (!text.ok() && text.status().code() == Code::kNotFound) return {};
  if (!text.ok()) return {{}, StoreDamage{path, std::string(text.status().message())}};
  const nlohmann::json document = ParseForeignJson(*text);
  if (!document.is_object()) return {{}, StoreDamage{path, "is no JSON object"}};
  Manifest manifest = ManifestIn(document);
  if (std::string fault = FaultOfManifest(document, manifest, key); !fault.empty()) {
    return {{}, StoreDamage{path, std::move(fault)}};
  }
  manifest.kernel.object = ObjectPath(manifest.kernel.sha256);
  return {std::move(manifest), {}};
}

StoreFiles::Entry StoreFiles::ReadChecked(std::string_view key) {
  Entry entry = Read(key);
  if (!entry.manifest) return entry;
  entry.damage = DamageOfObject(entry.manifest->kernel.sha256);
  if (entry.damage) entry.manifest.reset();
  return entry;
}

std::optional<StoreFiles::Identity> StoreFiles::IdentityOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return Identity{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                  info.st_mtim.tv_nsec};
}

std::optional<StoreDamage> StoreFiles::DamageOfObject(std::string_view sha256) {
  const std::string path = ObjectPath(sha256);
  const std::optional<Identity> identity = IdentityOf(path);
  const auto known = good_.find(sha256);
  if (identity && known != good_.end() && known->second == *identity) return std::nullopt;
  const auto seen = Sha256OfFile(path);
  if (!seen.ok()) return ObjectDamage(path, seen.status());
  if (!identity) return StoreDamage{path, "is no regular file"};
  if (*seen != sha256) {
    return StoreDamage{path, fmt::format("is damaged: its SHA-256 is {}", *seen)};
  }
  good_.insert_or_assign(std::string(sha256), *identity);
  return std::nullopt;
}

std::optional<StoreDamage> StoreFiles::DamageOfSources(const Manifest& manifest) const {
  const std::string& key = manifest.kernel.key;
  for (const auto& [path, sha256] : {std::pair(SourcePath(key), manifest.source_sha256),
                                     std::pair(RecordPath(key), manifest.record_sha256)}) {
    if (sha256.empty()) continue;
    const auto text = reader_(path);
    if (!text.ok()) return ObjectDamage(path, text.status());
    if (Sha256(*text) != sha256) return StoreDamage{path, "is not what the kernel was made from"};
  }
  return std::nullopt;
}

// Opening a folder makes network file systems ask their server again.
void StoreFiles::Refresh(std::string_view folder) const {
  std::error_code ignored;
  const std::filesystem::directory_iterator opened(Folder(folder), ignored);
}

Status StoreFiles::Publish(const std::string& work, const std::string& target,
                           std::string_view content) {
  const std::string aside = work + target.substr(target.rfind('/'));
  NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(aside, FileKind::kKernel, *fs_));
  NPUMESH_RETURN_IF_ERROR(file->Append(content));
  NPUMESH_RETURN_IF_ERROR(file->CommitUnsynced());
  return fs_->Rename(aside, target);
}

Status StoreFiles::PublishObject(const std::string& work, std::string_view sha256,
                                 std::string_view bytes) {
  const std::string aside = fmt::format("{}/{}.so", work, sha256);
  NPUMESH_RETURN_IF_ERROR(WriteFile(aside, bytes, FileKind::kKernel, *fs_));
  NPUMESH_RETURN_IF_ERROR(fs_->Rename(aside, ObjectPath(sha256)));
  return fs_->SyncFolder(Folder("objects"));
}

Status StoreFiles::PublishKernel(const std::string& work, const KernelObject& kernel,
                                 const KernelSource* source) {
  if (source != nullptr) {
    NPUMESH_RETURN_IF_ERROR(Publish(work, SourcePath(kernel.key), source->program));
    NPUMESH_RETURN_IF_ERROR(Publish(work, RecordPath(kernel.key), source->record));
  }
  NPUMESH_RETURN_IF_ERROR(Publish(work, ManifestPath(kernel.key), TextOfManifest(kernel, source)));
  return fs_->Remove(FailurePath(kernel.key));
}

std::optional<FailureNote> StoreFiles::ReadFailure(std::string_view key) const {
  auto text = reader_(FailurePath(key));
  if (!text.ok()) return std::nullopt;
  const nlohmann::json document = ParseForeignJson(*text);
  if (!document.is_object()) return std::nullopt;
  const auto builder = LockOwner::Parse(TextMember(document, "builder"));
  std::string why = TextMember(document, "why");
  if (TextMember(document, "key") != key || !builder || why.empty()) return std::nullopt;
  return FailureNote{*std::move(text), std::move(why), *builder};
}

Status StoreFiles::PublishFailure(const std::string& work, std::string_view key,
                                  std::string_view why) {
  const LockOwner me = LockOwner::Me();
  const nlohmann::json document = {{"key", key},
                                   {"time", NowInUtc()},
                                   {"boot", me.boot},
                                   {"builder", me.ToString()},
                                   {"why", why}};
  return Publish(work, FailurePath(key), JsonText(document));
}

}  // namespace npumesh
