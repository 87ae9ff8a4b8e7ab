// The flight records as one page: the verdict, who waits for whom, and a lane for each rank.
#ifndef NPUMESH_LAUNCH_RECORD_RECORD_PAGE_H_
#define NPUMESH_LAUNCH_RECORD_RECORD_PAGE_H_

#include <string>
#include <vector>

#include "launch/page/page.h"
#include "launch/record/record_join.h"

namespace npumesh {

// The page is self-contained (launch/page/page.h). Its data: `command`, `version` and `written` of
// `origin`, `problems` (a list of sentences), `left_out` (earlier calls of all ranks that are not
// drawn: a page has at most 20,000), `report` (the object of --json) and `trace` (TimelineJson).
std::string RecordPage(const std::vector<RankRecord>& records, const Joined& joined,
                       const PageOrigin& origin);

// record.html, record.css and record.js, embedded when npumesh is built.
PageTexts RecordTexts();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_RECORD_PAGE_H_
