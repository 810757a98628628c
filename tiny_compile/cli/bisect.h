// tc bisect A B: where two runs of one computation part.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tiny_compile {

// What A and B may be, the options, and what to record.
std::string bisect_usage();

// `words` behind "bisect". Returns 0 where the runs agree, 2 where they do not.
int bisect_runs(const std::vector<std::string>& words, std::ostream& out);

}  // namespace tiny_compile
