#include "runtime/acl/dump/dump_paths.h"

#include <string_view>
#include <utility>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

// The scenes of exceptions; the first name is an older one.
bool IsScene(std::string_view scene, acldumpType type) {
  switch (type) {
    case AIC_ERR_BRIEF_DUMP:
      return scene == "lite_exception" || scene == "aic_err_brief_dump";
    case AIC_ERR_NORM_DUMP:
      return scene == "aic_err_norm_dump";
    case AIC_ERR_DETAIL_DUMP:
      return scene == "aic_err_detail_dump";
    default:
      return false;
  }
}

std::string Text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

DumpPaths& DumpPaths::OfProcess() {
  static DumpPaths* const paths = new DumpPaths;
  return *paths;
}

void DumpPaths::ReadInit(const std::string& config_path) {
  Config config = Read(config_path);
  const std::lock_guard lock(mutex_);
  init_ = std::move(config);
}

void DumpPaths::ReadModels(const std::string& config_path) {
  Config config = Read(config_path);
  const std::lock_guard lock(mutex_);
  models_ = std::move(config);
}

void DumpPaths::set_arguments(const std::string& path) {
  const std::lock_guard lock(mutex_);
  arguments_ = path;
}

std::string DumpPaths::arguments() const {
  const std::lock_guard lock(mutex_);
  return arguments_;
}

DumpPaths::Config DumpPaths::Read(const std::string& config_path) {
  if (config_path.empty()) return {};
  const Result<std::string> text = ReadFile(config_path);
  if (!text.ok()) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("dump") || !json["dump"].is_object()) return {};
  const auto& dump = json["dump"];
  return {Text(dump, "dump_path"), Text(dump, "dump_scene"), Text(dump, "dump_debug") == "on"};
}

std::string DumpPaths::PathOf(const Config& config, acldumpType type) {
  switch (type) {
    case DATA_DUMP:
      return config.scene.empty() && !config.overflow ? config.path : "";
    case OVERFLOW_DUMP:
      return config.overflow ? config.path : "";
    default:
      return IsScene(config.scene, type) ? config.path : "";
  }
}

std::string DumpPaths::Of(acldumpType type) const {
  const std::lock_guard lock(mutex_);
  for (const Config& config : {models_, init_}) {
    if (std::string path = PathOf(config, type); !path.empty()) return path;
  }
  return type == DATA_DUMP ? arguments_ : "";
}

std::string DumpPaths::OfExceptions() const {
  for (const acldumpType type : {AIC_ERR_BRIEF_DUMP, AIC_ERR_NORM_DUMP, AIC_ERR_DETAIL_DUMP}) {
    if (std::string path = Of(type); !path.empty()) return path;
  }
  return "";
}

}  // namespace npumesh
