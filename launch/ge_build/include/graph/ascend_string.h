// A text of GE's interfaces, whatever std::string the program is built with.
#ifndef NPUMESH_GRAPH_ASCEND_STRING_H_
#define NPUMESH_GRAPH_ASCEND_STRING_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace ge {

// Copies share the text, which does not change. One that was made of nothing, or of null, is empty.
class AscendString {
 public:
  AscendString() = default;
  ~AscendString() = default;
  AscendString(const char* name);  // NOLINT: implicit, as options are written
  AscendString(const char* name, size_t length);

  // Ends with a zero; never null.
  const char* GetString() const;
  size_t GetLength() const;
  // The first place of a text in this one; npos without one.
  size_t Find(const AscendString& name) const;
  size_t Hash() const;

  bool operator<(const AscendString& other) const;
  bool operator>(const AscendString& other) const;
  bool operator<=(const AscendString& other) const;
  bool operator>=(const AscendString& other) const;
  bool operator==(const AscendString& other) const;
  bool operator!=(const AscendString& other) const;

 private:
  std::shared_ptr<std::string> name_;
};

}  // namespace ge

template <>
struct std::hash<ge::AscendString> {
  size_t operator()(const ge::AscendString& name) const { return name.Hash(); }
};

#endif  // NPUMESH_GRAPH_ASCEND_STRING_H_
