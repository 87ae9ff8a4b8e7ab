#include "runtime/acl/models/model_machine.h"

#include <dlfcn.h>

#include <filesystem>

#include "runtime/base/files/system_error.h"

namespace npumesh {
namespace {

constexpr char kLibrary[] = "libacl_mdl.so";

// Beside the library that this code is in, else where the system looks.
std::string LibraryPath() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&LibraryPath), &here) == 0) return kLibrary;
  std::error_code error;
  const std::filesystem::path own = std::filesystem::canonical(here.dli_fname, error);
  if (error) return kLibrary;
  const std::filesystem::path beside = own.parent_path() / kLibrary;
  return std::filesystem::exists(beside, error) ? beside.string() : kLibrary;
}

Result<ModelMachine*> LoadMachine() {
  const std::string path = LibraryPath();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never given up
  if (library == nullptr) {
    return Error(Code::kNotFound, "offline models need {}, which cannot be loaded: {}", kLibrary,
                 dlerror());
  }
  void* const symbol = dlsym(library, "npumesh_model_machine");
  if (symbol == nullptr) {
    return Error(Code::kNotFound, "{} is not npumesh's: it has no npumesh_model_machine", path);
  }
  return reinterpret_cast<decltype(&npumesh_model_machine)>(symbol)();
}

}  // namespace

Result<ModelMachine*> ModelMachine::Get() {
  static const Result<ModelMachine*>* const machine = new Result<ModelMachine*>(LoadMachine());
  return *machine;
}

}  // namespace npumesh
