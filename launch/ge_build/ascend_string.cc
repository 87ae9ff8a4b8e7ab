#include "graph/ascend_string.h"

#include <string_view>

namespace ge {
namespace {

std::string_view TextOf(const AscendString& name) {
  return {name.GetString(), name.GetLength()};
}

}  // namespace

AscendString::AscendString(const char* name) {
  if (name != nullptr) name_ = std::make_shared<std::string>(name);
}

AscendString::AscendString(const char* name, size_t length) {
  if (name != nullptr) name_ = std::make_shared<std::string>(name, length);
}

const char* AscendString::GetString() const {
  return name_ == nullptr ? "" : name_->c_str();
}

size_t AscendString::GetLength() const {
  return name_ == nullptr ? 0 : name_->size();
}

size_t AscendString::Find(const AscendString& name) const {
  return TextOf(*this).find(TextOf(name));
}

size_t AscendString::Hash() const {
  return std::hash<std::string_view>()(TextOf(*this));
}

bool AscendString::operator<(const AscendString& other) const {
  return TextOf(*this) < TextOf(other);
}
bool AscendString::operator>(const AscendString& other) const {
  return other < *this;
}
bool AscendString::operator<=(const AscendString& other) const {
  return !(other < *this);
}
bool AscendString::operator>=(const AscendString& other) const {
  return !(*this < other);
}
bool AscendString::operator==(const AscendString& other) const {
  return TextOf(*this) == TextOf(other);
}
bool AscendString::operator!=(const AscendString& other) const {
  return !(*this == other);
}

}  // namespace ge
