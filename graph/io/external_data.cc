// Constants whose bytes stand in a file beside the model, as GE writes models of 2 GiB and more.
#include <filesystem>

#include "graph/io/model_codec.h"
#include "graph/io/weight_path.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {
namespace {

// A link inside the folder may not lead out of it either.
Status CheckLinks(const std::string& file, const std::filesystem::path& folder) {
  const auto target = LinkTargetOutside(file, folder);
  if (!target) return Status();
  return Error(Code::kInvalidArgument, "{} is a link that leaves the folder of the model, to {}",
               file, target->string());
}

}  // namespace

Status LoadExternalData(const std::string& path, Node* node) {
  if (!IsConstType(node->type)) return Status();
  const AttrValue* location_attr = node->FindAttr("location");
  const AttrValue* length_attr = node->FindAttr("length");
  if (location_attr == nullptr || length_attr == nullptr) return Status();
  const std::string* location = location_attr->get<std::string>();
  const int64_t* length = length_attr->get<int64_t>();
  if (location == nullptr || length == nullptr) return Status();

  const auto value = node->attrs.find("value");
  TensorAttr* tensor = value == node->attrs.end() ? nullptr : value->second.get<TensorAttr>();
  if (tensor == nullptr) {
    return Error(Code::kCorrupt, "has \"location\" but no tensor attribute \"value\" to fill");
  }
  const std::filesystem::path inside = std::filesystem::path(*location).lexically_normal();
  if (inside.is_absolute() || inside.empty() || *inside.begin() == "..") {
    return Error(Code::kInvalidArgument,
                 "location \"{}\" leaves the folder of the model; expected a path inside it",
                 *location);
  }
  const std::string file_path = (std::filesystem::path(path).parent_path() / inside).string();
  NPUMESH_RETURN_IF_ERROR(CheckLinks(file_path, PackageFolder(path)));
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                           MappedFile::Open(file_path));
  if (*length < 0 || static_cast<uint64_t>(*length) > file->size()) {
    return Error(Code::kCorrupt, "length {} of location \"{}\"; the file has {} bytes", *length,
                 file_path, file->size());
  }
  tensor->data = std::make_shared<const std::string>(reinterpret_cast<const char*>(file->data()),
                                                     static_cast<size_t>(*length));
  node->attrs.erase("location");
  node->attrs.erase("length");
  return Status();
}

}  // namespace npumesh
