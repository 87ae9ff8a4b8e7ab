// StoreFiles: where the files of a kernel store lie, and how they are read and published.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_STORE_FILES_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_STORE_FILES_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/static_kernel/store/kernel_lock.h"
#include "graph/static_kernel/store/kernel_store.h"

namespace npumesh {

inline constexpr std::array<std::string_view, 6> kStoreFolders = {
    "manifests", "objects", "sources", "locks", "failures", "work"};

// 64 lower-case hexadecimal digits, as keys and contents are named.
bool IsSha256(std::string_view text);

// "2026-11-22T19:20:02Z".
std::string NowInUtc();

// A manifest: a kernel, and the SHA-256 of its source and record (empty: it was installed without).
struct Manifest {
  KernelObject kernel;
  std::string source_sha256;
  std::string record_sha256;
};

// A failure as it stands in the store.
struct FailureNote {
  std::string text;  // the whole file: two notes are the same when it is
  std::string why;
  LockOwner builder;
};

class StoreFiles {
 public:
  StoreFiles(std::string root, FileSystem& fs, StoreReader reader)
      : root_(std::move(root)), fs_(&fs), reader_(std::move(reader)) {}

  std::string Folder(std::string_view name) const { return fmt::format("{}/{}", root_, name); }
  std::string ManifestPath(std::string_view key) const { return Path("manifests", key, ".json"); }
  std::string ObjectPath(std::string_view sha256) const { return Path("objects", sha256, ".so"); }
  std::string SourcePath(std::string_view key) const { return Path("sources", key, ".cc"); }
  std::string RecordPath(std::string_view key) const { return Path("sources", key, ".json"); }
  std::string LockPath(std::string_view key) const { return Path("locks", key, ""); }
  std::string FailurePath(std::string_view key) const { return Path("failures", key, ".json"); }

  // What stands in the store under a key: a manifest, damage, or neither.
  struct Entry {
    std::optional<Manifest> manifest;
    std::optional<KernelStore::Damage> damage;
  };
  Entry Read(std::string_view key) const;
  // The same with the object checked: a manifest whose object is bad is damage.
  Entry ReadChecked(std::string_view key);
  // What is wrong with the object of that content. A good answer is remembered until the file
  // changes.
  std::optional<KernelStore::Damage> DamageOfObject(std::string_view sha256);
  std::optional<KernelStore::Damage> DamageOfSources(const Manifest& manifest) const;

  // Makes the next look-ups see what other hosts have put into the folder.
  void Refresh(std::string_view folder) const;

  // Each writes in the work folder first. The object is synced; the others are whole, and their
  // loss in a power failure costs a second run.
  Status PublishObject(const std::string& work, std::string_view sha256, std::string_view bytes);
  // Sources, as far as given, and then the manifest.
  Status PublishKernel(const std::string& work, const KernelObject& kernel,
                       const KernelSource* source);
  Status SyncManifests() { return fs_->SyncFolder(Folder("manifests")); }

  std::optional<FailureNote> ReadFailure(std::string_view key) const;
  Status PublishFailure(const std::string& work, std::string_view key, std::string_view why);

  Status Remove(const std::string& path) { return fs_->Remove(path); }
  FileSystem& fs() { return *fs_; }

 private:
  // A file as it was when its content was found good.
  struct Identity {
    uint64_t device, inode;
    int64_t size, seconds, nanoseconds;
    bool operator==(const Identity&) const = default;
  };
  static std::optional<Identity> IdentityOf(const std::string& path);

  std::string Path(std::string_view folder, std::string_view name, std::string_view ending) const {
    return fmt::format("{}/{}/{}{}", root_, folder, name, ending);
  }
  Status Publish(const std::string& work, const std::string& target, std::string_view content);

  std::string root_;
  FileSystem* fs_;
  StoreReader reader_;
  std::map<std::string, Identity, std::less<>> good_;  // by SHA-256
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_STORE_FILES_H_
