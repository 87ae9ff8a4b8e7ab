#include "graph/static_kernel/record/run_package.h"

#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/record/package_script.h"
#include "graph/static_kernel/record/tar_archive.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "graph/static_kernel/store/store_files.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using PackageParts = std::map<std::string, std::string>;  // contents by path in the archive

Status CheckNames(const KernelObject& kernel) {
  if (IsSha256(kernel.key) && IsSha256(kernel.sha256)) return Status();
  return Error(Code::kInvalidArgument,
               "static kernel \"{}\": expected 64 hexadecimal digits each, got the key \"{}\" and "
               "the SHA-256 \"{}\" of its object",
               Quotable(kernel.title), Quotable(kernel.key), Quotable(kernel.sha256));
}

Status AddObject(const KernelObject& kernel, PackageParts& parts) {
  std::string& part = parts[fmt::format("objects/{}.so", kernel.sha256)];
  if (!part.empty()) return Status();  // kernels share objects
  NPUMESH_ASSIGN_OR_RETURN(part, ReadFile(kernel.object));
  const std::string seen = Sha256(part);
  if (seen == kernel.sha256) return Status();
  return Error(Code::kCorrupt,
               "{}: it has SHA-256 {}, its manifest says {}; remove the file, so that its kernels "
               "are compiled again",
               kernel.object, seen, kernel.sha256);
}

Status AddManifest(const KernelObject& kernel, const std::string& store_root, PackageParts& parts) {
  const std::string name = fmt::format("manifests/{}.json", kernel.key);
  const std::string path = fmt::format("{}/{}", store_root, name);
  NPUMESH_ASSIGN_OR_RETURN(std::string manifest, ReadFile(path));
  if (manifest.find(kernel.sha256) == std::string::npos) {
    return Error(Code::kCorrupt, "{}: it does not name the object {}; write the package again",
                 path, kernel.sha256);
  }
  parts[name] = std::move(manifest);
  return Status();
}

// Kernels may have come without their sources, which are for people.
Status AddSources(const KernelObject& kernel, const std::string& store_root, PackageParts& parts) {
  for (const std::string_view ending : {"cc", "json"}) {
    const std::string name = fmt::format("sources/{}.{}", kernel.key, ending);
    Result<std::string> source = ReadFile(fmt::format("{}/{}", store_root, name));
    if (source.ok()) {
      parts[name] = *std::move(source);
    } else if (source.status().code() != Code::kNotFound) {
      return source.status();
    }
  }
  return Status();
}

// What `sha256sum -c` reads.
std::string ChecksumsOf(const PackageParts& parts) {
  std::string lines;
  for (const auto& [name, content] : parts) {
    lines += fmt::format("{}  {}\n", Sha256(content), name);
  }
  return lines;
}

Result<PackageParts> GatherParts(const std::string& store_root,
                                 const std::vector<KernelObject>& kernels) {
  PackageParts parts;
  for (const KernelObject& kernel : kernels) {
    NPUMESH_RETURN_IF_ERROR(CheckNames(kernel));
    NPUMESH_RETURN_IF_ERROR(AddObject(kernel, parts));
    NPUMESH_RETURN_IF_ERROR(AddManifest(kernel, store_root, parts));
    NPUMESH_RETURN_IF_ERROR(AddSources(kernel, store_root, parts));
  }
  parts["parts.sha256"] = ChecksumsOf(parts);
  return parts;
}

// One line for each key, in order.
std::string KernelLines(const std::vector<KernelObject>& kernels) {
  std::map<std::string, std::string> by_key;
  for (const KernelObject& kernel : kernels) {
    by_key[kernel.key] =
        fmt::format("{} {} {}\n", kernel.key, kernel.sha256, Printable(kernel.title));
  }
  std::string lines;
  for (const auto& [key, line] : by_key) lines += line;
  return lines;
}

}  // namespace

PackageMachine MachineFor(InstructionSet set) {
  utsname system{};
  uname(&system);
  return {.architecture = system.machine,
          .instructions = std::string(NameOf(set)),
          .flags = FlagsOf(set)};
}

Status WriteRunPackage(const std::string& path, const std::string& store_root,
                       const std::vector<KernelObject>& kernels, const PackageMachine& machine,
                       FileSystem& fs) {
  if (kernels.empty()) {
    return Error(Code::kInvalidArgument, "{}: there are no static kernels to pack", path);
  }
  const Result<PackageParts> parts = GatherParts(store_root, kernels);
  if (!parts.ok()) return parts.status().WithContext(path);
  const std::string archive = TarArchive(*parts);
  const std::string script =
      PackageScript({.architecture = machine.architecture,
                     .instructions = machine.instructions,
                     .flags = fmt::format("{}", fmt::join(machine.flags, " ")),
                     .kernels = KernelLines(kernels),
                     .archive_bytes = archive.size(),
                     .archive_sha256 = Sha256(archive)});
  NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(path, FileKind::kProgram, fs));
  NPUMESH_RETURN_IF_ERROR(file->Append(script));
  NPUMESH_RETURN_IF_ERROR(file->Append(archive));
  return file->Commit();
}

}  // namespace npumesh
