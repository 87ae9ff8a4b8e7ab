// FlakyFileSystem: a file system that fails at its n-th call, for tests of what is left afterwards.
//
// Run an operation with fail_at = 1, 2, 3, ... until `failed()` is false: then every call has been
// the failing one once. A failing Append writes the first half of its bytes, as a full disk does.
//
// Thread-safety: as that of the wrapped file system.
#ifndef NPUMESH_TESTS_UNIT_BASE_FLAKY_FILE_SYSTEM_H_
#define NPUMESH_TESTS_UNIT_BASE_FLAKY_FILE_SYSTEM_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/files/file_system.h"

namespace npumesh {

class FlakyFileSystem final : public FileSystem {
 public:
  // `fail_at` counts from 1; 0 never fails. `base` outlives this object.
  explicit FlakyFileSystem(int fail_at, FileSystem& base = RealFileSystem())
      : fail_at_(fail_at), base_(base) {}

  // True when the n-th call has come, and failed.
  bool failed() const { return fail_at_ > 0 && calls_ >= fail_at_; }
  int calls() const { return calls_; }

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("create " + path));
    NPUMESH_ASSIGN_OR_RETURN(auto file, base_.Create(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<FlakyFile>(*this, path, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("open " + path));
    NPUMESH_ASSIGN_OR_RETURN(auto file, base_.OpenAtEnd(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<FlakyFile>(*this, path, std::move(file)));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("rename to " + to));
    return base_.Rename(from, to);
  }
  Status Remove(const std::string& path) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("remove " + path));
    return base_.Remove(path);
  }
  Status MakeFolder(const std::string& path, mode_t mode) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("make folder " + path));
    return base_.MakeFolder(path, mode);
  }
  Status SyncFolder(const std::string& path) override {
    NPUMESH_RETURN_IF_ERROR(MayFail("sync folder " + path));
    return base_.SyncFolder(path);
  }

 private:
  class FlakyFile final : public WritableFile {
   public:
    FlakyFile(FlakyFileSystem& owner, std::string path, std::unique_ptr<WritableFile> base)
        : owner_(owner), path_(std::move(path)), base_(std::move(base)) {}

    Status Append(std::span<const std::byte> bytes) override {
      if (Status status = owner_.MayFail("append to " + path_); !status.ok()) {
        NPUMESH_RETURN_IF_ERROR(base_->Append(bytes.first(bytes.size() / 2)));
        return status;
      }
      return base_->Append(bytes);
    }
    Status Sync() override {
      NPUMESH_RETURN_IF_ERROR(owner_.MayFail("sync " + path_));
      return base_->Sync();
    }
    Status Close() override {
      NPUMESH_RETURN_IF_ERROR(owner_.MayFail("close " + path_));
      return base_->Close();
    }

   private:
    FlakyFileSystem& owner_;
    const std::string path_;
    std::unique_ptr<WritableFile> base_;
  };

  Status MayFail(const std::string& call) {
    if (++calls_ != fail_at_) return Status();
    return Error(Code::kIo, "injected at call {}: {}", fail_at_, call);
  }

  const int fail_at_;
  FileSystem& base_;
  std::atomic<int> calls_{0};
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_BASE_FLAKY_FILE_SYSTEM_H_
