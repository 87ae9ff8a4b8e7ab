#include "graph/static_kernel/store/kernel_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/store/build_work.h"
#include "graph/static_kernel/store/store_files.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// The mark of last use, the time of the manifest, is renewed when it is older.
constexpr int64_t kUseMarkSeconds = 3600;

Status RefuseRoot(const std::string& path, std::string_view why, std::string_view remedy) {
  return Error(Code::kInvalidArgument, "refusing the kernel store {}: it {}; {}", path, why,
               remedy);
}

// Whether this user alone decides what is in `folder`. A folder that is not there is fine.
Status CheckStoreFolder(const std::string& folder) {
  constexpr std::string_view kAnother = "set NPUMESH_KERNEL_STORE to another folder";
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) {
    return errno == ENOENT ? Status() : SystemError("look at", folder, errno);
  }
  if (S_ISLNK(info.st_mode)) {
    return RefuseRoot(folder, "is a symbolic link", "name its target instead");
  }
  if (!S_ISDIR(info.st_mode)) return RefuseRoot(folder, "is no folder", kAnother);
  if (info.st_uid != geteuid()) {
    return RefuseRoot(folder,
                      fmt::format("belongs to user {}, not to {}, and its objects would be run",
                                  info.st_uid, geteuid()),
                      kAnother);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return RefuseRoot(
        folder,
        fmt::format("may be written by others (mode {:03o}), and its objects would be run",
                    info.st_mode & 0777),
        "chmod go-w, or set NPUMESH_KERNEL_STORE to another folder");
  }
  return Status();
}

Status CheckStoreFolders(const std::string& root) {
  NPUMESH_RETURN_IF_ERROR(CheckStoreFolder(root));
  for (const std::string_view name : kStoreFolders) {
    NPUMESH_RETURN_IF_ERROR(CheckStoreFolder(fmt::format("{}/{}", root, name)));
  }
  return Status();
}

Status MakeStoreFolders(const std::string& root, FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(root, FileKind::kKernel, fs));
  for (const std::string_view name : kStoreFolders) {
    NPUMESH_RETURN_IF_ERROR(
        fs.MakeFolder(fmt::format("{}/{}", root, name), FolderMode(FileKind::kKernel)));
  }
  return Status();
}

bool TakesFiles(const std::string& root) {
  return std::all_of(kStoreFolders.begin(), kStoreFolders.end(), [&root](std::string_view name) {
    return access(fmt::format("{}/{}", root, name).c_str(), R_OK | W_OK | X_OK) == 0;
  });
}

// Absolute, without a slash at its end.
std::string AbsoluteRoot(const std::string& root) {
  std::error_code error;
  std::string path = std::filesystem::absolute(root, error).string();
  if (error) path = root;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The keys that have a file in `folder`: names without `ending`.
std::vector<std::string> KeysIn(const std::string& folder, std::string_view ending) {
  std::vector<std::string> keys;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(ending)) continue;
    std::string key = name.substr(0, name.size() - ending.size());
    if (IsSha256(key)) keys.push_back(std::move(key));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Tells Collect that the kernel was used. A store for reading keeps its old mark.
void MarkUsed(const std::string& manifest) {
  struct stat info;
  if (stat(manifest.c_str(), &info) != 0) return;
  if (time(nullptr) - info.st_mtime < kUseMarkSeconds) return;
  utimensat(AT_FDCWD, manifest.c_str(), nullptr, 0);
}

// Removes what is there; appends its path to `removed` then.
void Discard(StoreFiles& files, const std::string& path, std::vector<std::string>* removed) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return;
  const Status status = files.Remove(path);
  if (status.ok()) {
    removed->push_back(path);
  } else {
    NPUMESH_WARNING("stays in the kernel store: {}", status.message());
  }
}

void DiscardKernel(StoreFiles& files, std::string_view key, std::vector<std::string>* removed) {
  for (const std::string& path :
       {files.ManifestPath(key), files.SourcePath(key), files.RecordPath(key)}) {
    Discard(files, path, removed);
  }
}

// Objects and sources that no manifest names, while there is no builder that is about to.
void DiscardOrphans(StoreFiles& files, std::vector<std::string>* removed) {
  if (HasLivingBuilder(files.Folder("work"))) return;
  std::set<std::string> named;
  std::set<std::string> kernels;
  for (const std::string& key : KeysIn(files.Folder("manifests"), ".json")) {
    const StoreFiles::Entry entry = files.Read(key);
    if (!entry.manifest) continue;
    kernels.insert(key);
    named.insert(entry.manifest->kernel.sha256);
  }
  for (const std::string& sha256 : KeysIn(files.Folder("objects"), ".so")) {
    if (!named.contains(sha256)) Discard(files, files.ObjectPath(sha256), removed);
  }
  for (const std::string_view ending : {".cc", ".json"}) {
    for (const std::string& key : KeysIn(files.Folder("sources"), ending)) {
      if (kernels.contains(key)) continue;
      Discard(files, fmt::format("{}/{}{}", files.Folder("sources"), key, ending), removed);
    }
  }
}

// Locks of dead builders, taken over first so that no living one's is removed.
void DiscardDeadLocks(StoreFiles& files, std::vector<std::string>* removed) {
  for (const std::string& key : KeysIn(files.Folder("locks"), "")) {
    const std::string path = files.LockPath(key);
    if (!MayBeTaken(path)) continue;
    const auto lock = KernelLock::TryTake(path);
    if (lock.ok() && *lock) removed->push_back(path);
  }
}

// Hidden files of processes that died while they took a lock, and their guards.
void DiscardDeadCandidates(StoreFiles& files, std::vector<std::string>* removed) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(files.Folder("locks"), error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && !name.ends_with(".taking")) continue;
    if (MayBeTaken(it->path().string())) Discard(files, it->path().string(), removed);
  }
}

bool UnusedFor(const std::string& manifest, std::chrono::hours age) {
  struct stat info;
  if (stat(manifest.c_str(), &info) != 0) return false;
  const std::chrono::seconds idle(std::max<int64_t>(0, time(nullptr) - info.st_mtime));
  return std::chrono::floor<std::chrono::hours>(idle) >= age;
}

}  // namespace

std::span<const EnvVariable> KernelStoreEnvTable() {
  static constexpr EnvVariable kRows[] = {
      {"NPUMESH_KERNEL_STORE", "a folder, made when it is missing; no other user may write it",
       "$XDG_CACHE_HOME/npumesh/kernels, else ~/.cache/npumesh/kernels",
       "Where compiled static kernels are kept (static_kernels.md)."}};
  return kRows;
}

Result<std::string> KernelStoreRoot() {
  return KernelStoreRoot([](const char* name) { return std::getenv(name); });
}

Result<std::string> KernelStoreRoot(const std::function<const char*(const char*)>& get) {
  const auto value = [&get](const char* name) {
    const char* text = get(name);
    return std::string(text != nullptr ? text : "");
  };
  if (const std::string chosen = value("NPUMESH_KERNEL_STORE"); !chosen.empty()) {
    return AbsoluteRoot(chosen);
  }
  if (const std::string cache = value("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return AbsoluteRoot(cache + "/npumesh/kernels");
  }
  if (const std::string home = value("HOME"); home.starts_with('/')) {
    return AbsoluteRoot(home + "/.cache/npumesh/kernels");
  }
  return Error(Code::kNotFound,
               "no place for static kernels: neither NPUMESH_KERNEL_STORE, XDG_CACHE_HOME nor HOME "
               "names one; set NPUMESH_KERNEL_STORE");
}

Result<KernelStore> KernelStore::Open(std::string root, FileSystem& fs, StoreReader reader) {
  if (root.empty() || root.find('\0') != std::string::npos) {
    return Error(Code::kInvalidArgument, "cannot open the kernel store \"{}\": it names no folder",
                 root);
  }
  root = AbsoluteRoot(root);
  NPUMESH_RETURN_IF_ERROR(CheckStoreFolders(root));
  const Status made = MakeStoreFolders(root, fs);
  if (!made.ok() && access(root.c_str(), R_OK | X_OK) != 0) {
    return Error(Code::kIo, "cannot open the kernel store {}: {}; set NPUMESH_KERNEL_STORE", root,
                 made.message());
  }
  NPUMESH_RETURN_IF_ERROR(CheckStoreFolders(root));  // what another process made meanwhile
  const bool writable = made.ok() && TakesFiles(root);
  auto files = std::make_shared<StoreFiles>(root, fs, std::move(reader));
  return KernelStore(std::move(root), writable, std::move(files));
}

Status KernelStore::RefuseUnwritable() const {
  if (writable_) return Status();
  return Error(Code::kIo, "the kernel store {} takes no files; set NPUMESH_KERNEL_STORE", root_);
}

std::optional<KernelObject> KernelStore::Find(std::string_view key) {
  StoreFiles::Entry entry = files_->ReadChecked(key);
  if (entry.damage) {
    NPUMESH_WARNING_ONCE("static kernel {}: {} {}; it counts as absent and is built again", key,
                         entry.damage->file, entry.damage->what);
  }
  if (!entry.manifest) return std::nullopt;
  if (writable_) MarkUsed(files_->ManifestPath(key));
  return std::move(entry.manifest->kernel);
}

std::vector<KernelObject> KernelStore::List() {
  std::vector<KernelObject> kernels;
  for (const std::string& key : KeysIn(files_->Folder("manifests"), ".json")) {
    StoreFiles::Entry entry = files_->ReadChecked(key);
    if (entry.manifest) kernels.push_back(std::move(entry.manifest->kernel));
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.title < b.title; });
  return kernels;
}

Result<BuildOutcome> KernelStore::Build(const BuildPlan& plan,
                                        const std::function<Result<SystemCompiler>()>& compiler) {
  for (const KernelSource& kernel : plan.kernels) {
    if (IsSha256(kernel.key)) continue;
    return Error(Code::kInvalidArgument, "\"{}\" is no key of a static kernel", kernel.key);
  }
  return BuildWork(*this, *files_, plan, compiler).Run();
}

Status KernelStore::Install(const std::string& object_path,
                            const std::vector<KernelObject>& kernels,
                            const std::vector<KernelSource>& sources) {
  NPUMESH_RETURN_IF_ERROR(RefuseUnwritable());
  const auto bytes = ReadFile(object_path);
  if (!bytes.ok()) return bytes.status();
  const std::string sha256 = Sha256(*bytes);
  for (const KernelObject& kernel : kernels) {
    if (!IsSha256(kernel.key)) {
      return Error(Code::kInvalidArgument, "\"{}\" is no key of a static kernel", kernel.key);
    }
    if (kernel.sha256 == sha256) continue;
    return Error(Code::kCorrupt, "{} is damaged: {} ({}) needs SHA-256 {}, and it has {}",
                 object_path, kernel.title, kernel.key, kernel.sha256, sha256);
  }
  NPUMESH_ASSIGN_OR_RETURN(const BuilderFolder work,
                           BuilderFolder::Make(files_->Folder("work"), files_->fs()));
  NPUMESH_RETURN_IF_ERROR(files_->PublishObject(work.path(), sha256, *bytes));
  for (const KernelObject& kernel : kernels) {
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const auto& each) { return each.key == kernel.key; });
    NPUMESH_RETURN_IF_ERROR(
        files_->PublishKernel(work.path(), kernel, source == sources.end() ? nullptr : &*source));
  }
  return files_->SyncManifests();
}

Status KernelStore::Remove(const std::vector<std::string>& keys) {
  NPUMESH_RETURN_IF_ERROR(RefuseUnwritable());
  for (const std::string& key : keys) {
    if (!IsSha256(key)) continue;
    for (const std::string& path : {files_->ManifestPath(key), files_->SourcePath(key),
                                    files_->RecordPath(key), files_->FailurePath(key)}) {
      NPUMESH_RETURN_IF_ERROR(files_->Remove(path));
    }
  }
  std::vector<std::string> removed;
  DiscardOrphans(*files_, &removed);
  return Status();
}

std::vector<KernelStore::Damage> KernelStore::Verify() {
  std::vector<Damage> found;
  const auto note = [&found](std::optional<Damage> damage) {
    if (damage) found.push_back(*std::move(damage));
  };
  for (const std::string& key : KeysIn(files_->Folder("manifests"), ".json")) {
    const StoreFiles::Entry entry = files_->Read(key);
    note(entry.damage);
    if (!entry.manifest) continue;
    const std::string& sha256 = entry.manifest->kernel.sha256;
    // An object that is there is checked below, once.
    if (access(files_->ObjectPath(sha256).c_str(), F_OK) != 0) note(files_->DamageOfObject(sha256));
    note(files_->DamageOfSources(*entry.manifest));
  }
  for (const std::string& sha256 : KeysIn(files_->Folder("objects"), ".so")) {
    note(files_->DamageOfObject(sha256));
  }
  std::sort(found.begin(), found.end(),
            [](const Damage& a, const Damage& b) { return a.file < b.file; });
  return found;
}

std::vector<std::string> KernelStore::Collect(std::chrono::hours age) {
  if (!writable_) return {};
  std::vector<std::string> removed = RemoveDeadBuilders(files_->Folder("work"));
  for (const std::string& key : KeysIn(files_->Folder("manifests"), ".json")) {
    const bool damaged = files_->ReadChecked(key).damage.has_value();
    if (damaged || UnusedFor(files_->ManifestPath(key), age)) {
      DiscardKernel(*files_, key, &removed);
    }
  }
  for (const std::string& key : KeysIn(files_->Folder("failures"), ".json")) {
    Discard(*files_, files_->FailurePath(key), &removed);
  }
  DiscardOrphans(*files_, &removed);
  DiscardDeadLocks(*files_, &removed);
  DiscardDeadCandidates(*files_, &removed);
  std::sort(removed.begin(), removed.end());
  return removed;
}

}  // namespace npumesh
