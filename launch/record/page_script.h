// The texts of a record's page: record.js, record.css and record.html, embedded when npumesh is
// built.
#ifndef NPUMESH_LAUNCH_RECORD_PAGE_SCRIPT_H_
#define NPUMESH_LAUNCH_RECORD_PAGE_SCRIPT_H_

#include <string_view>

namespace npumesh {

std::string_view RecordScript();
std::string_view RecordStyle();
std::string_view RecordBody();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_PAGE_SCRIPT_H_
