#include "runtime/base/files/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/files/mapped_file.h"
#include "runtime/base/files/system_error.h"

namespace npumesh {
namespace {

// The reason of the last failed dlopen, without the name of the file in front.
std::string LoadError(const std::string& absolute) {
  const char* text = dlerror();
  std::string reason = text != nullptr ? text : "unknown reason";
  if (reason.starts_with(absolute + ": ")) reason.erase(0, absolute.size() + 2);
  return reason;
}

// A file in a sticky folder, as /tmp is, can be replaced by its owner only.
bool MayBeReplaced(const struct stat& folder, const struct stat& file) {
  if ((folder.st_mode & S_IWOTH) == 0) return false;
  const bool trusted_owner = file.st_uid == 0 || file.st_uid == geteuid();
  return (folder.st_mode & S_ISVTX) == 0 || !trusted_owner;
}

Status Refusal(std::string_view what, const std::string& where, std::string_view override_option) {
  const std::string other =
      override_option.empty() ? "" : fmt::format(", or ask for it with {}", override_option);
  return Error(Code::kInvalidArgument,
               "all users may {} {}, and so run code as you; take that right away (chmod o-w {}){}",
               what, where, where, other);
}

// Error: every user may write `path`, or replace it or a folder above it.
Status CheckPermissions(const std::string& path, std::string_view override_option) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return SystemError("inspect", path, errno);
  // A link says nothing about what it names.
  if (!S_ISLNK(info.st_mode) && (info.st_mode & S_IWOTH) != 0) {
    return Refusal("write", path, override_option);
  }
  for (std::filesystem::path inner = path; inner.has_relative_path(); inner = inner.parent_path()) {
    struct stat above;
    const std::string folder = inner.parent_path().string();
    if (stat(folder.c_str(), &above) != 0) return SystemError("inspect", folder, errno);
    if (MayBeReplaced(above, info)) return Refusal("replace files in", folder, override_option);
    info = above;
  }
  return Status();
}

}  // namespace

void UnloadLibrary::operator()(void* handle) const {
  dlclose(handle);
}

Result<LibraryHandle> OpenLibrary(const std::string& path, LibraryTrust trust,
                                  std::string_view override_option) {
  NPUMESH_RETURN_IF_ERROR(MappedFile::Open(path).status());  // a regular file
  std::error_code error;
  const std::filesystem::path named = std::filesystem::absolute(path, error).lexically_normal();
  const std::string absolute = std::filesystem::canonical(path, error).string();
  if (error) return Error(Code::kIo, "cannot be located: {}", error.message());
  if (trust == LibraryTrust::kOwner) {
    NPUMESH_RETURN_IF_ERROR(CheckPermissions(named.string(), override_option));
    NPUMESH_RETURN_IF_ERROR(CheckPermissions(absolute, override_option));
  }
  LibraryHandle handle(dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr) {
    return Error(Code::kInvalidArgument, "cannot be loaded as a shared library: {}",
                 LoadError(absolute));
  }
  return handle;
}

void* SymbolOf(const LibraryHandle& library, const char* name) {
  return dlsym(library.get(), name);
}

}  // namespace npumesh
